"""Load language models with plain `transformers`: from a folder or a hub, whole or in 4 bit, with
or without an adapter.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logtriage.play.conversation import NATIVE, TEXT, Protocol
from logtriage.policies.policy import Policy

from .smollm2 import SMOLLM2, converted

# Maps models of a hub to the same weights in 4 bit, quantised by Unsloth. Training and evaluation
# in 4 bit start from these, because quantising the whole models again would give other weights.
QUANTISED = {
    f"Qwen/Qwen2.5-{size}-Instruct": f"unsloth/Qwen2.5-{size}-Instruct-unsloth-bnb-4bit"
    for size in ("0.5B", "1.5B", "3B", "7B")
}
QUANTISED |= {"Qwen/Qwen3-4B-Instruct-2507": "unsloth/Qwen3-4B-Instruct-2507-unsloth-bnb-4bit"}
# The embedded agent that is in the package, and the base that it was trained from.
AGENT = Path(__file__).parents[1] / "agent"
CHUNK = 2**20  # bytes of weights that are in memory while their digest is made
SHIPPED = {"agent": AGENT / "trained", "base": AGENT / "base"}
WHOLE = {quantised.lower(): whole for whole, quantised in QUANTISED.items()}  # Unsloth lowers them
# How TRL's template prints a tool, and the same without `return`, which is equal for all our tools
# and absent from Qwen's own schemas. Tools are read, and paid for, at every turn.
WHOLE_SCHEMA = "{{- tool | tojson }}"
SHORT_SCHEMA = """\
{%- set whole = tool.function %}
        {%- set function = {
            "name": whole.name, "description": whole.description, "parameters": whole.parameters
        } %}
        {{- {"type": tool.type, "function": function} | tojson }}"""


def resolve_model(source: str | Path) -> str | Path:
    """Return the folder of a model that is in a package: `agent` and `base` in ours, `smollm2` in
    its own (`ValueError` if that is not installed). Return any other source as it is.
    """
    if str(source) == SMOLLM2:
        return converted()
    return SHIPPED.get(str(source), source)


def weights_digest(folder: Path) -> str:
    """Digest of the weights in a folder; empty for a hub's model, which has no folder here."""
    digest, files = hashlib.sha256(), sorted(folder.glob("*.safetensors"))
    for path in files:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:16] if files else ""


def quantised_name(source: str | Path) -> str:
    """Where a model's weights in 4 bit are; the model itself if they are made from it."""
    return QUANTISED.get(str(source), str(source))


def computes_bf16() -> bool:
    """Whether this machine has instructions for bf16: its GPU, or the processor if it has none."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)  # a T4 has none
    return bool(torch.cpu.get_capabilities().get("avx512_bf16"))


def runnable(source: str | Path, load_in_4bit: bool) -> tuple[str, bool]:
    """The name and precision (whether 4 bit) with which a model can run on this machine."""
    import torch

    name = str(source).lower()
    in_4bit = load_in_4bit or name in WHOLE
    if in_4bit and not torch.cuda.is_available():
        return WHOLE.get(name, str(source)), False
    return str(source), in_4bit


def load_language_model(
    source: str | Path,
    load_in_4bit: bool = False,
    adapter: str | Path | None = None,
    trainable: bool = False,
) -> tuple[Any, Any]:
    """Load (model, tokenizer) from a folder or a hub; `ValueError` if that fails.

    `load_in_4bit` loads weights in NF4 (see `QUANTISED`), or quantises with bitsandbytes; it
    needs an NVIDIA GPU. `adapter` is a LoRA adapter to put on top, to be trained if `trainable`.
    """
    model, tokenizer = _loaded(source, load_in_4bit, adapter, trainable)
    return model, with_tool_calls(tokenizer, qwen=is_qwen(model, tokenizer))


def load_player(
    source: str | Path,
    load_in_4bit: bool = False,
    adapter: str | Path | None = None,
    protocol: Protocol = NATIVE,
) -> tuple[Any, Any, Protocol]:
    """`load_language_model` for any model that can chat. Also returns the protocol, which is `TEXT`
    if TRL does not know the chat template and so could not parse calls.
    """
    model, tokenizer = _loaded(source, load_in_4bit, adapter)
    if not tokenizer.chat_template:
        raise ValueError(f"{source} has no chat template, so it cannot be talked to; name another")
    if protocol is TEXT:
        return model, tokenizer, TEXT
    try:
        parsing = with_tool_calls(tokenizer, qwen=is_qwen(model, tokenizer))
    except ValueError:  # raised by TRL for a template that it does not know
        return model, tokenizer, TEXT
    return model, parsing, NATIVE


def _loaded(
    source: str | Path, load_in_4bit: bool, adapter: str | Path | None, trainable: bool = False
) -> tuple[Any, Any]:
    """(model, tokenizer), the tokenizer as it was saved; see `load_language_model`."""
    import torch
    import transformers
    from peft import PeftModel
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    gpu = torch.cuda.is_available()
    half = gpu and not computes_bf16()
    options: dict[str, Any] = {"device_map": "auto"} if gpu else {}
    if load_in_4bit and not gpu:
        raise ValueError("4 bit needs an NVIDIA GPU, and none was found; leave it out on a CPU")
    place = resolve_model(source)
    name = quantised_name(place) if load_in_4bit else str(place)
    # AutoTokenizer gives every Qwen2 model Qwen's own pre-tokenizer, whatever was saved; ours must
    # be loaded as saved.
    with friendly_errors(name):
        generic = get_tokenizer_config(name).get("tokenizer_class") == "TokenizersBackend"
        fast, auto = transformers.PreTrainedTokenizerFast, transformers.AutoTokenizer
        tokenizer = (fast if generic else auto).from_pretrained(name)
        config = transformers.AutoConfig.from_pretrained(name)
        if load_in_4bit and name.lower() not in WHOLE:
            options["quantization_config"] = transformers.BitsAndBytesConfig(
                load_in_4bit=True,
                bnb_4bit_quant_type="nf4",
                bnb_4bit_use_double_quant=True,
                bnb_4bit_compute_dtype=torch.float16 if half else torch.bfloat16,
            )
        model = transformers.AutoModelForCausalLM.from_pretrained(
            name,
            config=computed_in_half(config) if half else config,
            dtype=torch.float16 if half else "auto",
            **options,
        )
    if place != source:  # an adapter's record names the model, not a folder of this machine
        model.name_or_path = str(source)
    if adapter is not None:
        with friendly_errors(str(adapter)):
            model = PeftModel.from_pretrained(model, str(adapter), is_trainable=trainable)
    return model.eval(), tokenizer


def is_adapter(folder: str | Path) -> bool:
    """Whether there is an adapter in this folder; False for a name."""
    return (Path(folder) / "adapter_config.json").exists()


def base_of(adapter: str | Path) -> tuple[str, bool]:
    """The model that an adapter was trained on, as `runnable` has it."""
    from peft import PeftConfig

    with friendly_errors(str(adapter)):
        record = PeftConfig.from_pretrained(str(adapter))
    return runnable(record.base_model_name_or_path, False)


def load_agent(source: str | Path, constrained: bool = True) -> Policy:
    """Load a trained agent as a greedy policy, from a folder or hub name of a model or an adapter.
    It runs in 4 bit if it was trained so and there is an NVIDIA GPU, else unquantised.

    If `constrained`, it writes only calls that exist (see `grammar`), provided that its chat
    template allows that.
    """
    from transformers.utils import find_adapter_config_file

    from .grammar import writes_as_qwen
    from .language_models import LanguageModelPolicy

    name = str(resolve_model(source))
    with friendly_errors(name):
        adapted = find_adapter_config_file(name) is not None
    if not adapted:
        model, tokenizer = load_language_model(name)
    else:
        base, in_4bit = base_of(name)
        model, tokenizer = load_language_model(base, in_4bit, adapter=name)
    checked = constrained and writes_as_qwen(tokenizer)
    return LanguageModelPolicy(model, tokenizer, name=name, constrained=checked)


@contextmanager
def friendly_errors(name: str) -> Iterator[None]:
    """Turn whatever these libraries raise when loading fails into one `ValueError`, except when a
    GPU is out of memory.
    """
    import torch
    from safetensors import SafetensorError

    try:
        yield
    except torch.OutOfMemoryError:  # the folder is whole
        raise
    except (OSError, ValueError, LookupError, TypeError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        why = f"no such folder here, and the hub answered: {reason}"
        if Path(name).is_dir():
            damaged = "the folder is incomplete or damaged, so save or download the model again"
            why = f"{type(error).__name__}: {reason}; {damaged}"
        raise ValueError(f"cannot load {name}: {why}") from error


def computed_in_half(config: Any) -> Any:
    """Make the config of quantised weights compute in fp16, because a T4 only emulates bf16."""
    quantisation = getattr(config, "quantization_config", None)
    if quantisation is not None:
        config.quantization_config = {**quantisation, "bnb_4bit_compute_dtype": "float16"}
    return config


def is_qwen(model: Any, tokenizer: Any) -> bool:
    """Whether a model talks as Qwen2.5 does: a Qwen2, or a Qwen3 that never thinks (Instruct-2507),
    or any model that was saved with our template, as a SmolLM2. Instruct-2507 is known by its name,
    as Unsloth's template has thoughts.
    """
    kind, name = model.config.model_type, str(model.config.name_or_path).lower()
    template = str(tokenizer.chat_template)
    thinks = "<think>" in template and "instruct-2507" not in name
    return "qwen2" in kind or (kind == "qwen3" and not thinks) or SHORT_SCHEMA in template


def qwen_template(short: bool) -> str:
    """TRL's Qwen2.5 template, which renders the same text as Qwen3-4B-Instruct-2507's; `short`
    prints tools in short.
    """
    from trl.chat_template_utils import qwen2_5_chat_template

    return qwen2_5_chat_template.replace(WHOLE_SCHEMA, SHORT_SCHEMA if short else WHOLE_SCHEMA)


def with_tool_calls(tokenizer: Any, qwen: bool = True) -> Any:
    """Make a tokenizer parse tool calls; `ValueError` for a template that TRL does not know.

    `qwen` uses `qwen_template`. It prints tools in short, except for the embedded model, which has
    learned to read them whole.
    """
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import add_response_schema

    # The embedded model's and SmolLM2's class is the same; the latter's template is saved short.
    saved_short = SHORT_SCHEMA in str(tokenizer.chat_template)
    short = saved_short or type(tokenizer) is not PreTrainedTokenizerFast
    if qwen:
        tokenizer.chat_template = qwen_template(short=False)
    tokenizer = add_response_schema(tokenizer)  # TRL knows a template by its text: shorten it later
    if qwen:
        tokenizer.chat_template = qwen_template(short)
    return tokenizer
