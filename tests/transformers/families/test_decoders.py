"""Every decoder family gives the logits of transformers, and no part of it can be left out unnoticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from firth.nets.transformer import Decoder
from firth.transformers.families import DECODERS
from firth.transformers.families.decoders import decoder_config, decoder_of, read_decoder, write_decoder
from firth.transformers.families.family import Config
from firth.transformers.native_decoder import native_decoder

COMMON = {
    "vocab_size": 60,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 90,
    "initializer_range": 0.1,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
GPT2 = {"n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 90}
GLOBAL, LOCAL = "full_attention", "sliding_attention"
#: Family, the name of transformers' classes, and settings.
CONFIGS: list[tuple[str, str, dict[str, Any]]] = [
    ("gpt2", "GPT2", GPT2),
    ("gpt2", "GPT2", {**GPT2, "n_inner": 50, "activation_function": "relu", "tie_word_embeddings": False}),
    ("gpt2", "GPT2", {**GPT2, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}),
    ("llama", "Llama", {}),
    ("llama", "Llama", {"num_key_value_heads": 4, "tie_word_embeddings": True, "rms_norm_eps": 1e-3}),
    ("llama", "Llama", {"head_dim": 20, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1}),
    ("llama", "Llama", {"rope_parameters": {**LLAMA3, "original_max_position_embeddings": 32}}),
    ("llama", "Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}),
    ("qwen2", "Qwen2", {}),
    ("qwen2", "Qwen2", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}),
    ("qwen2", "Qwen2", {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    ("qwen3", "Qwen3", {"head_dim": 12}),
    ("qwen3", "Qwen3", {"head_dim": 20, "tie_word_embeddings": True, "attention_bias": True}),
    ("gemma2", "Gemma2", {"head_dim": 12, "sliding_window": 9, "query_pre_attn_scalar": 20}),
    ("gemma2", "Gemma2", {"head_dim": 20, "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    ("gemma2", "Gemma2", {"head_dim": 16, "sliding_window": 70, "attn_logit_softcapping": 2.0}),
    ("gemma3_text", "Gemma3", {"head_dim": 12, "sliding_window": 9, "num_hidden_layers": 7}),
    (
        "gemma3_text",
        "Gemma3",
        {
            "head_dim": 20,
            "sliding_window": 5,
            "layer_types": [LOCAL, GLOBAL, LOCAL],
            "query_pre_attn_scalar": 10,
            "final_logit_softcapping": 3.0,
            "rope_parameters": {
                GLOBAL: {"rope_type": "linear", "rope_theta": 1e4, "factor": 8.0},
                LOCAL: {"rope_type": "default", "rope_theta": 100.0},
            },
        },
    ),
]
NAMES = [f"{family}{number}" for number, (family, _, _) in enumerate(CONFIGS)]
GEMMA3_EMBEDDING = {"head_dim": 12, "sliding_window": 8, "num_hidden_layers": 4, "use_bidirectional_attention": True}
IDS = torch.randint(3, 60, (1, 70), generator=torch.Generator().manual_seed(6))


def hugging_face(name: str, settings: dict[str, Any]) -> Any:
    """A network of transformers with random weights, biases and norms included."""
    kind = "Gemma3TextConfig" if name == "Gemma3" else f"{name}Config"
    config = getattr(transformers, kind)(**{**COMMON, **settings})
    torch.manual_seed(5)
    net = getattr(transformers, classes(name))._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for part in net.parameters():
            if part.dim() == 1:
                part += 0.1 * torch.randn_like(part)
    return net


def classes(name: str) -> str:
    return "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"


def read(family: str, net: Any) -> Decoder:
    config = net.config.to_dict()
    arrays = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    return read_decoder(DECODERS[family], arrays, DECODERS[family].architecture(Config(config)), config)


@torch.inference_mode()
def ours(net: Decoder) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = net(IDS)
    return hidden, net.logits(hidden)


@torch.inference_mode()
def theirs(net: Any) -> tuple[torch.Tensor, torch.Tensor]:
    out = net(IDS, output_hidden_states=True)
    return out.hidden_states[-1], out.logits


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_states_and_logits_are_those_of_transformers(family: str, name: str, settings: dict[str, Any]) -> None:
    other = hugging_face(name, settings)
    hidden, logits = ours(read(family, other))
    expected, expected_logits = theirs(other)
    assert float((hidden - expected).abs().max()) <= 1e-5 * max(1.0, float(expected.abs().max()))
    assert float((logits - expected_logits).abs().max()) <= 1e-5 * max(1.0, float(expected_logits.abs().max()))


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_the_native_engine_gives_the_same_logits(family: str, name: str, settings: dict[str, Any]) -> None:
    other = hugging_face(name, settings)
    native = native_decoder(read(family, other), 60)
    assert native is not None
    state, ids = native.start(), IDS[0].tolist()
    logits = [state.logits(ids[:40]), *(state.logits([token]) for token in ids[40:])]
    expected = theirs(other)[1][0, 39:].numpy()
    assert np.abs(np.stack(logits) - expected).max() <= 3e-5 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_greedy_tokens_are_those_of_transformers(family: str, name: str, settings: dict[str, Any]) -> None:
    other = hugging_face(name, settings)
    native = native_decoder(read(family, other), 60)
    assert native is not None
    prompt = IDS[:, :20]
    expected = other.generate(prompt, max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=0)
    state, tokens = native.start(), list[int]()
    fresh = prompt[0].tolist()
    for _ in range(40):
        tokens.append(int(state.logits(fresh).argmax()))
        fresh = tokens[-1:]
    assert tokens == expected[0, 20:].tolist()


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_writing_is_the_inverse_of_reading(family: str, name: str, settings: dict[str, Any]) -> None:
    other = hugging_face(name, settings)
    net = read(family, other)
    config = decoder_config(DECODERS[family], net.size, 60, {"bos": 1, "eos": 2})
    assert DECODERS[family].architecture(Config(config)) == net.size
    arrays = {key: torch.from_numpy(array) for key, array in write_decoder(DECODERS[family], net, 60).items()}
    again = getattr(transformers, config["architectures"][0])._from_config(
        transformers.AutoConfig.for_model(**config), attn_implementation="eager"
    )
    loaded = again.load_state_dict(arrays, strict=False)
    assert not loaded.unexpected_keys and set(loaded.missing_keys) <= ({"lm_head.weight"} if net.size.tied else set())
    again.tie_weights()
    for written, expected in zip(theirs(again.eval()), theirs(other), strict=True):
        torch.testing.assert_close(written, expected, atol=1e-5 * max(1.0, float(expected.abs().max())), rtol=0)


def test_a_bidirectional_gemma_attends_to_both_sides() -> None:
    other = hugging_face("Gemma3", GEMMA3_EMBEDDING)
    net = read("gemma3_text", other)
    with torch.inference_mode():
        expected = other.model(IDS).last_hidden_state
        assert float((net(IDS) - expected).abs().max()) <= 1e-5 * float(expected.abs().max())
    assert native_decoder(net, 60) is None
    config = decoder_config(DECODERS["gemma3_text"], net.size, 60, {})
    assert DECODERS["gemma3_text"].architecture(Config(config)) == net.size


#: What distinguishes each family: a network without it must not give the same states.
ESSENTIAL: list[tuple[str, dict[str, Any]]] = [
    ("gpt2", {"positions": "none"}),
    ("gpt2", {"activation": "relu"}),
    ("llama", {"positions": "none"}),
    ("llama", {"rotary_halves": False}),
    ("llama", {"norm": "layer"}),
    ("llama", {"activation": "geglu"}),
    ("llama", {"rotary_base": 500.0}),
    ("qwen2", {"positions": "none"}),
    ("qwen2", {"attention_biases": False}),
    ("qwen3", {"positions": "none"}),
    ("qwen3", {"qk_norm": False}),
    ("gemma2", {"positions": "none"}),
    ("gemma2", {"sublayer_norms": False}),
    ("gemma2", {"score_cap": 0.0}),
    ("gemma2", {"score_scale": 0.0}),
    ("gemma2", {"window": 9}),
    ("gemma2", {"local_layers": ()}),
    ("gemma2", {"embedding_scale": 1.0}),
    ("gemma2", {"activation": "swiglu"}),
    ("gemma3_text", {"positions": "none"}),
    ("gemma3_text", {"qk_norm": False}),
    ("gemma3_text", {"rotary_local_base": 0.0}),
    ("gemma3_text", {"rotary_base": 1000.0}),
    ("gemma3_text", {"local_layers": ()}),
    ("gemma3_text", {"bidirectional": True}),
]


@pytest.mark.parametrize(("family", "change"), ESSENTIAL, ids=[f"{name}-{next(iter(x))}" for name, x in ESSENTIAL])
def test_leaving_a_part_out_breaks_parity(family: str, change: dict[str, Any]) -> None:
    name, settings = next((name, settings) for known, name, settings in CONFIGS if known == family)
    other = hugging_face(name, {**settings, **({"attn_logit_softcapping": 2.0} if "score_cap" in change else {})})
    net = read(family, other)
    size = replace(net.size, **change)
    with torch.device("meta"):
        needed = Decoder(60, size).state_dict()
    state = net.state_dict()
    changed = decoder_of({key: state.get(key, torch.zeros(value.shape)) for key, value in needed.items()}, size)
    expected = theirs(other)[0]
    assert float((ours(changed)[0] - expected).abs().max()) > 1e-3
