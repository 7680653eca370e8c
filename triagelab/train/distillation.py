"""On-policy distillation: the model plays, and an expert says what to do in the states it reaches.

The model plays incidents of `train`, by sampling or greedily, and each of its turns is compared
with what `belief` would do there (DAgger: Ross et al., 2011). Questions that promise nearly the
same gain share the target (`SOFTNESS`). The model learns the tokens of the expert's turn up to the
first one that it wrote differently, that one included. Several answers in a turn are compared one
by one.

The expert knows how incidents are drawn, but never reads an incident's truth. It reads every log
line unchanged; the model reads some with words missing or made up (`sft_tasks.NoisySession` and
`sft_tasks.AugmentedSession`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, takewhile
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple, TypeAlias

from joblib import Parallel, delayed

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.tools import ToolSession

from ..language_models.language_models import Conversation, LanguageModelPolicy
from ..reference.belief import WORTHWHILE, Lookahead, answer_actions
from ..reference.posterior import Posterior
from ..reference.prior import prior_of
from .settings import TrainingConfig
from .sft_tasks import EPISODE_SHARES, EXPERT_INDEX, draw_task, open_varied
from .supervised import Example, batches

SOFTNESS = 0.01  # difference in expected score at which a question weighs 1/e of the best
PLAYED_TOGETHER = 256  # episodes that are played with the same weights
# A token with less than the first share of a target is left out. A question with less than the
# second is not taken for the expert's: nothing is learned after it.
LEAST, TINY = 0.01, 1e-6

# A turn that the expert might take: its calls and its weight.
Turn: TypeAlias = tuple[list[Action], float]
Option: TypeAlias = tuple[list[list[int]], float]  # the same in tokens
Target: TypeAlias = tuple[int, int, float]  # see `Example.targets`


class Lesson(NamedTuple):
    """Some of the model's own episodes, to be corrected by the expert."""

    name: str
    episodes: int
    session: Callable[[Episode], ToolSession]  # in which the model reads an episode
    temperature: float  # at which it plays; 0 for greedy play


def best_turns(belief: Posterior, step: int) -> list[Turn]:
    """The expert's possible turns while nothing has been answered; their weights sum to 1."""
    lookahead = Lookahead(belief, step)
    gains = lookahead.gains()
    best = max(gains.values(), default=0.0)
    if best <= WORTHWHILE:
        return [(answer_actions(lookahead.best_answers(), belief.topology), 1.0)]
    chances = {name: math.exp((gain - best) / SOFTNESS) for name, gain in gains.items()}
    total = sum(chances.values())
    return [
        ([Action("request_more_logs", (name,))], chance / total) for name, chance in chances.items()
    ]


def advise(task: str, index: int, asked: Sequence[str]) -> list[list[Turn]]:
    """The expert's turns before each of these questions, and after the last."""
    episode = open_varied(task, "train", index)
    incident = episode.incident
    belief = Posterior(prior_of(incident.topology, incident.task, incident.split))
    belief.see(episode.opening, None)
    advice = [best_turns(belief, 0)]
    for service in asked:
        observation = episode.act(Action("request_more_logs", (service,)))
        if episode.done:
            break
        belief.see(observation, service)
        advice.append(best_turns(belief, observation.step))
    return advice


def corrected(
    policy: LanguageModelPolicy,
    sessions: Sequence[ToolSession],
    parallel: Parallel,
    forced_weight: float = 1.0,
) -> list[Example]:
    """Play newly opened sessions of varied incidents of `train`, and return each with the expert's
    targets. A token that the grammar forces has the `forced_weight`.
    """
    incidents = [session.episode.incident for session in sessions]
    streams = [Random(f"distillation/{incident.index}") for incident in incidents]
    played = policy.converse(sessions, streams)
    advice = parallel(
        delayed(advise)(incident.task_name, incident.index, _questions(session))
        for incident, session in zip(incidents, sessions, strict=True)
    )
    weighed = partial(_example, policy, forced_weight)
    return [*map(weighed, played, sessions, advice)]


def own_examples(
    model: Any, tokenizer: Any, lesson: Lesson, first: int, seed: int
) -> Iterator[list[Example]]:
    """Yield batches of a lesson's episodes, the `first` and on, with the expert's targets. The
    model plays each episode as it has been trained so far.
    """
    policy = LanguageModelPolicy(
        model,
        tokenizer,
        name="training",
        temperature=lesson.temperature,
        turn_tokens=TrainingConfig.turn_tokens,  # as in training by reward
        completion_tokens=TrainingConfig.completion_tokens,
        constrained=True,
    )
    random, end = Random(f"distillation/{seed}"), first + lesson.episodes
    with Parallel(n_jobs=-1) as parallel:
        for start in range(first, end, PLAYED_TOGETHER):
            indices = range(start, min(start + PLAYED_TOGETHER, end))
            rows = [(draw_task(random, EPISODE_SHARES), EXPERT_INDEX + index) for index in indices]
            sessions = [lesson.session(open_varied(task, "train", at)) for task, at in rows]
            model.eval()
            yield from batches(corrected(policy, sessions, parallel), random)


def _questions(session: ToolSession) -> list[str]:
    """The services that were asked for logs before anything else was done."""
    services = []
    for action, _ in session.episode.history:
        if action is None or action.type != "request_more_logs":
            break
        services.append(action.args[0])
    return services


def _example(
    policy: LanguageModelPolicy,
    forced_weight: float,
    conversation: Conversation,
    session: ToolSession,
    advice: list[list[Turn]],
) -> Example:
    """A conversation with the expert's targets, for turns that begin before any answer is given."""
    grammar, names = policy.grammar, session.names
    assert grammar is not None
    allowed = iter(conversation.allowed)

    def spelled(turn: Turn) -> Option:
        """A turn in tokens, with the names that the model reads."""
        actions, weight = turn
        calls = [(action.type, [names.get(arg, arg) for arg in action.args]) for action in actions]
        return [grammar.call_ids(*call) for call in calls], weight

    messages = (turn for turn in conversation.messages if turn["role"] == "assistant")
    targets: list[Target] = []
    at, done = len(conversation.prompt), 0  # tokens and calls before the turn
    for own, run in groupby(zip(conversation.own, conversation.ids, strict=True), itemgetter(0)):
        ids = [token for _, token in run]
        if own:
            forced = [len(next(allowed)) == 1 for _ in ids]
            if done < len(advice):
                wanted = compare(ids, [spelled(turn) for turn in advice[done]], grammar)
                targets += [
                    (at + place, token, weight * (forced_weight if forced[place] else 1.0))
                    for place, token, weight in wanted
                ]
            done += len(next(messages).get("tool_calls") or ())
        at += len(ids)
    own_tokens = [False] * len(conversation.prompt) + conversation.own
    return Example(conversation.prompt + conversation.ids, own_tokens, targets)


def compare(turn: list[int], options: list[Option], grammar: Any) -> list[Target]:
    """Targets at the tokens of a turn, given the turns that the expert might take. `grammar` has
    the ids that end a turn (`end`) and separate two calls (`between`).
    """
    if len(options) > 1:
        return _of_questions(turn, options, grammar.end)
    (calls, _), place = options[0], 0
    targets: list[Target] = []
    for number, call in enumerate(calls):
        wanted = [*call, grammar.between if number < len(calls) - 1 else grammar.end]
        pairs = zip(turn[place:], wanted, strict=False)
        agreed = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        last = min(agreed, len(wanted) - 1, len(turn) - place - 1)
        targets += [(place + at, wanted[at], 1.0) for at in range(last + 1)]
        if agreed < len(wanted):
            # The same kind of call with another value: go on with the next call. If it begins or
            # ends differently, the turns no longer correspond.
            if not 0 < agreed < len(call) or grammar.between not in turn[place + agreed :]:
                break
            place = turn.index(grammar.between, place + agreed) + 1
        else:
            place += len(wanted)
    return targets


def _of_questions(turn: list[int], options: list[Option], end: int) -> list[Target]:
    """`compare` for an expert who might ask one of several services."""
    targets: list[Target] = []
    left = [([*calls[0], end], weight) for calls, weight in options]
    for place, token in enumerate(turn):
        total = sum(weight for _, weight in left)
        chances: dict[int, float] = {}
        for ids, weight in left:
            chances[ids[place]] = chances.get(ids[place], 0.0) + weight / total
        targets += [(place, choice, part) for choice, part in chances.items() if part > LEAST]
        left = [(ids, weight) for ids, weight in left if ids[place] == token and weight > TINY]
        if not left or token == end:
            break
    return targets
