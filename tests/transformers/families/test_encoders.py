"""Every encoder family gives the vectors of transformers, and no part of it can be left out unnoticed.

Weights are drawn with a large standard deviation: at the usual 0.02, a missing position scheme changes vectors little.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from refusing import refuses
from safetensors.numpy import load_file, save_file

from firth.nets.attention import Packed
from firth.nets.encoder import Encoder, position_ids
from firth.transformers.families import ENCODERS
from firth.transformers.families.encoders import encoder_config, encoder_of, read_encoder, write_encoder
from firth.transformers.families.family import Config
from firth.transformers.pooling import Pooling
from firth.transformers.text_encoder import Ids, needs_torch, new_engine

COMMON: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "max_position_embeddings": 90,
    "initializer_range": 0.1,
}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
V3 = {
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 16,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}  # the settings of DeBERTa-v3
#: Family, the name of transformers' classes, and settings.
CONFIGS: list[tuple[str, str, dict[str, Any]]] = [
    ("bert", "Bert", {}),
    ("bert", "Bert", {"hidden_act": "gelu_new", "type_vocab_size": 1, "layer_norm_eps": 1e-3}),
    ("roberta", "Roberta", {"pad_token_id": 1, "type_vocab_size": 1}),
    ("roberta", "Roberta", {"pad_token_id": 1, "type_vocab_size": 2, "hidden_act": "relu", "layer_norm_eps": 1e-5}),
    ("xlm-roberta", "XLMRoberta", {"pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    ("camembert", "Camembert", {"pad_token_id": 1, "type_vocab_size": 1, "num_hidden_layers": 1}),
    ("electra", "Electra", {"embedding_size": 24}),
    ("electra", "Electra", {"embedding_size": 48, "hidden_act": "relu"}),
    ("distilbert", "DistilBert", {}),
    ("distilbert", "DistilBert", {"sinusoidal_pos_embds": True, "activation": "relu"}),
    ("mpnet", "MPNet", {}),
    ("mpnet", "MPNet", {"num_attention_heads": 6, "layer_norm_eps": 1e-5}),
    ("modernbert", "ModernBert", {**IDS, "local_attention": 8, "global_attn_every_n_layers": 2}),
    (
        "modernbert",
        "ModernBert",
        {
            **IDS,
            "local_attention": 20,
            "norm_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "classifier_bias": True,
        },
    ),
    ("modernbert", "ModernBert", {**IDS, "hidden_activation": "silu", "num_hidden_layers": 4}),
    ("nomic_bert", "NomicBert", {}),
    ("nomic_bert", "NomicBert", {"hidden_act": "gelu", "type_vocab_size": 1}),
    ("albert", "Albert", {"embedding_size": 24}),
    ("albert", "Albert", {"embedding_size": 48, "hidden_act": "gelu"}),
    ("deberta-v2", "DebertaV2", V3),
    ("deberta-v2", "DebertaV2", {**V3, "legacy": False, "layer_norm_eps": 1e-3}),
    ("deberta-v2", "DebertaV2", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 2}),
    (
        "deberta-v2",
        "DebertaV2",
        {**V3, "pos_att_type": "p2c", "share_att_key": False, "position_biased_input": True, "position_buckets": 32},
    ),
    ("deberta-v2", "DebertaV2", {**V3, "pos_att_type": ["c2p"], "max_relative_positions": 20, "position_buckets": -1}),
    ("deberta-v2", "DebertaV2", {"relative_attention": False}),
]
NAMES = [f"{family}{number}" for number, (family, _, _) in enumerate(CONFIGS)]
LENGTHS = (70, 3, 33, 33, 1)


def hugging_face(family: str, name: str, settings: dict[str, Any], kind: str = "ForMaskedLM") -> Any:
    """A network of transformers with random weights, biases and norms included."""
    merged = {**COMMON, **settings}
    config = getattr(transformers, f"{name}Config")(**merged)
    torch.manual_seed(5)
    net = getattr(transformers, f"{name}{kind}")._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for part in net.parameters():
            if part.dim() == 1:
                part += 0.1 * torch.randn_like(part)
    net.tie_weights()
    return net


def read(family: str, net: Any) -> Encoder:
    with tempfile.TemporaryDirectory() as folder:
        net.save_pretrained(folder)
        config, arrays = (
            json.loads(Path(folder, "config.json").read_text()),
            load_file(Path(folder, "model.safetensors")),
        )
    return read_encoder(ENCODERS[family], arrays, ENCODERS[family].architecture(Config(config)))


def ours(net: Encoder, texts: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor | None]:
    packed = Packed.of(tuple(map(len, texts)))
    ids = torch.cat(texts)
    with torch.inference_mode():
        hidden = net(ids, position_ids(packed, len(ids)), torch.zeros_like(ids), packed)
        return hidden, net.masked_logits(hidden) if net.masked is not None else None


def theirs(net: Any, texts: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.inference_mode():
        outputs = [net(text[None], output_hidden_states=True) for text in texts]
    return torch.cat([out.hidden_states[-1][0] for out in outputs]), torch.cat([out.logits[0] for out in outputs])


def texts() -> list[torch.Tensor]:
    torch.manual_seed(6)
    return [torch.randint(3, COMMON["vocab_size"], (length,)) for length in LENGTHS]


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_vectors_and_logits_are_those_of_transformers(family, name, settings):
    other = hugging_face(family, name, settings)
    hidden, logits = ours(read(family, other), texts())
    expected, expected_logits = theirs(other, texts())
    assert logits is not None
    assert float((hidden - expected).abs().max()) <= 1e-5
    assert float((logits - expected_logits).abs().max()) <= 5e-5 * float(expected_logits.abs().max())


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_the_native_engine_gives_the_vectors_of_transformers(family, name, settings):
    other = hugging_face(family, name, settings)
    net = read(family, other)
    assert bool(needs_torch(net.size)) == (net.size.score_bias == "disentangled")
    if needs_torch(net.size):
        with refuses("unsupported_model", reason="disentangled attention"):
            new_engine(net, "cpu", "int8")
        return
    expected = torch.stack([states.mean(0) for states in theirs(other, texts())[0].split(LENGTHS)]).numpy()
    ids = Ids.of([text.tolist() for text in texts()])
    exact, int8 = (new_engine(net, "cpu", precision)(ids, Pooling())() for precision in ("float32", "int8"))
    assert np.abs(exact - expected).max() <= 1e-5
    error = np.linalg.norm(int8 - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert 1e-4 < error.max() < 0.03


@pytest.mark.parametrize(("family", "name", "settings"), CONFIGS, ids=NAMES)
def test_writing_is_the_inverse_of_reading(family, name, settings, tmp_path):
    other = hugging_face(family, name, settings)
    net = read(family, other)
    ids = {key.removesuffix("_token_id"): id for key, id in settings.items() if key.endswith("_token_id")}
    config = encoder_config(ENCODERS[family], net, ids)
    assert ENCODERS[family].architecture(Config(config)) == net.size
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(write_encoder(ENCODERS[family], net), tmp_path / "model.safetensors", {"format": "pt"})
    again, loaded = getattr(transformers, config["architectures"][0]).from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not any(loaded.values())  # nothing missing, unexpected or misshapen
    hidden, logits = theirs(again.eval(), texts())
    expected, expected_logits = theirs(other, texts())
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(logits, expected_logits, atol=1e-4, rtol=1e-5)


#: What distinguishes each family: an architecture without it must not give the same vectors.
ESSENTIAL: list[tuple[str, dict[str, Any]]] = [
    ("bert", {"positions": "none"}),
    ("bert", {"embedding_norm": False}),
    ("bert", {"pre_norm": True}),
    ("bert", {"segments": 0}),
    ("bert", {"activation": "relu"}),
    ("roberta", {"positions": "none"}),
    ("electra", {"positions": "none"}),
    ("distilbert", {"positions": "none"}),
    ("mpnet", {"positions": "none"}),
    ("mpnet", {"score_bias": "none"}),
    ("mpnet", {"relative_far": 64}),
    ("modernbert", {"positions": "none"}),
    ("modernbert", {"rotary_base": 10000.0}),
    ("modernbert", {"rotary_local_base": 160000.0}),
    ("modernbert", {"rotary_halves": False}),
    ("modernbert", {"window": 5}),
    ("modernbert", {"local_layers": ()}),
    ("modernbert", {"embedding_norm": False}),
    ("modernbert", {"activation": "swiglu"}),
    ("nomic_bert", {"positions": "none"}),
    ("nomic_bert", {"activation": "geglu"}),
    ("nomic_bert", {"pre_norm": True}),
    ("albert", {"positions": "none"}),
    ("deberta-v2", {"score_bias": "none"}),
    ("deberta-v2", {"relative_scores": ("c2p",)}),
    ("deberta-v2", {"relative_scores": ("p2c",)}),
    ("deberta-v2", {"relative_norm": False}),
    ("deberta-v2", {"relative_far": 60}),
    ("deberta-v2", {"score_scale": 0.0}),
    ("deberta-v2", {"embedding_norm": False}),
]


@pytest.mark.parametrize(("family", "change"), ESSENTIAL, ids=[f"{name}-{next(iter(x))}" for name, x in ESSENTIAL])
def test_leaving_a_part_out_breaks_parity(family, change):
    name, settings = next((name, settings) for known, name, settings in CONFIGS if known == family)
    other = hugging_face(family, name, settings)
    net = read(family, other)
    state = net.state_dict()
    size = replace(net.size, **change)
    with torch.device("meta"):
        needed = Encoder(60, size, pooler=False, next_sentence=False).state_dict()
    extra = {key: torch.ones(shape.shape) for key, shape in needed.items() if key not in state}  # norms
    changed = encoder_of({key: state[key] if key in state else extra[key] for key in needed}, size)
    hidden, _ = ours(changed, texts())
    expected, _ = theirs(other, texts())
    assert float((hidden - expected).abs().max()) > 1e-3


def test_nomic_bert_has_two_sets_of_config_keys():
    """The folder nomic-embed-text-v1.5 has the keys of its own code."""
    old = {
        "activation_function": "swiglu", "causal": False, "layer_norm_epsilon": 1e-12, "mlp_fc1_bias": False,
        "mlp_fc2_bias": False, "model_type": "nomic_bert", "n_embd": 48, "n_head": 4, "n_inner": 80, "n_layer": 3,
        "n_positions": 90, "parallel_block": False, "prenorm": False, "qkv_proj_bias": False, "resid_pdrop": 0.0,
        "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
        "rotary_scaling_factor": None, "type_vocab_size": 2, "use_rms_norm": False, "vocab_size": 60,
    }  # fmt: skip
    read_config = ENCODERS["nomic_bert"].architecture
    new = transformers.NomicBertConfig(**COMMON).to_dict()
    assert read_config(Config(old)) == read_config(Config(new))
    for name, value in {"prenorm": True, "qkv_proj_bias": True, "rotary_scaling_factor": 2.0}.items():
        with refuses("unsupported_architecture", name=name, got=value):
            read_config(Config({**old, name: value}))
