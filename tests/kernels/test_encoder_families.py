"""The native encoder against transformers' networks with random weights: what `Shape` and the names of weights mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from firth.kernels.encoder import Encoder, Shape

Arrays = dict[str, np.ndarray]
SIZES: dict[str, Any] = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 4}
SIZES |= {"intermediate_size": 70, "max_position_embeddings": 50, "initializer_range": 0.2}
SHAPE = Shape(4, 48, 3, 70, 50)
NORM = {"norm": "embeddings.LayerNorm"}
BERT = {
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}


def layers(state: Arrays, prefix: str, names: dict[str, str], *joined: str) -> Arrays:
    """Return the arrays of all layers by Firth's names; `joined` are those of queries, keys and values."""
    weights: Arrays = {}
    for layer in range(SHAPE.layers):
        parts = {name: [f"{prefix}.{layer}.{theirs}"] for name, theirs in names.items()}
        parts["query_key_value"] = [f"{prefix}.{layer}.{theirs}" for theirs in joined]
        for name, sources in parts.items():
            for end in (".weight", ".bias"):
                if sources[0] + end in state:
                    arrays = [state[source + end] for source in sources]
                    weights[f"layers.{layer}.{name}{end}"] = np.concatenate(arrays)
    return weights


def tables(state: Arrays, names: dict[str, str]) -> Arrays:
    """Return arrays outside layers by Firth's names, of modules with a weight and possibly a bias."""
    return {
        f"{name}{end}": state[a + end] for name, a in names.items() for end in (".weight", ".bias") if a + end in state
    }


def bert(state: Arrays) -> tuple[Shape, Arrays]:
    weights = layers(state, "encoder.layer", BERT, *(f"attention.self.{part}" for part in ("query", "key", "value")))
    weights["tokens"] = state["embeddings.word_embeddings.weight"]
    weights["positions"] = state["embeddings.position_embeddings.weight"]
    weights["segment"] = state["embeddings.token_type_embeddings.weight"][0]
    return SHAPE, weights | tables(state, NORM)


def roberta(state: Arrays) -> tuple[Shape, Arrays]:
    shape, weights = bert(state)
    return replace(shape, positions=48), weights | {"positions": weights["positions"][2:]}  # 0 and 1 are for padding


def electra(state: Arrays) -> tuple[Shape, Arrays]:
    shape, weights = bert(state)
    projection = tables(state, {"embedding_projection": "embeddings_project"})
    return replace(shape, embedding_dim=20), weights | projection


def distilbert(state: Arrays) -> tuple[Shape, Arrays]:
    names = {"attention_output": "attention.out_lin", "attention_norm": "sa_layer_norm", "up": "ffn.lin1"}
    names |= {"down": "ffn.lin2", "feed_forward_norm": "output_layer_norm"}
    weights = layers(state, "transformer.layer", names, *(f"attention.{part}_lin" for part in "qkv"))
    weights["tokens"] = state["embeddings.word_embeddings.weight"]
    weights["positions"] = state["embeddings.position_embeddings.weight"]
    return SHAPE, weights | tables(state, NORM)


def mpnet(state: Arrays) -> tuple[Shape, Arrays]:
    names = BERT | {"attention_output": "attention.attn.o", "attention_norm": "attention.LayerNorm"}
    weights = layers(state, "encoder.layer", names, *(f"attention.attn.{part}" for part in "qkv"))
    weights["tokens"] = state["embeddings.word_embeddings.weight"]
    weights["positions"] = state["embeddings.position_embeddings.weight"][2:]
    bucket = transformers.models.mpnet.modeling_mpnet.MPNetEncoder.relative_position_bucket
    distances = bucket(torch.arange(-47, 48), num_buckets=32).numpy()
    weights["distance_bias"] = state["encoder.relative_attention_bias.weight"][distances].T
    return replace(SHAPE, positions=48), weights | tables(state, NORM)


def rotary(name: str, base: float) -> Arrays:
    angles = np.arange(50)[:, None] * base ** -(np.arange(8) / 8)
    return {f"{name}.cos": np.cos(angles).astype("f4"), f"{name}.sin": np.sin(angles).astype("f4")}


def modernbert(state: Arrays) -> tuple[Shape, Arrays]:
    names = {"attention_output": "attn.Wo", "attention_norm": "attn_norm", "feed_forward_norm": "mlp_norm"}
    weights = layers(state, "layers", names | {"down": "mlp.Wo"}, "attn.Wqkv")
    for layer in range(SHAPE.layers):
        gate, up = np.split(state[f"layers.{layer}.mlp.Wi.weight"], 2)  # Hugging Face calls them input and gate
        weights |= {f"layers.{layer}.gate.weight": gate, f"layers.{layer}.up.weight": up}
    weights["tokens"] = state["embeddings.tok_embeddings.weight"]
    weights |= tables(state, {"norm": "embeddings.norm", "final_norm": "final_norm"})
    weights |= rotary("rotary", 160_000) | rotary("local_rotary", 10_000)
    changes: dict[str, Any] = {
        "gated": True,
        "pre_norm": True,
        "first_norm": False,
        "final_norm": True,
        "epsilon": 1e-5,
    }
    return replace(SHAPE, window=5, local_layers=(1, 2), **changes), weights


def nomic(state: Arrays) -> tuple[Shape, Arrays]:
    names = {"attention_output": "self_attn.o_proj", "attention_norm": "post_attention_layernorm"}
    names |= {f"{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    names["feed_forward_norm"] = "post_mlp_layernorm"
    weights = layers(state, "layers", names, *(f"self_attn.{part}_proj" for part in "qkv"))
    weights["tokens"] = state["embeddings.word_embeddings.weight"]
    weights["segment"] = state["embeddings.token_type_embeddings.weight"][0]
    weights |= tables(state, NORM) | rotary("rotary", 1000)
    return replace(SHAPE, gated=True, activation="silu"), weights


def built(name: str, **changes: object) -> torch.nn.Module:
    """Return a network of transformers with large random weights, also of norms and biases."""
    config = getattr(transformers, f"{name}Config")(**SIZES, **changes)
    torch.manual_seed(1)
    net: torch.nn.Module = getattr(transformers, f"{name}Model")(config).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return net


DISTILBERT = {"dim": 48, "n_heads": 3, "n_layers": 4, "hidden_dim": 70}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
FAMILIES: dict[str, tuple[Callable[[], torch.nn.Module], Callable[[Arrays], tuple[Shape, Arrays]]]] = {
    "bert": (lambda: built("Bert"), bert),
    "roberta": (lambda: built("Roberta"), roberta),
    "electra": (lambda: built("Electra", embedding_size=20), electra),
    "distilbert": (lambda: built("DistilBert", **DISTILBERT), distilbert),
    "mpnet": (lambda: built("MPNet"), mpnet),
    "modernbert": (lambda: built("ModernBert", **SPECIAL, local_attention=10), modernbert),
    "nomic": (
        lambda: built("NomicBert", rope_parameters={"rope_type": "default", "rope_theta": 1000.0}),
        nomic,
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_native_equals_transformers(name):
    make, mapped = FAMILIES[name]
    net = make()
    shape, weights = mapped({key: array.numpy() for key, array in net.state_dict().items()})
    epsilon = getattr(net.config, "layer_norm_eps", shape.epsilon)
    ids = np.random.default_rng(1).integers(5, 60, 47).astype(np.int32)
    with torch.inference_mode():
        states = net(torch.from_numpy(ids.astype(np.int64))[None], output_hidden_states=True).hidden_states
    expected = np.concatenate([state[0].mean(0).numpy() for state in states])
    encoder = Encoder(weights, replace(shape, epsilon=epsilon))
    got = encoder.encode(ids, np.array([0, 47]), np.ones(5, np.float32), concat=True)[0]
    assert np.abs(got - expected).max() < 1e-5 * max(1, np.abs(expected).max())
