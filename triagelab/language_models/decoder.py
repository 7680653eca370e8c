"""Continuous batching: one model writes many conversations at once, and caches keys and values.

`transformers` generates turn by turn, and reads the whole conversation again each time. Here equal
openings are read once, and a conversation that has ended a turn is answered, together with a few
others, while the rest still write.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from .grammar import Turn, masked

TOGETHER = 0.25  # share of the open conversations that must wait before their answers are read
CROWDED = 0.75  # finished rows are dropped when the share of open ones is below this
PADDED = 1.5  # longest answer that is read in a batch, as a multiple of the shortest
ROOM = 128  # tokens by which the memory for keys and values grows

# Takes a conversation's number and the ids of the turn it has just ended (with its end, unless it
# was cut off); returns the ids to read before the next turn, or None to end the conversation.
Answer = Callable[[int, list[int]], list[int] | None]


def folded_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """Grouped-query attention that treats heads with shared keys and values as queries of one head.
    On a CPU `transformers` copies keys and values for each head, which is most of the work.
    """
    rows, heads, length, size = query.shape
    shared = key.shape[1]
    if mask is None or heads == shared:
        return sdpa_attention_forward(module, query, key, value, mask, **options)
    folds = heads // shared
    out = torch.nn.functional.scaled_dot_product_attention(
        query.reshape(rows, shared, folds * length, size),
        key,
        value,
        attn_mask=_folded(mask, folds),
        dropout_p=options.get("dropout", 0.0),
        scale=options.get("scaling"),
    )
    return out.view(rows, heads, length, size).transpose(1, 2).contiguous(), None


_last_folded: tuple[Tensor, Tensor] | None = None  # a mask, and what `_folded` made of it


def _folded(mask: Tensor, folds: int) -> Tensor:
    """The mask of folded queries, as numbers to add. All layers share a mask, so the last result is
    kept; otherwise torch would turn the mask into numbers for each layer.
    """
    global _last_folded
    if _last_folded is None or _last_folded[0] is not mask:
        added = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
        _last_folded = mask, added.repeat(1, 1, folds, 1)
    return _last_folded[1]


FOLDED = "folded"
AttentionInterface.register(FOLDED, folded_attention)
AttentionMaskInterface.register(FOLDED, sdpa_mask)


def _of_like_length(waiting: dict[int, list[int]]) -> list[list[int]]:
    """Group the waiting rows into batches of similar length (see `PADDED`)."""
    batches: list[list[int]] = []
    for row in sorted(waiting, key=lambda row: len(waiting[row])):
        if not batches or len(waiting[row]) > PADDED * len(waiting[batches[-1][0]]):
            batches.append([])
        batches[-1].append(row)
    return batches


class KeptCache:
    """Keys and values of conversations of different lengths, used as a `transformers.Cache`.

    A row holds a conversation from its first token on. In a forward pass, `rows` and `positions`
    (rows x new tokens) say where its tokens belong, and `seen` how many positions it may attend to.
    """

    def __init__(self) -> None:
        self.keys: list[Tensor] = []  # one per layer: (rows, heads, positions, dimensions)
        self.values: list[Tensor] = []
        self.rows: Tensor | None = None  # None: all of them, in order
        self.positions = torch.empty(0, 0, dtype=torch.long)
        self.seen = 0

    def update(
        self, keys: Tensor, values: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Called by an attention layer: store what is new, and return all that it attends to."""
        if layer_idx == len(self.keys):  # the first pass, over all rows
            self.keys.append(keys)
            self.values.append(values)
            return keys, values
        every = torch.arange(len(self.keys[layer_idx]), device=keys.device)
        at = every if self.rows is None else self.rows
        attended = []
        for all_kept, new in ((self.keys, keys), (self.values, values)):
            missing = self.seen - all_kept[layer_idx].shape[2]
            if missing > 0:
                room = (0, 0, 0, missing + ROOM)
                all_kept[layer_idx] = torch.nn.functional.pad(all_kept[layer_idx], room)
            kept = all_kept[layer_idx]
            kept[at[:, None], :, self.positions] = new.transpose(1, 2)
            kept = kept[:, :, : self.seen]
            attended.append(kept if self.rows is None else kept[at])
        return attended[0], attended[1]

    def keep(self, rows: Tensor) -> None:
        """Keep these rows only, in this order; a row may come several times."""
        self.keys = [one[rows] for one in self.keys]
        self.values = [one[rows] for one in self.values]


def without_adapter(model: Any) -> Any:
    """The `transformers` model inside a PEFT adapter's wrapper, the adapter's layers included."""
    return model.get_base_model() if isinstance(model, PeftModel) else model


class Writer:
    """Reads and writes conversations with one causal `transformers` model with full attention. On a
    CPU the model is switched to `FOLDED` attention for good. `eos` is the id that ends a turn.
    """

    def __init__(self, model: Any, temperature: float, turn_tokens: int, eos: int) -> None:
        self.model = without_adapter(model)
        self.temperature, self.turn_tokens, self.eos = temperature, turn_tokens, eos
        self.device = model.device
        if self.device.type == "cpu":
            self.model.set_attn_implementation(FOLDED)

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[list[int]],
        answer: Answer,
        streams: Sequence[Random] | None = None,
        grammars: Sequence[Turn] = (),
    ) -> None:
        """Write conversations from the ids of their prompts; `streams`, or torch, give the draws.

        `grammars` say what each may write in its turn; `answer` replaces them for the next turn.
        """
        self._cache = KeptCache()
        logits = self._read_prompts(prompts)
        self._length = torch.tensor([len(ids) for ids in prompts], device=self.device)
        turns: list[list[int]] = [[] for _ in prompts]
        seats = list(range(len(prompts)))  # the conversation that each row holds
        waiting: dict[int, list[int]] = {}  # row to the ids it is to read
        writing = list(range(len(prompts)))  # rows that `logits` are of
        over: set[int] = set()
        while True:
            drawn = [streams[seats[row]].random() for row in writing] if streams else None
            if grammars:
                logits = masked(logits, [grammars[seats[row]].next() for row in writing])
            tokens = self._choose(logits, drawn)
            fed: list[int] = []
            for row, token in zip(writing, tokens, strict=True):
                turn = turns[seats[row]]
                turn.append(token)
                if grammars:
                    grammars[seats[row]].add(token)
                if token != self.eos and len(turn) < self.turn_tokens:
                    fed.append(row)
                    continue
                then = answer(seats[row], turn)
                turns[seats[row]] = []
                if then is None:
                    over.add(row)
                else:  # the last token of the turn has not been read yet
                    waiting[row] = [token, *then]

            still_open = len(seats) - len(over)
            if not still_open:
                return
            if still_open < CROWDED * len(seats):
                stay = [row for row in range(len(seats)) if row not in over]
                now = {row: place for place, row in enumerate(stay)}
                self._cache.keep(torch.tensor(stay, device=self.device))
                self._length = self._length[stay]
                seats = [seats[row] for row in stay]
                waiting = {now[row]: ids for row, ids in waiting.items()}
                fed, over = [now[row] for row in fed], set()

            writing, parts = [], []
            if fed:
                parts.append(self._next(fed, [turns[seats[row]][-1] for row in fed]))
                writing += fed
            if waiting and (not fed or len(waiting) >= TOGETHER * still_open):
                for alike in _of_like_length(waiting):
                    parts.append(self._read(alike, [waiting[row] for row in alike]))
                    writing += alike
                waiting = {}
            logits = torch.cat(parts)

    def _choose(self, logits: Tensor, drawn: Sequence[float] | None) -> list[int]:
        """Choose the next token of each row of `logits`, by a uniform draw each, or by torch's."""
        if not self.temperature:
            return logits.argmax(-1).tolist()
        shares = torch.softmax(logits.float() / self.temperature, -1)
        if drawn is None:
            return torch.multinomial(shares, 1)[:, 0].tolist()
        up_to = shares.double().cumsum(-1)
        places = torch.tensor(drawn, dtype=up_to.dtype, device=up_to.device)[:, None]
        found = torch.searchsorted(up_to, places * up_to[:, -1:], right=True)
        return found[:, 0].clamp(max=shares.shape[1] - 1).tolist()

    def _read_prompts(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Logits after each prompt. Equal ones are read once."""
        numbers: dict[tuple[int, ...], int] = {}
        rows = [numbers.setdefault(tuple(prompt), len(numbers)) for prompt in prompts]
        ids, lengths = self._padded([list(prompt) for prompt in numbers])
        positions = torch.arange(ids.shape[1], device=self.device).expand_as(ids)
        logits = self._forward(ids, positions, lengths)
        self._cache.keep(torch.tensor(rows, device=self.device))
        return logits[rows]

    def _read(self, rows: list[int], tokens: list[list[int]]) -> Tensor:
        """Logits after reading `tokens` in these rows."""
        ids, lengths = self._padded(tokens)
        at = torch.tensor(rows, device=self.device)
        before = self._length[at]
        positions = before[:, None] + torch.arange(ids.shape[1], device=self.device)
        self._cache.rows = at
        logits = self._forward(ids, positions, lengths)
        self._length[at] = before + lengths
        return logits

    def _next(self, rows: list[int], tokens: list[int]) -> Tensor:
        """Logits after one more token in each of these rows."""
        # All rows take part, which saves copying; what the others get is overwritten later.
        at = torch.tensor(rows, device=self.device)
        ids = torch.full((len(self._length), 1), self.eos, device=self.device)
        ids[at, 0] = torch.tensor(tokens, device=self.device)
        self._cache.rows = None
        logits = self._forward(ids, self._length[:, None].clone(), torch.ones_like(self._length))
        self._length[at] += 1
        return logits[at]

    def _padded(self, tokens: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Ids of shape (rows, longest), padded on the right, and the lengths."""
        longest = max(map(len, tokens))
        ids = [row + [self.eos] * (longest - len(row)) for row in tokens]
        lengths = torch.tensor([len(row) for row in tokens], device=self.device)
        return torch.tensor(ids, device=self.device), lengths

    def _forward(self, ids: Tensor, positions: Tensor, lengths: Tensor) -> Tensor:
        """Logits at the last real token of each row."""
        self._cache.positions = positions
        self._cache.seen = int(positions.max()) + 1
        mask = torch.arange(self._cache.seen, device=self.device) <= positions[:, None, :, None]
        out = self.model.base_model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
        )
        hidden = out.last_hidden_state[torch.arange(len(ids), device=self.device), lengths - 1]
        return self.model.get_output_embeddings()(hidden)
