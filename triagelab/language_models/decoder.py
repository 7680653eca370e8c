"""Continuous batching: one model writes many conversations at once, and caches keys and values.

`transformers` generates turn by turn, and reads the whole conversation again each time. Here what
all conversations begin with is read once, and one that has ended a turn is answered, together with
a few others, while the rest still write. What a grammar forces is read in one pass, together with
the token chosen before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
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
PADDED = 64  # most tokens that are read in vain, or twice, to save a pass
LOGIT_SCALES = ("logit_scale", "logits_scaling")  # as Cohere and Granite call it
ROOM = 128  # tokens by which the memory for keys and values grows
BLOCK = 256  # queries whose attention is computed together, where it is to have a gradient

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
    if query.requires_grad and torch.is_autocast_enabled("cpu"):
        return attention_in_blocks(query, key, value, mask, options["scaling"]), None
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


def attention_in_blocks(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """Causal attention of some queries at a time, with no key that comes after all of them. In bf16
    on a CPU this, with its gradient, takes half the time of torch's own kernel.
    """
    rows, heads, length, size = query.shape
    shared, before = key.shape[1], key.shape[2] - length
    if mask is None:
        mask = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
    attended = []
    for start in range(0, length, BLOCK):
        asking = query[:, :, start : start + BLOCK]
        count = asking.shape[2]
        seen = before + start + count
        folded = (asking * scale).reshape(rows, shared, -1, size)
        scores = folded @ key[:, :, :seen].transpose(2, 3)
        hidden = ~mask[:, :, None, start : start + count, :seen]
        scores = scores.view(rows, shared, -1, count, seen)
        scores += hidden.to(scores.dtype) * torch.finfo(scores.dtype).min
        weights = scores.softmax(-1).view(rows, shared, -1, seen)
        attended.append((weights @ value[:, :, :seen]).view(rows, heads, count, size))
    return torch.cat(attended, 2).transpose(1, 2)


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


@dataclass(eq=False)
class Row:
    """A row of the batch, with the conversation that it holds."""

    seat: int  # the conversation's number
    place: int  # the row's number
    turn: list[int] = field(default_factory=list)  # ids of its turn so far
    forced: list[int] = field(default_factory=list)  # ids that the grammar forces to come next
    unread: list[int] = field(default_factory=list)  # ids to read before the next choice
    over: bool = False


def _of_like_length(rows: list[Row]) -> list[list[Row]]:
    """Group rows into batches by the length of what they are to read (see `PADDED`)."""
    batches: list[list[Row]] = []
    longest = 0
    for row in sorted(rows, key=lambda row: len(row.unread)):
        if not batches or (len(row.unread) - longest) * len(batches[-1]) > PADDED:
            batches.append([])
        batches[-1].append(row)
        longest = len(row.unread)
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
        self.keys = [layer[rows] for layer in self.keys]
        self.values = [layer[rows] for layer in self.values]


def shared_prefix(prompts: Sequence[list[int]]) -> list[int]:
    """The ids that all prompts begin with, except the last id of any: after it there are logits."""
    columns = zip(*(ids[:-1] for ids in prompts), strict=False)
    return [column[0] for column in takewhile(lambda column: len({*column}) == 1, columns)]


def without_adapter(model: Any) -> Any:
    """The `transformers` model inside a PEFT adapter's wrapper, the adapter's layers included."""
    return model.get_base_model() if isinstance(model, PeftModel) else model


def check_attention(model: Any) -> None:
    """Raise `ValueError` for a model that `Writer` would read wrongly, without any other sign: one
    with attention to a window or a chunk, with soft caps, or that scales its logits.
    """
    settings = without_adapter(model).config.get_text_config().to_dict()
    longest = settings.get("max_position_embeddings") or 0
    windows = ("sliding_window", "attention_chunk_size")
    unlike = [name for name in windows if 0 < (settings.get(name) or 0) < longest]
    unlike += [name for name, value in settings.items() if "softcap" in name and value]
    unlike += [name for name in LOGIT_SCALES if settings.get(name) not in (None, 1, 1.0)]
    known = {"full_attention", "sliding_attention"}
    unlike += sorted({*(settings.get("layer_types") or ())} - known)
    if unlike:
        values = ", ".join(f"{name} {settings.get(name, '')}".strip() for name in unlike)
        raise ValueError(
            f"{model.config.name_or_path or settings['model_type']} cannot be played in memory: "
            f"it would be read wrongly, as it has {values}; serve it, and play it by --endpoint"
        )


class Writer:
    """Reads and writes conversations with one causal `transformers` model with full attention. On a
    CPU the model is switched to `FOLDED` attention for good. `eos` is the id that ends a turn.
    `ValueError` as in `check_attention`.
    """

    def __init__(self, model: Any, temperature: float, turn_tokens: int, eos: int) -> None:
        check_attention(model)
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
        self._logits = self._read_prompts(prompts)  # after the last token that each row has read
        self._length = torch.tensor([len(ids) for ids in prompts], device=self.device)
        self._rows = [Row(i, i) for i in range(len(prompts))]

        def read_later(row: Row, ids: list[int]) -> None:
            row.forced = grammars[row.seat].forced() if grammars else []
            row.unread += [*ids, *row.forced]

        for row in self._rows:
            read_later(row, [])
        writing = self._rows
        waiting: dict[Row, list[int]] = {}  # rows that have ended a turn, and what they then read
        while True:
            # Forced tokens take part one by one: they use up a draw each, and the order in which
            # rows get torch's draws is that in which they write.
            drawn = [streams[row.seat].random() for row in writing] if streams else None
            if any(row.unread and not row.forced for row in writing):
                unread = [row for row in writing if row.unread]
                self._read([row for row in unread if not self._ends(row.turn + row.forced)])
            fed: list[Row] = []
            for row, token in zip(writing, self._next(writing, drawn, grammars), strict=True):
                row.turn.append(token)
                if row.forced:
                    row.forced.pop(0)
                else:
                    if grammars:
                        grammars[row.seat].add(token)
                    read_later(row, [token])
                if not self._ends(row.turn):
                    fed.append(row)
                    continue
                then = answer(row.seat, row.turn)
                row.turn, row.over = [], then is None
                if then is not None:
                    waiting[row] = then

            still_open = sum(not row.over for row in self._rows)
            if not still_open:
                return
            if still_open < CROWDED * len(self._rows):
                self._drop_finished()
            writing = fed
            if waiting and (not fed or len(waiting) >= TOGETHER * still_open):
                writing = fed + sorted(waiting, key=lambda row: len(waiting[row]))
                for row, ids in waiting.items():
                    read_later(row, ids)
                waiting = {}

    def _ends(self, turn: list[int]) -> bool:
        return turn[-1:] == [self.eos] or len(turn) >= self.turn_tokens

    def _next(
        self, rows: list[Row], drawn: Sequence[float] | None, grammars: Sequence[Turn]
    ) -> list[int]:
        """The next token of each row: the one that is forced, or one that is chosen."""
        tokens = [row.forced[0] if row.forced else self.eos for row in rows]
        # Torch makes its draws for all rows at once.
        every = self.temperature and drawn is None
        asked = [at for at, row in enumerate(rows) if every or not row.forced]
        if asked:
            writing = [rows[at] for at in asked]
            logits = self._logits[[row.place for row in writing]]
            if grammars:
                allowed = [row.forced[:1] or grammars[row.seat].allowed[-1] for row in writing]
                logits = masked(logits, allowed)
            chosen = self._choose(logits, [drawn[at] for at in asked] if drawn else None)
            for at, token in zip(asked, chosen, strict=True):
                tokens[at] = token
        return tokens

    def _choose(self, logits: Tensor, drawn: Sequence[float] | None) -> list[int]:
        """Choose the next token of each row of `logits`, by a uniform draw each, or by torch's."""
        if not self.temperature:
            return logits.argmax(-1).tolist()
        shares = torch.softmax(logits.float() / self.temperature, -1)
        if drawn is None:
            return torch.multinomial(shares, 1)[:, 0].tolist()
        up_to = shares.double().cumsum(-1)
        places = torch.tensor(drawn, dtype=up_to.dtype, device=up_to.device)[:, None]
        chosen = torch.searchsorted(up_to, places * up_to[:, -1:], right=True)
        return chosen[:, 0].clamp(max=shares.shape[1] - 1).tolist()

    def _read_prompts(self, prompts: Sequence[list[int]]) -> Tensor:
        """Logits after each prompt. Equal ones are read once, and so is what all begin with."""
        numbers: dict[tuple[int, ...], int] = {}
        rows = [numbers.setdefault(tuple(prompt), len(numbers)) for prompt in prompts]
        different = [list(prompt) for prompt in numbers]
        shared = len(shared_prefix(different))
        if shared * (len(different) - 1) > PADDED:  # that is worth a pass
            self._read_from(0, [different[0][:shared]])
            self._cache.keep(torch.zeros(len(different), dtype=torch.long, device=self.device))
        else:
            shared = 0
        logits = self._read_from(shared, [ids[shared:] for ids in different])
        self._cache.keep(torch.tensor(rows, device=self.device))
        return logits[rows]

    def _read_from(self, start: int, tokens: list[list[int]]) -> Tensor:
        """Logits after reading these tokens, one list per row, from this position on."""
        ids, lengths = self._padded(tokens)
        positions = start + torch.arange(ids.shape[1], device=self.device).expand_as(ids)
        return self._forward(ids, positions, lengths)

    def _read(self, rows: list[Row]) -> None:
        """Read what is unread in these rows, and keep the logits after it."""
        for alike in _of_like_length(rows):
            reading = set(alike)
            idle = len(self._rows) - len(alike)
            # If all rows take part, none is copied; what the others get is overwritten later.
            every = idle * len(alike[-1].unread) <= PADDED
            part = self._rows if every else alike
            ids, lengths = self._padded([row.unread if row in reading else [] for row in part])
            at = torch.tensor([row.place for row in part], device=self.device)
            positions = self._length[at, None] + torch.arange(ids.shape[1], device=self.device)
            self._cache.rows = None if every else at
            logits = self._forward(ids, positions, lengths)
            self._logits[at[lengths > 0]] = logits
            self._length[at] += lengths
            for row in alike:
                row.unread = []

    def _drop_finished(self) -> None:
        """Drop the rows whose conversations are over."""
        self._rows = [row for row in self._rows if not row.over]
        stay = torch.tensor([row.place for row in self._rows], device=self.device)
        self._cache.keep(stay)
        self._length, self._logits = self._length[stay], self._logits[stay]
        for place, row in enumerate(self._rows):
            row.place = place

    def _padded(self, tokens: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Ids of shape (rows, longest), padded on the right, and the lengths."""
        longest = max(map(len, tokens))
        ids = [row + [self.eos] * (longest - len(row)) for row in tokens]
        lengths = torch.tensor([len(row) for row in tokens], device=self.device)
        return torch.tensor(ids, device=self.device), lengths

    def _forward(self, ids: Tensor, positions: Tensor, lengths: Tensor) -> Tensor:
        """Logits at the last token of each row that reads any."""
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
        reading = lengths.nonzero()[:, 0]
        hidden = out.last_hidden_state[reading, lengths[reading] - 1]
        return self.model.get_output_embeddings()(hidden)
