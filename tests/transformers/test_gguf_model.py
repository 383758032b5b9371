"""Models in GGUF files: the same as in transformers, which reads them too; damaged ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from formats.gguf_files import write_gguf
from formats.test_gguf_tokenizer import byte_level
from refusing import refuses

import firth
from firth.core import memory
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.formats.gguf import read_gguf
from firth.formats.gguf_tokenizer import tokenizer_document
from firth.transformers.generation import Sampling, generate_ids
from firth.transformers.gguf_model import GGUFModel
from firth.transformers.gpt_model import GPTModel

VOCABULARY = len(byte_level("gpt-2")["tokenizer.ggml.tokens"])
COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 90,
    "initializer_range": 0.1,
}
#: Transformers reads no number of positions of GPT-2: these are its own.
GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "max_position_embeddings": 1024}
HEAD = {"head_dim": 32}
#: Architecture in GGUF, transformers' name, settings.
CONFIGS: list[tuple[str, str, dict[str, Any]]] = [
    ("llama", "Llama", {"tie_word_embeddings": True}),
    ("llama", "Llama", {**HEAD, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ("qwen2", "Qwen2", {}),
    # Transformers reads neither the size of a head of Qwen 3 nor the scale of the scores of Gemma: these are its own.
    ("qwen3", "Qwen3", {"head_dim": 128, "tie_word_embeddings": True}),
    ("gemma2", "Gemma2", {"head_dim": 256, "sliding_window": 9}),
    ("gemma3", "Gemma3", {"head_dim": 256, "sliding_window": 9, "num_hidden_layers": 7}),
    ("gpt2", "GPT2", GPT2),
]
NAMES = [f"{kind}{number}" for number, (kind, _, _) in enumerate(CONFIGS)]
#: Parts of Hugging Face's names and of those of GGUF, in this order; where both norms exist, Gemma has four.
PARTS = {
    "model.embed_tokens": "token_embd", "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
    "lm_head": "output", "model.norm": "output_norm", "transformer.ln_f": "output_norm", "model.layers": "blk",
    "transformer.h": "blk", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm", "ln_1": "attn_norm",
    "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}  # fmt: skip


def hugging_face(name: str, settings: dict[str, Any]) -> Any:
    kind = "Gemma3TextConfig" if name == "Gemma3" else f"{name}Config"
    config = getattr(transformers, kind)(**{**COMMON, **settings}, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(5)
    classes = "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
    net = getattr(transformers, classes)._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for part in net.parameters():
            if part.dim() == 1:
                part += 0.1 * torch.randn_like(part)
    return net


def tensors_of(kind: str, net: Any, storage: str) -> dict[str, tuple[np.ndarray, str]]:
    """The tensors as llama.cpp's converter writes them."""
    config, tensors = net.config, {}
    for name, tensor in net.state_dict().items():
        array = tensor.numpy()
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        for theirs, ours in PARTS.items():
            name = name.replace(theirs, ours)
        after = "post_attention_norm" if kind.startswith("gemma") else "ffn_norm"
        name = name.replace("post_attention_layernorm", after)
        if kind.startswith("gemma") and name.endswith("norm.weight"):
            array = array + 1
        if kind == "llama" and ("attn_q." in name or "attn_k." in name):
            heads = config.num_attention_heads if "attn_q." in name else config.num_key_value_heads
            array = array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
        if kind == "gpt2" and array.ndim == 2 and "blk" in name:
            array = array.T
        tensors[name] = (np.ascontiguousarray(array), storage if array.ndim == 2 and "norm" not in name else "F32")
    return tensors


def metadata_of(kind: str, net: Any) -> dict[str, Any]:
    config = net.config
    entries: dict[str, Any] = {
        "block_count": config.num_hidden_layers,
        "embedding_length": config.hidden_size,
        "feed_forward_length": 256 if kind == "gpt2" else config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "context_length": config.max_position_embeddings,
    }
    if kind == "gpt2":
        entries["attention.layer_norm_epsilon"] = config.layer_norm_epsilon
    else:
        rope = config.rope_parameters
        entries |= {
            "attention.head_count_kv": config.num_key_value_heads,
            "attention.key_length": config.head_dim if hasattr(config, "head_dim") else 16,
            "attention.value_length": config.head_dim if hasattr(config, "head_dim") else 16,
            "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
            "rope.freq_base": float((rope.get("full_attention") or rope)["rope_theta"]),
        }
    if kind == "llama":
        entries["rope.dimension_count"] = config.head_dim
    if kind.startswith("gemma"):
        entries["attention.sliding_window"] = config.sliding_window
    if kind == "gemma2":
        entries |= {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    return {f"{kind}.{key}": value for key, value in entries.items()}


def write(path: Path, kind: str, net: Any, storage: str = "F32", change: Callable[..., None] | None = None) -> None:
    metadata = {
        **metadata_of(kind, net),
        **byte_level("gpt-2"),
        "tokenizer.chat_template": "{{ messages[0].content }}!",
    }
    tensors = tensors_of(kind, net, storage)
    if change is not None:
        change(metadata, tensors)
    write_gguf(path, metadata, tensors, kind)


def opened(path: Path) -> GGUFModel:
    model = firth.load(path)
    assert isinstance(model, GGUFModel)
    return model


IDS = torch.randint(1, VOCABULARY, (1, 60), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(("kind", "name", "settings"), CONFIGS, ids=NAMES)
@torch.inference_mode()
def test_logits_are_those_of_the_network_that_was_written(tmp_path: Path, kind: str, name: str, settings: Any) -> None:
    net = hugging_face(name, settings)
    write(tmp_path / "m.gguf", kind, net)
    model, expected = opened(tmp_path / "m.gguf"), net(IDS).logits[0]
    largest = max(1.0, float(expected.abs().max()))
    assert float((model.net.logits(model.net(IDS))[0] - expected).abs().max()) <= 1e-5 * largest
    state, ids = model.engine("float32").start(), IDS[0].tolist()
    native = np.stack([state.logits(ids[:40]), *(state.logits([token]) for token in ids[40:])])
    assert np.abs(native - expected[39:].numpy()).max() <= 3e-5 * largest


@pytest.mark.parametrize(("kind", "name", "settings"), CONFIGS, ids=NAMES)
@torch.inference_mode()
def test_greedy_tokens_are_those_that_transformers_reads_from_the_file(
    tmp_path: Path, kind: str, name: str, settings: Any
) -> None:
    write(tmp_path / "m.gguf", kind, hugging_face(name, settings), "Q8_0")
    model = opened(tmp_path / "m.gguf")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="m.gguf", dtype=torch.float32).eval()
    prompt = IDS[:, :20]
    expected = theirs.generate(prompt, max_new_tokens=30, do_sample=False, eos_token_id=None, pad_token_id=0)[0, 20:]
    generated = generate_ids(model.engine("float32"), prompt[0].tolist(), 30, Sampling(temperature=0), False)
    assert list(generated) == expected.tolist()


@pytest.mark.parametrize("storage", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
@torch.inference_mode()
def test_weights_are_computed_as_they_are_stored(tmp_path: Path, storage: str) -> None:
    write(tmp_path / "m.gguf", "llama", hugging_face("Llama", HEAD), storage)
    model = opened(tmp_path / "m.gguf")
    exact = model.net.logits(model.net(IDS))[0, -1].numpy()
    difference = np.abs(model.engine().start().logits(IDS[0].tolist()) - exact).max() / np.abs(exact).max()
    assert difference < (1e-4 if storage == "BF16" else 2e-3 if storage == "F16" else 0.06)
    assert storage in model.engine_description


def test_a_saved_model_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "llama", hugging_face("Llama", HEAD), "Q8_0")
    model = opened(tmp_path / "m.gguf")
    model.save(tmp_path / "saved")
    again = firth.load(tmp_path / "saved")
    assert isinstance(again, GPTModel) and not isinstance(again, GGUFModel)
    assert again.size == model.size and again.settings == model.settings
    for text in ("the cat", ""):
        expected = "".join(model.generate(text, 8, temperature=0, precision="float32"))
        assert "".join(again.generate(text, 8, temperature=0)) == expected
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    with torch.inference_mode():
        ours = model.net.logits(model.net(IDS))
        torch.testing.assert_close(theirs(IDS).logits, ours, atol=1e-5 * float(ours.abs().max()), rtol=0)


def test_chat_and_vectors(tmp_path: Path) -> None:
    write(tmp_path / "m.gguf", "llama", hugging_face("Llama", HEAD))
    model = opened(tmp_path / "m.gguf")
    messages = [{"role": "user", "content": "the cat"}]
    assert model.chat_prompt(messages) == "the cat!"
    assert "".join(model.chat(messages, 5, temperature=0)) == "".join(model.generate("the cat!", 5, temperature=0))
    assert model.vectors.matrix.shape == (VOCABULARY, 64)
    assert model.embed(["the cat", "the mat"]).shape == (2, 64)


# ---- damaged files ----


def refused(tmp_path: Path, change: Callable[..., None], code: str, **values: Any) -> None:
    write(tmp_path / "m.gguf", "llama", hugging_face("Llama", {}), change=change)
    with refuses(code, **values):
        firth.load(tmp_path / "m.gguf")


def test_files_that_contradict_themselves(tmp_path: Path) -> None:
    def setting(key: str, value: Any) -> Callable[..., None]:
        return lambda metadata, tensors: metadata.update({f"llama.{key}": value})

    refused(tmp_path, lambda _, tensors: tensors.pop("blk.1.attn_q.weight"), "damaged_model", layers=3)
    refused(tmp_path, lambda _, tensors: tensors.update({"blk.0.x": (np.ones(4, np.float32), "F32")}), "damaged_model")
    refused(tmp_path, setting("block_count", 4), "damaged_model", layers=4)
    refused(tmp_path, setting("feed_forward_length", 95), "damaged_model")
    refused(tmp_path, setting("attention.head_count", 0), "damaged_model", name="num_attention_heads")
    refused(tmp_path, setting("attention.head_count", [4, 4, 4]), "damaged_model", name="num_attention_heads")
    refused(tmp_path, setting("rope.scaling.type", "yarn"), "unsupported_architecture", got="yarn")
    refused(tmp_path, setting("rope.dimension_count", 8), "unsupported_architecture", got=8)
    nan = np.full((3, 64), np.nan, np.float32)
    refused(
        tmp_path, lambda _, tensors: tensors.update({"output_norm.weight": (nan[0], "F32")}), "damaged_model",
        array="output_norm.weight",
    )  # fmt: skip
    for extra in (["x"] * 5, [f"x{n}" for n in range(5)]):
        tokens = [*byte_level("gpt-2")["tokenizer.ggml.tokens"], *extra]
        more = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * len(tokens)}
        refused(tmp_path, lambda metadata, _, more=more: metadata.update(more), "invalid_tokenizer")


def test_other_architectures_are_refused_by_name(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", {}, {}, "rwkv6")
    with refuses("unsupported_architecture", kind="rwkv6", choices="llama, qwen2, qwen3, gemma2, gemma3, gpt2"):
        firth.load(tmp_path / "m.gguf")


def test_a_model_larger_than_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = hugging_face("Llama", {})
    write(tmp_path / "m.gguf", "llama", net, "Q8_0")
    net.save_pretrained(tmp_path / "folder", max_shard_size="50KB")
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:       100 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    assert memory.available_memory() == 102_400
    with refuses("out_of_memory", available=102_400 / 1e9):
        firth.load(tmp_path / "m.gguf")
    SubwordTokenizer.from_json(json.dumps(tokenizer_document(read_gguf(tmp_path / "m.gguf")))).save(tmp_path / "folder")
    with refuses("out_of_memory", needed=4 * sum(part.numel() for part in net.parameters()) / 1e9):
        firth.load(tmp_path / "folder")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "missing")
    assert (memory.available_memory() or 0) > 1e8
