"""What a GRPO run of Qwen takes on a T4: hours and memory, computed from shapes.

    print(estimate(make_config("recommended"), held_out=40))  # hours, and GiB at the peak

Shapes are exact. The speed of a GPU is assumed to lie in a range, so every result is a range, too.
Nothing here was measured. Not included are downloads, loading, compiling, attention's own products
(5 % of the others at 2,000 tokens), the simulator and the optimizer.
"""

from typing import NamedTuple

from logtriage.world.tasks import TASKS

from .settings import TrainingConfig

GIB = 2**30  # bytes
NF4 = (4 + 0.127) / 8  # bytes of a weight, with double quantisation (Dettmers 2023, section 3)
TRAINED = 16  # bytes of a trained weight in 32 bit, with its gradient and AdamW's state

# Assumptions; replace them by measurements.
TURNS, LONGEST_TURNS = 6, 8  # of an episode in the mean, and of the longest of those played at once
ANSWER = 60  # mean tokens that the model writes per turn; some episode reaches `turn_tokens`
PROMPT, REPLY = 985, 77  # tokens of an opening with tools, and of a turn's replies: results/tokens
UNQUANTISED = 0.08  # share of the linear layers that Unsloth leaves in 16 bit, at most
# GiB of CUDA and its libraries. High: and of memory in pieces too small to use, without which the
# estimate would be that 32 full episodes of the 3B fit; they did not (results/gpu).
OVERHEAD = (0.4, 1.6)


class Range(NamedTuple):
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.1f} to {self.high:.1f}"


class Model(NamedTuple):
    """Shapes of a Qwen2 or Qwen3 decoder whose output layer is its embedding."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    head_size: int
    vocabulary: int = 151_936
    qwen3: bool = False

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(in, out) of a block's linear layers: q, k, v, o, gate, up, down."""
        queries, keys = self.heads * self.head_size, self.key_value_heads * self.head_size
        attention = [(self.hidden, queries), *[(self.hidden, keys)] * 2, (queries, self.hidden)]
        up, down = (self.hidden, self.intermediate), (self.intermediate, self.hidden)
        return [*attention, up, up, down]

    @property
    def linear(self) -> int:
        """Weights of all linear layers: they are quantised, and multiply every token."""
        return self.layers * sum(rows * columns for rows, columns in self.shapes)

    @property
    def others(self) -> int:
        """Weights of the embedding, norms, and biases of q, k and v (in Qwen3 norms of q and k)."""
        vectors = 2 if self.qwen3 else self.heads + 2 * self.key_value_heads
        norms = (2 * self.layers + 1) * self.hidden
        return self.vocabulary * self.hidden + self.layers * vectors * self.head_size + norms

    @property
    def weights(self) -> int:
        return self.linear + self.others

    def adapter(self, rank: int) -> int:
        """Weights of a LoRA adapter."""
        return self.layers * rank * sum(rows + columns for rows, columns in self.shapes)


# From each model's `config.json`; a key is part of the model's name on a hub.
MODELS = {
    "Qwen2.5-0.5B-Instruct": Model(24, 896, 4864, 14, 2, 64),
    "Qwen2.5-3B-Instruct": Model(36, 2048, 11008, 16, 2, 128),
    "Qwen3-4B-Instruct-2507": Model(36, 2560, 9728, 32, 8, 128, qwen3=True),
}


def known_model(name: str) -> Model:
    """The shapes of a model by its name; `ValueError` for one that is not known."""
    for part, shape in MODELS.items():
        if part.lower() in name.lower():
            return shape
    raise ValueError(f"no shapes are known of {name!r}; choose one of {', '.join(MODELS)}")


class KnownGpu(NamedTuple):
    gib: float  # memory that a program can use
    tflops: Range  # of matrix products in 16 bit
    # Seconds of a decode step of Qwen2.5-3B. It waits for kernels, so it grows with the layers.
    decode: Range


# Memory: the data sheet's, less what the driver keeps. Products: a quarter to two fifths of the
# data sheet's dense peak in 16 bit (65). Decode steps: assumed; the upper end lies within the 110
# to 340 ms that TRL's own T4 table scales to (docs/t4.md).
T4 = KnownGpu(14.6, Range(15, 25), Range(0.055, 0.210))


class Estimate(NamedTuple):
    hours: Range  # of a run
    step_seconds: Range
    gib: Range  # at the peak
    fits: bool  # whether even the high end does

    def __str__(self) -> str:
        return f"{self.hours} h and {self.gib} GiB"


def estimate(
    config: TrainingConfig,
    held_out: int = 0,
    batch: int = 0,
    model: Model | None = None,
    decode: float | None = None,
) -> Estimate:
    """Estimate what a run takes on a T4, with an evaluation before and after it on `held_out`
    incidents of each task, `batch` at once (0: as many as a step has episodes). `decode` is the
    measured seconds of a decode step; None to assume them. `ValueError` for an unknown model.
    """
    batch = batch or config.episodes
    model = model or known_model(config.model)

    completion = min(TURNS * (min(ANSWER, config.turn_tokens) + REPLY), config.completion_tokens)
    length = PROMPT + completion
    prefill: float = length
    if config.loop == "trl":  # the whole conversation is read again in each turn
        prefill = TURNS * (PROMPT + completion * (TURNS - 1) / TURNS / 2)
    # Gradient checkpointing: forward, forward again, backward; one more if all weights are trained.
    passes = 3 if config.lora_rank else 4
    trained = config.episodes * (prefill + passes * length)  # tokens
    held = len(TASKS) * held_out

    def seconds(tflops: float, assumed: float) -> tuple[float, float]:
        """Seconds of a step, and of all steps and evaluations. A warm-up adds an evaluation."""
        a_token = 2 * model.linear / tflops / 1e12
        a_decode_step = assumed * model.layers / 36 if decode is None else decode
        # In each turn all episodes wait for the longest answer.
        decoded = a_decode_step * LONGEST_TURNS * config.turn_tokens
        step = a_token * trained + decoded
        evaluation = a_token * held * length + decoded * -(-held // batch)
        return step, step * config.steps + (3 if config.warm_up else 2) * evaluation

    def gib(tokens: float, logit_bytes: int, unquantised: float, overhead: float) -> float:
        weights: float = model.weights * TRAINED
        if config.lora_rank:
            weight = unquantised * 2 + (1 - unquantised) * NF4 if config.load_in_4bit else 2
            weights = model.linear * weight + model.others * 2
            weights += model.adapter(config.lora_rank) * TRAINED
        together = max(config.episodes, batch if held_out else 0)
        # Keys and values of all layers, and the MLP and residual stream of the current layer.
        kept = 2 * 2 * model.layers * model.key_value_heads * model.head_size
        reading = together * tokens * (kept + 6 * (model.intermediate + model.hidden))
        # A checkpoint of the residual stream for each layer, one layer whole, and the logits.
        layer = 12 * (model.intermediate + model.hidden) + 2 * model.layers * model.hidden
        logits = (tokens - PROMPT) * model.vocabulary * logit_bytes
        gradient = config.at_once * (tokens * layer + logits)
        return (weights + max(reading, gradient)) / GIB + overhead

    fast = seconds(T4.tflops.high, T4.decode.low)
    slow = seconds(T4.tflops.low, T4.decode.high)
    # Low: logits and their gradient in 16 bit. High: a copy of both in 32 bit, too.
    low = gib(length, 4, 0.0, OVERHEAD[0])
    high = gib(PROMPT + config.completion_tokens, 12, UNQUANTISED, OVERHEAD[1])
    hours = Range(fast[1] / 3600, slow[1] / 3600)
    return Estimate(hours, Range(fast[0], slow[0]), Range(low, high), fits=high <= T4.gib)
