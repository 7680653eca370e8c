"""TRL's training loop without its repeated work, and with an advantage for each component of the
score. It is for models whose keys and values we keep.

TRL reads the whole conversation again at each turn, and a group's prompt again for each episode. It
pads every episode of a step to the longest, and reads episodes again whose advantage is 0.
`KeptTrainer` does none of that, and learns the same (a test compares both gradients). Unsloth
generates with its own kernels and keeps TRL's loop (`trainer.IncidentTrainer`). Both classes
override private methods of TRL, which is pinned.

**Per-component advantages.** With the credit `episode`, TRL's own, every token of an episode has
the same advantage: the episode's reward less the mean of its group. So a right root cause also
praises a wrong severity. But the score is a sum of components, and apart from gate, speed and costs
an answer does not change what another is worth. With the credit `part`, each answer therefore has
its own advantage:

| what the model writes | what it is credited with |
|---|---|
| the severity | its points |
| the service blamed | the points of root cause, remedy and speed, less costs |
| the remedy and its service | the points of remedy and speed, less costs |
| the team | its points, less what the gate took for a wrong one |
| all else: which call to make, which service to ask, repeated answers | the whole reward |

All costs are subtracted from the service and the remedy, since nearly all come from fruitless
remedies. What the gate took is the points before costs. An advantage is a credit less its mean over
the group's episodes that made the same call. Whether to make a call at all is judged by the whole
reward alone; otherwise never answering would look just as good.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache
from trl.trainer.utils import selective_log_softmax_and_entropy

from logtriage.play.conversation import Message, unreadable
from logtriage.play.episode import final_score
from logtriage.play.scoring import WEIGHTS, Score
from logtriage.play.tools import ToolSession

from ..language_models.decoder import PADDED, shared_prefix, without_adapter
from ..language_models.grammar import masked
from ..language_models.language_models import Conversation, LanguageModelPolicy
from .trainer import IncidentTrainer

WHOLE = "whole"  # key of all that is credited with the whole reward
ANSWERS = ("classify_severity", "identify_root_cause", "remediate", "escalate")
ARGUMENTS, CALL_END = '"arguments": {', "</tool_call>"
READ_TOGETHER = 16  # episodes of similar length in one pass of the model


class Advantages(NamedTuple):
    calls: list[float]  # one per call of an episode, for its arguments, in order
    outside: float  # of all other tokens


def component_rewards(score: Score, reward: float, ignored: bool = False) -> dict[str, float]:
    """The reward of each kind of call of an episode, by action type; `WHOLE` for all others.

    `reward` includes the costs of malformed calls. `ignored` says that the episode was closed by
    `ignore`; what the gate took for that is not charged to the team.
    """
    points = {part: weight * getattr(score, part) for part, weight in WEIGHTS.items()}
    healed = points["remediation"] + points["speed"] - score.cost
    taken = 0.0 if ignored else (1.0 - score.gate) * sum(points.values())
    return {
        WHOLE: reward,
        "classify_severity": points["severity"],
        "identify_root_cause": points["root_cause"] + healed,
        "remediate": healed,
        "escalate": points["escalation"] - taken,
    }


def group_advantages(sessions: Sequence[ToolSession]) -> list[Advantages]:
    """The advantages of the closed episodes of one group, by the credit `part`."""
    made, given = [], []
    values: dict[str, list[float]] = defaultdict(list)
    for session in sessions:
        score, closed_by = final_score(session.episode), session.episode.record.closed_by
        gives = component_rewards(score, session.reward(), ignored=closed_by == "ignore")
        kinds: list[str] = []  # of each call: only a first answer is credited with its part
        for step in session.episode.history:
            kind = step.action.type if step.action else WHOLE
            kinds.append(kind if kind in ANSWERS and kind not in kinds else WHOLE)
        kinds += [WHOLE] * session.late  # calls that came too late
        for kind in {*kinds, WHOLE}:
            values[kind].append(gives[kind])
        made.append(kinds)
        given.append(gives)
    means = {kind: sum(each) / len(each) for kind, each in values.items()}
    return [
        Advantages([gives[kind] - means[kind] for kind in kinds], gives[WHOLE] - means[WHOLE])
        for kinds, gives in zip(made, given, strict=True)
    ]


class SharedPrompt:
    """Keys and values of what all prompts of a step begin with, for all its micro-batches.

    Each micro-batch goes on from `cache`, and leaves its gradient there. `learn` then adds that of
    the weights that read the prompt: the sum is the gradient of reading it every time.
    """

    def __init__(self, model: Any, ids: list[int]) -> None:
        read = model.base_model(torch.tensor([ids], device=model.device), use_cache=True)
        layers = read.past_key_values.layers
        self.length = len(ids)
        self._read = [tensor for layer in layers for tensor in (layer.keys, layer.values)]
        self._leaves = [tensor.detach().requires_grad_() for tensor in self._read]

    def cache(self, rows: int) -> DynamicCache:
        """A cache for so many rows, to go on from."""
        every = [leaf.expand(rows, -1, -1, -1) for leaf in self._leaves]
        return DynamicCache(zip(every[::2], every[1::2], strict=True))

    def learn(self) -> None:
        pairs = zip(self._read, self._leaves, strict=True)
        used = [(read, leaf.grad) for read, leaf in pairs if leaf.grad is not None]
        torch.autograd.backward(*zip(*used, strict=True))


class KeptTrainer(IncidentTrainer):
    """TRL's trainer, with keys and values kept between turns, and credit by part of the score."""

    credit, constrained = "part", True  # of `TrainingConfig`
    shared_ids: Sequence[int] = ()  # what all prompts of a step begin with, if that is worth a pass
    shared_prompt: SharedPrompt | None = None  # the same, once a micro-batch has read it

    def _generate(self, prompts: list[list[Message]]) -> tuple[Any, ...]:
        """Play the sessions that the environments have just opened, and return what TRL's tool loop
        returns: ids of prompts and completions, a mask of what the model wrote, messages.
        """
        policy = LanguageModelPolicy(
            self.accelerator.unwrap_model(self.model),
            self.processing_class,
            name="training",
            temperature=self.temperature,
            turn_tokens=self.generation_kwargs["max_new_tokens"],
            completion_tokens=self.max_completion_length,
            constrained=self.constrained,
        )
        sessions = [tools.session for tools in self.environments]
        self.model.eval()
        conversations = policy.converse(sessions)
        if self.credit == "part":
            self._calls = [calls_of_tokens(talk, self.processing_class) for talk in conversations]
        self._allowed = [talk.allowed for talk in conversations]
        prefix = shared_prefix([talk.prompt for talk in conversations])
        self.shared_ids, self.shared_prompt = prefix if len(prefix) > PADDED else (), None
        self.model.train()
        written = [sum(talk.own) for talk in conversations]
        read = sum(len(talk.prompt) for talk in conversations)
        self.state.num_input_tokens_seen += read + sum(written)
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        self._metrics["train"]["completions/mean_length"].append(sum(written) / len(written))
        return (
            [talk.prompt for talk in conversations],
            [talk.ids for talk in conversations],
            [list(map(int, talk.own)) for talk in conversations],
            [talk.messages[2:] for talk in conversations],
            None,
            {},
            None,
            [],
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        if self.credit == "part":
            table = self._component_advantages(output["completion_ids"].shape[1])
            output["advantages"] = table.to(output["completion_ids"].device)
        # TRL shuffles the episodes, so each keeps its number, to find its `_allowed`.
        output["episode"] = torch.arange(len(output["completion_ids"]))
        return output

    def _component_advantages(self, width: int) -> torch.Tensor:
        """Advantages of a step's tokens, (episodes, width), by the call that they belong to."""
        table = torch.zeros(len(self._calls), width)
        for start in range(0, len(self._calls), self.num_generations):
            group = range(start, start + self.num_generations)
            given = group_advantages([self.environments[i].session for i in group])
            for i, advantages in zip(group, given, strict=True):
                for column, call in enumerate(self._calls[i]):
                    own = advantages.outside if call is None else advantages.calls[call]
                    table[i, column] = own
        return table

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        if self.shared_prompt and self.accelerator.sync_gradients:  # the last micro-batch of a step
            self.shared_prompt.learn()
            self.shared_prompt = None
        return loss

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        # Only episodes that differ from their group are read; TRL's metrics cover only these.
        unequal = inputs["advantages"].reshape(len(inputs["completion_ids"]), -1).any(1)
        if not unequal.any():
            unequal[0] = True  # there must be a loss, which is 0
        self._unequal = unequal
        inputs = {**inputs, "tool_mask": inputs["tool_mask"] * unequal[:, None]}
        self._own = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        self._episode = inputs["episode"].tolist() if self.constrained else []
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Log-probabilities and entropies, of shape (episodes, logits_to_keep), of the tokens that
        the model wrote in episodes that differ from their group; 0 elsewhere. Both are over the
        tokens that were allowed when this one was sampled.
        """
        inner = without_adapter(model)
        width = input_ids.shape[1] - logits_to_keep
        positions = (attention_mask.cumsum(1) - 1).clamp(min=0)
        # Identical episodes are read once, and so are identical prompts.
        unequal = self._unequal.nonzero()[:, 0]
        different, copies = _first_of_equals(input_ids[unequal])
        different = unequal[different]
        prompts, prompt_of = _first_of_equals(input_ids[different, :width])
        first = different[prompts]
        # A prompt's last token predicts the completion's first, and is read with the completion.
        before = width - 1
        shared, known, begin = DynamicCache(config=inner.config), 0, 0
        if self.shared_ids:
            if self.shared_prompt is None:
                with self.accelerator.autocast():
                    self.shared_prompt = SharedPrompt(inner, list(self.shared_ids))
            shared, known = self.shared_prompt.cache(len(first)), self.shared_prompt.length
            # What is read once counts as padding, and columns with nothing else are left out.
            attention_mask = attention_mask * (positions >= known)
            begin = int(attention_mask[different].any(0).nonzero()[0])

        def read_on(rows: torch.Tensor, start: int, end: int, cache: DynamicCache) -> torch.Tensor:
            """The last layer's states at these tokens; `cache` holds what comes before."""
            seen = attention_mask[rows, begin:end]
            with self.accelerator.autocast():
                return inner.base_model(
                    input_ids=input_ids[rows, start:end],
                    attention_mask=torch.cat([seen.new_ones(len(rows), known), seen], 1),
                    position_ids=positions[rows, start:end],
                    past_key_values=cache,
                    use_cache=True,
                ).last_hidden_state

        if begin < before:
            read_on(first, begin, before, shared)
        length = attention_mask[different, width:].sum(1)
        values, places = [], []
        for chunk in length.argsort().split(READ_TOGETHER):
            rows, until = different[chunk], before + int(length[chunk].max())
            cache = DynamicCache(config=inner.config)
            for number, layer in enumerate(shared.layers):
                of_rows = prompt_of[chunk]
                cache.update(layer.keys[of_rows], layer.values[of_rows], number)
            hidden = read_on(rows, before, until, cache)
            own = self._own[rows, : until - before]
            logits = inner.get_output_embeddings()(hidden[own])
            if self.constrained:
                written = [self._allowed[self._episode[row]] for row in rows.tolist()]
                logits = masked(logits, list(chain.from_iterable(written)))
            logps, entropies = selective_log_softmax_and_entropy(
                logits,
                input_ids[rows, width : until + 1][own],
                entropy_requires_grad=False,
                temperature=self.temperature,
            )
            values.append(torch.stack([logps, entropies]))
            row, column = own.nonzero(as_tuple=True)
            places.append(torch.stack([chunk[row], column]))
        row, column = torch.cat(places, 1)
        read = torch.zeros(2, len(different), logits_to_keep, device=input_ids.device)
        read[:, row, column] = torch.cat(values, 1)
        table = torch.zeros(2, *self._own.shape, device=input_ids.device)
        table[:, unequal] = read[:, copies]
        return table[0], table[1], None


def _first_of_equals(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each distinct row occurs first, and for each row which of the distinct ones it is."""
    unique, equal = torch.unique(rows, dim=0, return_inverse=True)
    numbers = torch.arange(len(rows), device=rows.device)
    first = torch.full((len(unique),), len(rows), device=rows.device)
    return first.scatter_reduce(0, equal, numbers, "amin"), equal


def calls_of_tokens(conversation: Conversation, tokenizer: Any) -> list[int | None]:
    """For each id of a conversation, the number of the call whose argument it belongs to; else
    None. Calls are numbered as in the history, where an unreadable message counts as a call.
    """
    calls: list[int | None] = []
    messages = (turn for turn in conversation.messages if turn["role"] == "assistant")
    made = 0
    for own, run in groupby(zip(conversation.own, conversation.ids, strict=True), itemgetter(0)):
        ids = [token for _, token in run]
        if not own:
            calls += [None] * len(ids)
            continue
        message = next(messages)
        # A turn that was cut off may end in a call that is not in the message.
        readable = len(message.get("tool_calls") or ())
        number, text = 0, ""
        for token in ids:
            argument = ARGUMENTS in text and number < readable
            calls.append(made + number if argument else None)
            text += tokenizer.decode([token])
            if CALL_END in text:
                number, text = number + 1, ""
        made += readable or int(unreadable(message))
    return calls
