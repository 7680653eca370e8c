"""Real incidents on a server: they play as they do here, and before the end the truth is nowhere on
the wire.
"""

from html import unescape
from urllib.parse import urlencode

import pytest
import requests
from lab_helpers import asks, blames, secrets

from logtriage.adapters.remote import Server
from logtriage.client import LogtriageEnv
from logtriage.models import TriageAction
from logtriage.play.actions import Action
from triagelab.real.cases import SOURCES, load_source
from triagelab.real.real_episode import RealEpisode


def test_cases_play_on_a_server_as_they_do_here(url):
    with Server(url) as server:
        for source in SOURCES:
            there, here = server.open("real", source, 4), RealEpisode.open(source, 4)
            assert there.opening == here.opening
            assert there.incident.topology == here.incident.topology
            root = here.case.truth.root
            for action in (asks("all"), asks(root), blames(root), Action("resolve")):
                assert there.act(action) == here.act(action)
            assert there.score == here.score and there.score.total == 1.0


@pytest.mark.parametrize("source", SOURCES)
def test_the_truth_is_nowhere_on_the_wire_before_the_end(url, source):
    with LogtriageEnv(base_url=url).sync() as client:
        for index, case in enumerate(load_source(source).cases):
            sent = [client.reset(task="real", split=source, index=index).observation]
            for service in ("all", *case.services[:3], case.truth.root):
                action = TriageAction(action_type="request_more_logs", value=service)
                sent.append(client.step(action).observation)
            sent.append(client.state())
            wire = " ".join(message.model_dump_json() for message in sent)
            assert not [secret for secret in secrets(case) if secret in wire]


@pytest.mark.parametrize("source", SOURCES)
def test_cases_are_played_on_the_page(url, source):
    with requests.Session() as session:

        def page(did):
            asked = urlencode({**here, "did": did}, doseq=True)
            answer = session.get(f"{url}/web?{asked}", timeout=30)
            answer.raise_for_status()
            return unescape(answer.text)

        for index, case in list(enumerate(load_source(source).cases))[::3]:
            here = {"task": "real", "split": source, "index": index}
            did = ["request_more_logs:all", f"request_more_logs:{case.truth.root}"]
            before = page(did)
            assert not [secret for secret in secrets(case) if secret in before]
            assert f">{case.services[0]}</text>" in before
            after = page([*did, f"identify_root_cause:{case.truth.root}", "resolve"])
            assert "score 1.00" in after and case.truth.fault.replace("_", " ") in after
            assert "are recorded on incidents 0 to 199 of test" in after
        assert "the root cause alone counts" in page([])
