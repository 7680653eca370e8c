"""The proofs of `make gpu` where there is no GPU: on toy shapes in fp32, with `stand_in/unsloth.py`
for Unsloth. What this leaves out is what they are for: Unsloth's kernels, 4 bit, fp16, memory.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu
import pytest
from transformers import AutoTokenizer

from triagelab.train.cost import Model

TOY = Model(2, 32, 64, 4, 2, 8)
NONE = ["reserved_gib", "allocated_gib", "outside_gib"]  # on a CPU


def test_the_random_model_has_the_shape_that_is_costed_and_qwens_tokenizer(tmp_path):
    assert gpu.random_model(TOY, tmp_path) == TOY.linear + TOY.others
    qwen = AutoTokenizer.from_pretrained(tmp_path)
    # 151,643 merges and single bytes, 22 special tokens: the `len(tokenizer)` of Qwen2.5.
    assert len(qwen) == 151_665 and type(qwen).__name__ == "Qwen2Tokenizer"
    ids = qwen.encode("<|im_start|><tool_call>")
    assert ids == [151_644, 151_657]
    assert qwen.decode(ids, skip_special_tokens=True) == "<tool_call>"


@pytest.mark.slow
def test_the_memory_proof_runs_through(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "stand_in"))
    changes = {"load_in_4bit": False, "completion_tokens": 450, "turn_tokens": 60}
    with ThreadPoolExecutor(1) as pool:
        table = gpu.prove_memory(tmp_path, pool, TOY, steps=[(1, 4)], batches=[2], **changes)
    assert table["case"].tolist() == ["train", "evaluate"] and table["fits"].all()
    assert table[NONE].isna().all(axis=None) and table["computed_gib"].notna().all()
    train = table.iloc[0]
    # Scripted: the model is heard more than once, and rewards differ, so something is learned.
    assert train["turns"] > 1 and train["loss_finite"] and train["resumed"]
