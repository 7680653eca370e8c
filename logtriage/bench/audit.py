"""Did the policy know when it blamed? An audit of diagnosis, for any policy, without a judge.

`belief`'s posterior is replayed on exactly what the policy was shown. An episode's *answer* is the
first service that it blamed, or "no fault" if it ignored the alert first; its *verdict* says
whether the answer is right, and whether the posterior called it likelier than not:

| | likelier than not | less likely |
|---|---|---|
| right | grounded | lucky |
| wrong | misled | reckless |

The rest is unanswered. Grounded is what an exact reader of the same observations would have said,
too: that the policy could have known, not how it came to say so.

*Regret* is what a choice was expected to cost in score, by `belief`'s lookahead: the best of asking
any one service and of answering at once, less the choice made. Expected is what an agent would earn
that stands where the policy stands, has yet to answer anything, and answers next. So regrets do not
add up over an episode: what a poor question has not told, the next may. Only questions to one
service that leave time for all answers have such a worth; the others are counted and not weighed.

A remedy changes the world that the posterior is about. So what was seen after the first one is left
out, questions included: a later answer is judged by what was known before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..ceiling.belief import check_enumerable, prior_of
from ..ceiling.lookahead import Lookahead
from ..ceiling.posterior import Posterior
from ..play.actions import ALL_SERVICES, Action
from ..play.episode import BaseEpisode, Episode, OpenEpisode, final_score
from ..play.observation import Observation
from ..policies.policy import BATCH, Policy
from ..world.tasks import TASKS, Task
from .crossed import crossed_share
from .registry import make_policy
from .rollouts import COLUMNS as PLAYED
from .rollouts import Brake, Result, rollout_each, rows_of
from .strata import FEWEST

GROUNDED = 0.5  # probability from which an answer is likelier than everything else together
NO_FAULT = "no fault"  # the answer that `ignore` gives
BLAMES = "identify_root_cause"
ANSWERS = (BLAMES, "ignore")
VERDICTS = ("grounded", "lucky", "unanswered", "misled", "reckless")
AUDITED = ("random", "loudest", "novice", "trace", "belief")  # in the benchmark
COLUMNS = (
    *("answer", "posterior", "verdict"),
    *("questions", "weighed", "question_regret", "answer_regret"),
)


def judge(episode: BaseEpisode) -> dict[str, object]:
    """The audit of a closed episode, a value for each of `COLUMNS`.

    Returns:
        answer: a service, `NO_FAULT`, or None.
        posterior: probability of the answer when it was given; NaN without one.
        verdict: one of `VERDICTS`.
        questions, weighed: questions before the answer or a first remedy, and those with a regret.
        question_regret: mean of the weighed ones; NaN when there is none.
        answer_regret: of ceasing to ask, at the answer or at a remedy before it; NaN without an
            answer.
    """
    belief, questions = _begun(episode), _questions(episode)
    regrets = []
    for question, observation in questions:
        regrets += _question_regret(belief, question.args[0], observation.step)
        belief.see(observation, question.args[0])
    row: dict[str, object] = {
        "answer": None,
        "posterior": float("nan"),
        "verdict": "unanswered",
        "questions": len(questions),
        "weighed": len(regrets),
        "question_regret": sum(regrets) / len(regrets) if regrets else float("nan"),
        "answer_regret": float("nan"),
    }
    answered = _answer(episode)
    if answered is None:
        return row
    posterior = _held(belief, answered, episode)
    first = next(seen for one, seen in _trail(episode) if one.type in (*ANSWERS, "remediate"))
    # With one fault or none, this part of the score is 1 where the first answer is right, else 0:
    # the truth itself need not be known, and on a server is not.
    right = final_score(episode).root_cause == 1.0
    gains = Lookahead(belief, first.step - 1).gains()
    row |= {
        "answer": answered.args[0] if answered.type == BLAMES else NO_FAULT,
        "posterior": min(1.0, posterior),
        "verdict": verdict_of(right, posterior),
        "answer_regret": max(0.0, *gains.values()) if gains else 0.0,
    }
    return row


def is_grounded(episode: BaseEpisode) -> bool:
    """Whether `judge` calls a closed episode grounded: without the regrets, which take it most of
    its time.
    """
    answered = _answer(episode)
    if answered is None or final_score(episode).root_cause != 1.0:
        return False
    belief = _begun(episode)
    for question, observation in _questions(episode):
        belief.see(observation, question.args[0])
    return verdict_of(True, _held(belief, answered, episode)) == "grounded"


def _begun(episode: BaseEpisode) -> Posterior:
    """What is believed at the opening."""
    incident = episode.incident
    belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
    belief.see(episode.opening, None)
    return belief


def _trail(episode: BaseEpisode) -> list[tuple[Action, Observation]]:
    """The valid actions, and what each brought."""
    return [(action, observation) for action, observation in episode.history if action]


def _questions(episode: BaseEpisode) -> list[tuple[Action, Observation]]:
    """Those before the answer and the first remedy."""
    before = takewhile(lambda one: one[0].type not in (*ANSWERS, "remediate"), _trail(episode))
    return [one for one in before if one[0].type == "request_more_logs"]


def _answer(episode: BaseEpisode) -> Action | None:
    return next((action for action, _ in _trail(episode) if action.type in ANSWERS), None)


def _held(belief: Posterior, answered: Action, episode: BaseEpisode) -> float:
    """The probability of an answer."""
    position = episode.incident.topology.position
    return float(belief.roots()[position[answered.args[0]] if answered.type == BLAMES else -1])


def verdict_of(right: bool, posterior: float) -> str:
    """The verdict on an answer of that probability."""
    if right:
        return "grounded" if posterior >= GROUNDED else "lucky"
    return "misled" if posterior >= GROUNDED else "reckless"


def _question_regret(belief: Posterior, service: str, step: int) -> list[float]:
    """What asking a service in that step was expected to cost against the best choice; none when it
    has no worth.
    """
    if service == ALL_SERVICES:
        return []
    gains = Lookahead(belief, step - 1).gains(also=service)
    return [max(0.0, *gains.values()) - gains[service]] if gains else []


def audit(
    policy: Policy,
    tasks: Sequence[str | Task],
    split: str = "test",
    episodes: int = 200,
    first: int = 0,
    batch: int = BATCH,
    progress: bool = True,
    open_episode: OpenEpisode = Episode.open,
) -> pd.DataFrame:
    """`rollout`, and the audit of every episode; the policy plays as it would without.

    Args:
        policy, tasks, split, episodes, first, batch, progress, open_episode: as in `rollout`.

    Returns:
        `rollout`'s frame with the columns `COLUMNS`, see `judge`.

    Raises:
        ValueError: for a task of two faults, before anything is played.
        ConnectionError: as `rollout`.
    """
    for task in tasks:
        check_enumerable(task)
    indices, brake = range(first, first + episodes), Brake()
    played = rollout_each(
        policy, tasks, split, indices, batch=batch, open_episode=open_episode, brake=brake
    )
    told = tqdm(played, policy.name, len(tasks) * episodes, disable=not progress, leave=False)
    frame = rows_of(map(audited_row, told), tasks, (*PLAYED, *COLUMNS))
    brake.check_through(policy.name)
    return frame


def audited_row(result: Result) -> dict[str, object]:
    """A result's row with a value for each of `COLUMNS`; all of them are None where the episode was
    not played to its end.
    """
    if result.played.error:
        return {**result.row, **dict.fromkeys(COLUMNS)}
    return {**result.row, **judge(result.episode)}


def audit_policies(
    policies: Sequence[str] = AUDITED, split: str = "test", incidents: int = 200, processes: int = 2
) -> pd.DataFrame:
    """The audit of policies of the registry on the three tasks, without the column `seconds`."""
    from joblib import Parallel, delayed

    def play(policy: str, task: str) -> pd.DataFrame:
        rows = audit(make_policy(policy), [task], split, incidents, progress=False)
        return rows.drop(columns="seconds")

    jobs = [(policy, task) for policy in policies for task in TASKS]
    return pd.concat(
        Parallel(n_jobs=processes)(delayed(play)(*job) for job in jobs), ignore_index=True
    )


def audits_of_runs(folder: str | Path, base: str, trained: str) -> pd.DataFrame:
    """The audits of a track's training seeds (`folder/seed-*/audit.parquet`) together.

    Args:
        folder: of the track.
        base, trained: what the model before and after training is to be called.

    Raises:
        FileNotFoundError: when it holds none.
    """
    paths = sorted(Path(folder).glob("seed-*/audit.parquet"))
    if not paths:
        raise FileNotFoundError(f"{folder} holds no audit of a run; `make seeds` makes them")
    frames = [pd.read_parquet(path).assign(seed=path.parent.name) for path in paths]
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(policy=frame["policy"].map({"base": base, "trained": trained}))


def audit_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a policy and task: the share of each verdict, and of the grounded among the right
    answers with its 95 % interval (None below `FEWEST` right answers); the mean questions an
    episode, the regret a question, and that of answering.

    Where there is a column `seed`, of training, its values played the same incidents; it is empty
    where nothing was trained.
    """
    rows = []
    frame = frame[frame["verdict"].notna()]  # an episode that failed was not audited
    frame = frame.assign(seed=frame["seed"].fillna("") if "seed" in frame else "")
    for (policy, task), part in frame.groupby(["policy", "task"], sort=False):
        verdicts = part.pivot(index="seed", columns="index", values="verdict").to_numpy()
        grounded, right = verdicts == "grounded", np.isin(verdicts, ("grounded", "lucky"))
        asked, regret = part["weighed"].sum(), part["question_regret"] * part["weighed"]
        rows.append(
            {
                "policy": policy,
                "task": task,
                **{verdict: (part["verdict"] == verdict).mean() for verdict in VERDICTS},
                "grounded_share_of_right": crossed_share(grounded, right)
                if right.sum() >= FEWEST
                else None,
                "questions": part["questions"].mean(),
                "question_regret": regret.sum() / asked if asked else float("nan"),
                "answer_regret": part["answer_regret"].mean(),
            }
        )
    return pd.DataFrame(rows)
