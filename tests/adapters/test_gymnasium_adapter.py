"""The Gymnasium adapter: Gymnasium's checker and `make`, and the same scores as everywhere."""

import warnings

import gymnasium
import pytest
from conftest import SESSIONS
from gymnasium.utils.env_checker import check_env
from test_scoring import right_answers

from logtriage.adapters.gymnasium import MAX_TEXT, TriageGym
from logtriage.adapters.remote import Server
from logtriage.play.episode import Episode
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import SPLITS

PLAYED = [split for split in SPLITS if split != "unseen_topology"]


def test_gymnasium_s_checker_is_content():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("LogTriage-v1").unwrapped, skip_render_check=True)


def test_it_scores_as_the_episode_does():
    env = TriageGym("cascading_failure", "test")
    for index in range(5):
        text, info = env.reset(options={"index": index})
        twin = Episode.open("cascading_failure", "test", index)
        assert info == {"task": "cascading_failure", "split": "test", "index": index}
        assert text.startswith("step 0 of 12")
        incident, done, rewards = sample_incident("cascading_failure", "test", index), False, []
        for action in right_answers(incident):
            assert not done
            text, reward, done, truncated, info = env.step(env.actions.index(action))
            twin.act(action)
            rewards.append(reward)
            assert not truncated and env.observation_space.contains(text)
        assert done and rewards == [0.0] * 4 + [1.0]
        assert info == {**info, **twin.score._asdict()}
        with pytest.raises(ValueError, match="Incident closed"):
            env.step(0)


def test_texts_fit_the_space_with_room_to_spare():
    for split in PLAYED:
        env = TriageGym("silent_degradation", split)
        for index in range(30):
            text, _ = env.reset(options={"index": index})
            assert env.observation_space.contains(text) and len(text) < MAX_TEXT / 2


def test_it_plays_on_a_server(url):
    with Server(url) as server:
        here, there = TriageGym(), TriageGym(open_episode=server.open)
        for _ in range(SESSIONS + 1):
            there.reset()  # incidents left open must not fill the server
        for env in (here, there):
            env.action_space.seed(1)
        for seed in range(3):
            assert here.reset(seed=seed) == there.reset(seed=seed)
            over = seed == 1  # the second incident is left open
            while not over:
                action = here.action_space.sample()
                seen = here.step(action)
                assert there.step(action) == seen
                over = seen[2]


def test_mistakes_are_answered():
    with pytest.raises(ValueError, match="choose another split"):
        TriageGym(split="unseen_topology")
    with pytest.raises(ValueError, match="choose one of single_crash"):
        TriageGym("crash")
    with pytest.raises(ValueError, match="got '7'"):
        TriageGym().reset(options={"index": "7"})
    with pytest.raises(ValueError, match="call reset first"):
        TriageGym().step(0)
