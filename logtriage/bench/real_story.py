"""One real case told: what each rule makes of it, and why ours suspects whom."""

from __future__ import annotations

import pandas as pd

from ..ceiling.grounding import Evidence, gather
from ..play.actions import Action
from ..real.cases import load_case
from ..real.real_episode import TOP, RealEpisode
from ..real.rules import RULES, ranked
from ..real.unexplained import suspicion, votes
from .real_results import reads

CURRENCIES = ("waiting", "wire", "failures")  # shown first; the others are metrics by name


def evidence_of(source: str, index: int) -> Evidence:
    """What a ranking policy knows of a case: the opening, and the answer about all services."""
    episode = RealEpisode.open(source, index)
    answer = episode.act(Action("request_more_logs", ("all",)))
    return gather(episode.incident.topology, [episode.opening, answer])


def rankings(source: str, index: int) -> pd.DataFrame:
    """A row a rule: the first three that it suspects, and at which place the root stands."""
    evidence, root = evidence_of(source, index), load_case(source, index).truth.root
    rows = []
    for name, rule in RULES.items():
        if reads(name, source):
            ranking = rule(evidence)
            first = {f"{at + 1}.": one for at, one in enumerate(ranking[:TOP])}
            rows.append({"rule": name, **first, "place of the root": ranking.index(root) + 1})
    return pd.DataFrame(rows).set_index("rule")


def vote_table(evidence: Evidence, most: int = 6) -> pd.DataFrame:
    """How far each currency of `unexplained` singles out the `most` suspect services: a row a
    service, its suspicion last.
    """
    found, suspicions = votes(evidence), suspicion(evidence)
    names = [name for name in CURRENCIES if name in found]
    names += [name for name in found if name not in names]
    services = ranked(evidence.graph, suspicions)[:most]
    table = {name: [found[name].get(one, 0.0) for one in services] for name in names}
    table["suspicion"] = [suspicions.get(one, 0.0) for one in services]
    return pd.DataFrame(table, index=pd.Index(services, name="service"))
