"""What a GRPO run of Qwen2.5 takes on one GPU: hours and memory, computed from shapes.

    config = make_config("recommended")
    print(estimate(config, T4, held_out=40))  # 1.6 to 2.4 h and 7.4 to 12.2 GiB

Everything is arithmetic on shapes, which are exact, and on how fast a GPU is at such work, which is
a range: a result is a range, too. Nothing here was measured on the GPUs it speaks of. Left out are
what happens once (downloads, loading, compiling) and what is small beside the rest: attention's own
products (5 % of the others at 2,000 tokens), the simulator (milliseconds a step), the optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..world.tasks import TASKS
from .settings import TrainingConfig

GIB = 2**30  # bytes
HALF, SINGLE = 2, 4  # bytes of a number in 16 and in 32 bit
# Bytes of a weight in NF4 with its constants quantised again: 4 bit, and 0.127 for the constants
# (Dettmers and others 2023, QLoRA, section 3).
NF4 = (4 + 0.127) / 8
# Bytes an AdamW step keeps of a trained weight in 32 bit: the weight, its gradient, two moments.
TRAINED = 4 * SINGLE


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, of whatever unit."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(
                f"a range must be 0 <= low <= high, got {self.low} to {self.high}; swap them?"
            )

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.high * factor)

    def __str__(self) -> str:
        return f"{self.low:.1f} to {self.high:.1f}"


# -- assumptions: replace them by measurements where there are some ------------------------------

# Share of the weights of linear layers that stay in 16 bit: none with plain NF4; Unsloth's 4-bit
# models leave out the layers that suffer most, here taken for a twelfth at most.
UNQUANTISED = Range(0.0, 0.08)
# Bytes of a logit at the peak of a backward pass: in 16 bit with its gradient, or with a copy in
# 32 bit and that one's gradient beside.
LOGIT_BYTES = Range(2 * HALF, 2 * HALF + 2 * SINGLE)
# Numbers of the width `intermediate` that a layer holds for a token at its peak. Reading: gate, up
# and their product. Backward: their gradients as well.
READ_WIDTHS, BACKWARD_WIDTHS = 3, 6
# Numbers of the width `hidden` that reading holds for a token: residual, normed, attention's out.
HIDDEN_WIDTHS = 3
# GiB that CUDA, its libraries' workspaces and fragments of freed memory take.
OVERHEAD = Range(0.4, 0.9)


@dataclass(frozen=True)
class Model:
    """Shapes of a Qwen2 decoder whose output layer is its embedding.

    Attributes:
        layers: number of blocks.
        hidden: width of the residual stream.
        intermediate: width of the MLP.
        heads: of queries.
        key_value_heads: of keys, and as many of values.
        head_size: width of a head.
        vocabulary: rows of the embedding.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    head_size: int
    vocabulary: int = 151_936

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of the seven linear layers of a block, those that LoRA adapts: q, k, v, o,
        gate, up, down.
        """
        queries, keys = self.heads * self.head_size, self.key_value_heads * self.head_size
        return (
            (self.hidden, queries),
            (self.hidden, keys),
            (self.hidden, keys),
            (queries, self.hidden),
            (self.hidden, self.intermediate),
            (self.hidden, self.intermediate),
            (self.intermediate, self.hidden),
        )

    @property
    def linear(self) -> int:
        """Weights of all linear layers: what is quantised, and what a token is multiplied by."""
        return self.layers * sum(one * other for one, other in self.shapes)

    @property
    def parameters(self) -> int:
        """All weights: linear layers, embedding, biases of q, k and v, two norms a block, and the
        last norm.
        """
        biases = (self.heads + 2 * self.key_value_heads) * self.head_size
        norms = 2 * self.layers * self.hidden + self.hidden
        return self.linear + self.vocabulary * self.hidden + self.layers * biases + norms

    @property
    def key_value_bytes(self) -> int:
        """Bytes of a token's keys and values in 16 bit."""
        return 2 * self.layers * self.key_value_heads * self.head_size * HALF

    def adapter(self, rank: int) -> int:
        """Weights of a LoRA adapter on all linear layers: rank x (in + out) each."""
        return self.layers * rank * sum(one + other for one, other in self.shapes)


# From `config.json` of Qwen/Qwen2.5-*-Instruct.
QWEN_05B = Model(24, 896, 4864, 14, 2, 64)
QWEN_15B = Model(28, 1536, 8960, 12, 2, 128)
QWEN_3B = Model(36, 2048, 11008, 16, 2, 128)
# By what a hub's name contains, whoever has quantised it.
MODELS = {
    "Qwen2.5-0.5B-Instruct": QWEN_05B,
    "Qwen2.5-1.5B-Instruct": QWEN_15B,
    "Qwen2.5-3B-Instruct": QWEN_3B,
}


@dataclass(frozen=True)
class KnownGpu:
    """A GPU, and how fast it is at this work.

    Attributes:
        name: what it is called.
        gib: memory that a program can use, GiB.
        tflops: matrix products in 16 bit that training and reading come to, 10^12 operations a
            second.
        layer_seconds: of a decode step, a layer of the model; such steps wait for kernels to be
            launched and for weights to be unpacked, whose number goes by the layers.
    """

    name: str
    gib: float
    tflops: Range
    layer_seconds: Range


# Memory: the data sheets' 16, 24 and 40 GB, less what the driver keeps; how much that is, is an
# assumption. Products: assumed at a quarter to two fifths of the data sheets' dense peaks in 16 bit
# (65, 121 and 312). Decoding: assumed at 55 to 70 ms a step of 36 layers in 4 bit on a T4, 30 to 50
# on an L4 and 25 to 40 on an A100.
T4 = KnownGpu("T4", 14.6, Range(15, 25), Range(0.055 / 36, 0.070 / 36))
L4 = KnownGpu("L4", 22.0, Range(30, 48), Range(0.030 / 36, 0.050 / 36))
A100 = KnownGpu("A100", 39.0, Range(80, 125), Range(0.025 / 36, 0.040 / 36))


@dataclass(frozen=True)
class EpisodeShape:
    """How long episodes are, in Qwen2.5's tokens.

    Attributes:
        turns: of an episode, the mean.
        answer_tokens: that the model writes a turn, the mean.
        most_turns: of the longest episode of those that are generated at once.
        most_answer_tokens: of the longest answer in each turn among them: all wait for it. None:
            each reaches the config's `turn_tokens`.
        prompt_tokens: of system prompt, tools and opening.
        reply_tokens: of what the tools answer a turn.

    Prompt and reply are the means of `results/tokens`, of `train` (`make tokens`).
    """

    turns: float = 6
    answer_tokens: float = 60
    most_turns: int = 8
    most_answer_tokens: int | None = None
    prompt_tokens: int = 985
    reply_tokens: int = 77

    def __post_init__(self) -> None:
        sizes = (self.answer_tokens, self.prompt_tokens, self.most_answer_tokens or 1)
        if self.turns < 1 or self.most_turns < self.turns or min(sizes) <= 0:
            raise ValueError(
                "an episode has at least one turn, most_turns >= turns, and tokens above 0, got "
                f"{self}; change what is less"
            )
        if self.reply_tokens < 0:
            raise ValueError(f"reply_tokens must be >= 0, got {self.reply_tokens}; 0 is no reply")

    def slowest_answer(self, turn_tokens: int) -> int:
        """Decode steps of a turn, those of the longest answer; `turn_tokens` is the bound."""
        return min(self.most_answer_tokens or turn_tokens, turn_tokens)

    def length(self, turn_tokens: int, completion_tokens: int) -> float:
        """Tokens of a whole episode: prompt + turns x (answer + reply), its completion cut at
        `completion_tokens`.
        """
        a_turn = min(self.answer_tokens, turn_tokens) + self.reply_tokens
        return self.prompt_tokens + min(self.turns * a_turn, completion_tokens)

    def read(self, turn_tokens: int, completion_tokens: int, anew: bool) -> float:
        """Tokens that are read (the prefill) in an episode. With keys and values kept, each token
        once. Anew each turn, turns x (the prompt and half of what comes to be beside it before the
        last turn).
        """
        length = self.length(turn_tokens, completion_tokens)
        if not anew:
            return length
        last = (length - self.prompt_tokens) * (self.turns - 1) / self.turns
        return self.turns * (self.prompt_tokens + last / 2)


# An assumption: half again the turns that a script packs its calls into (4.1), a few words beside
# each call, and in every turn somebody who writes until cut off.
USUAL = EpisodeShape()
# Two manners to hold against it: nobody writes more than 60 tokens, and everybody all that is
# allowed.
TERSE = EpisodeShape(most_turns=6, most_answer_tokens=60)
WORDY = EpisodeShape(turns=8, answer_tokens=256)


@dataclass(frozen=True)
class Estimate:
    """What a run takes.

    Attributes:
        seconds: of the whole run, evaluations included.
        step_seconds: of a training step.
        gib: memory at the peak, GiB.
        gpu: what it runs on.
    """

    seconds: Range
    step_seconds: Range
    gib: Range
    gpu: KnownGpu

    @property
    def fits(self) -> bool:
        """Whether even the most memory is there."""
        return self.gib.high <= self.gpu.gib

    def __str__(self) -> str:
        return f"{self.seconds * (1 / 3600)} h and {self.gib} GiB"


def known_model(name: str) -> Model:
    """The shapes of a model by its name on a hub; `ValueError` for one that is not in `MODELS`."""
    for known, model in MODELS.items():
        if known.lower() in name.lower():
            return model
    raise ValueError(
        f"no shapes are known of {name!r}; choose one of {', '.join(MODELS)}, or give its Model"
    )


def product_seconds(operations: float, gpu: KnownGpu) -> Range:
    """Seconds of so many operations in matrix products."""
    return Range(operations / (gpu.tflops.high * 1e12), operations / (gpu.tflops.low * 1e12))


def read_seconds(model: Model, gpu: KnownGpu, tokens: float) -> Range:
    """Seconds to read tokens: a product and a sum for each weight of a linear layer."""
    return product_seconds(2 * model.linear * tokens, gpu)


def decode_seconds(model: Model, gpu: KnownGpu, steps: float) -> Range:
    """Seconds of so many decode steps, each a token more of every episode that is still written."""
    return gpu.layer_seconds * (model.layers * steps)


def generation_seconds(
    config: TrainingConfig, model: Model, gpu: KnownGpu, episode: EpisodeShape
) -> Range:
    """Seconds to play the episodes of a step, all at once.

    TRL's loop has every conversation read anew at each turn, ours reads each token once. All wait
    for the longest answer of a turn.
    """
    read = episode.read(config.turn_tokens, config.completion_tokens, anew=config.loop == "trl")
    steps = episode.most_turns * episode.slowest_answer(config.turn_tokens)
    return read_seconds(model, gpu, config.episodes * read) + decode_seconds(model, gpu, steps)


def backward_seconds(
    config: TrainingConfig, model: Model, gpu: KnownGpu, episode: EpisodeShape
) -> Range:
    """Seconds of the gradient of a step's episodes with gradient checkpointing: each token forward,
    forward again, and backward through frozen weights, which costs as much as forward; the
    gradients of the weights, where all are trained, cost that once more.
    """
    passes = 3 if config.lora_rank else 4
    length = episode.length(config.turn_tokens, config.completion_tokens)
    return read_seconds(model, gpu, passes * config.episodes * length)


def step_seconds(
    config: TrainingConfig, model: Model, gpu: KnownGpu, episode: EpisodeShape
) -> Range:
    """Seconds of a training step: its episodes and their gradient."""
    played = generation_seconds(config, model, gpu, episode)
    return played + backward_seconds(config, model, gpu, episode)


def evaluation_seconds(
    config: TrainingConfig,
    model: Model,
    gpu: KnownGpu,
    episode: EpisodeShape,
    episodes: int,
    batch: int,
) -> Range:
    """Seconds to play `episodes`, `batch` at once, by our own `Writer`, which reads each token
    once.
    """
    read = episode.read(config.turn_tokens, config.completion_tokens, anew=False)
    batches = -(-episodes // batch)
    steps = batches * episode.most_turns * episode.slowest_answer(config.turn_tokens)
    return read_seconds(model, gpu, episodes * read) + decode_seconds(model, gpu, steps)


def weights_gib(config: TrainingConfig, model: Model) -> Range:
    """GiB of the weights, and of what is kept of those that are trained.

    In 4 bit the embedding, biases and norms stay in 16 bit, and so does a share of the rest.
    """
    if not config.lora_rank:
        return Range(1, 1) * (model.parameters * TRAINED / GIB)
    adapter = model.adapter(config.lora_rank) * TRAINED
    if not config.load_in_4bit:
        return Range(1, 1) * ((model.parameters * HALF + adapter) / GIB)
    others = (model.parameters - model.linear) * HALF + adapter

    def total(unquantised: float) -> float:
        linear = model.linear * (unquantised * HALF + (1 - unquantised) * NF4)
        return (linear + others) / GIB

    return Range(total(UNQUANTISED.low), total(UNQUANTISED.high))


def reading_gib(model: Model, episodes: int, tokens: float) -> float:
    """GiB beside the weights when episodes of so many tokens are read at once: keys and values of
    all layers, and of the layer at work its MLP and its residual stream (attention, before it,
    holds less). Logits are of the last token alone, and small.
    """
    layer = READ_WIDTHS * model.intermediate + HIDDEN_WIDTHS * model.hidden
    return episodes * tokens * (model.key_value_bytes + HALF * layer) / GIB


def gradient_gib(model: Model, episodes: int, tokens: float, completion: float) -> Range:
    """GiB beside the weights when the gradient of so many episodes is taken: a checkpoint of the
    residual stream for each layer, one layer in full, and the logits of the completion.
    """
    kept = model.layers * model.hidden * HALF
    layer = HALF * (BACKWARD_WIDTHS * model.intermediate + 2 * HIDDEN_WIDTHS * model.hidden)
    logits = LOGIT_BYTES * (completion * model.vocabulary)
    fixed = tokens * (kept + layer)
    return (Range(fixed, fixed) + logits) * (episodes / GIB)


def peak_gib(config: TrainingConfig, model: Model, episode: EpisodeShape, batch: int = 0) -> Range:
    """GiB at the peak: weights, overhead, and the larger of reading all episodes of a step (or a
    `batch` of the evaluation) and the gradient of a micro-batch.

    Low is with episodes as long as `episode` has them; high is with all of them as long as
    `completion_tokens` lets them be.
    """
    episodes = max(config.episodes, batch)
    usual = episode.length(config.turn_tokens, config.completion_tokens)
    longest = episode.prompt_tokens + config.completion_tokens
    low = max(
        reading_gib(model, episodes, usual),
        gradient_gib(model, config.at_once, usual, usual - episode.prompt_tokens).low,
    )
    high = max(
        reading_gib(model, episodes, longest),
        gradient_gib(model, config.at_once, longest, config.completion_tokens).high,
    )
    return weights_gib(config, model) + Range(low, high) + OVERHEAD


def estimate(
    config: TrainingConfig,
    gpu: KnownGpu = T4,
    episode: EpisodeShape = USUAL,
    held_out: int = 0,
    batch: int = 24,
    model: Model | None = None,
) -> Estimate:
    """What a training run takes, with an evaluation before it and one after.

    Args:
        config: of the run.
        gpu: it runs on.
        episode: how long episodes are.
        held_out: incidents a task of each evaluation; 0 for none.
        batch: episodes an evaluation plays at once.
        model: shapes; by default those of the model that `config` names.

    Raises:
        ValueError: for a model that is not known, or counts that make no sense.
    """
    if held_out < 0 or batch < 1:
        raise ValueError(
            f"held_out must be >= 0 and batch >= 1, got {held_out} and {batch}; held_out=0 is no "
            "evaluation"
        )
    model = model or known_model(config.model)
    a_step = step_seconds(config, model, gpu, episode)
    evaluation = evaluation_seconds(config, model, gpu, episode, len(TASKS) * held_out, batch)
    memory = peak_gib(config, model, episode, batch if held_out else 0)
    return Estimate(a_step * config.steps + evaluation * 2, a_step, memory, gpu)
