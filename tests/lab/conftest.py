"""Fixtures of several modules."""

from functools import cache, partial

import huggingface_hub
import pytest
from tiny_smollm2 import install

from triagelab.language_models import loading
from triagelab.language_models.loading import resolve_model
from triagelab.train import base_model


@pytest.fixture(autouse=True, scope="session")
def in_32_bit():
    """Tests compare numbers exactly, so no machine computes them in 16 bit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "computes_bf16", lambda: False)
        yield


@pytest.fixture(autouse=True, scope="session")
def one_tokenizer():
    """The tokenizer of every base, which takes longer to make than the rest, is made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_model, "build_tokenizer", cache(base_model.build_tokenizer))
        yield


@pytest.fixture(scope="module")
def tiny_smollm2(tmp_path_factory):
    """The folder of a converted tiny model, which `smollm2` names, in a cache of its own."""
    pytest.importorskip("gguf")
    root = tmp_path_factory.mktemp("smollm2")
    install(root / "site")
    kept = partial(huggingface_hub.cached_assets_path, assets_dir=root / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "site")
        patch.setattr(huggingface_hub, "cached_assets_path", kept)
        yield resolve_model("smollm2")
