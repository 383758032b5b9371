"""GPT-2 (Radford et al. 2019), in Hugging Face's layout; also the layout of Firth's own GPTs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from firth.nets.architecture import Architecture
from firth.transformers.families.family import Config, Family, Source

ACTIVATION_NAMES = {"gelu_tanh": "gelu_new", "gelu": "gelu", "relu": "relu", "silu": "silu"}


def architecture(config: Config) -> Architecture:
    """Read the config of a GPT-2."""
    config.require("add_cross_attention", False)
    dim = config.width("n_embd", 768)
    return Architecture(
        layers=config.layers("n_layer", 12),
        dim=dim,
        heads=config.heads("n_head", 12),
        feedforward_dim=config.integer("n_inner", 4 * dim),
        max_positions=config.integer("n_positions", 1024),
        dropout=config.share("resid_pdrop", 0.1),
        activation=config.activation("activation_function", "gelu_new"),
        epsilon=config.number("layer_norm_epsilon", 1e-5, high=0.95),
        family="gpt2",
        tied=config.flag("tie_word_embeddings", True),
    )


def fold_scales(state: Mapping[str, Tensor], size: Architecture, config: Config) -> None:
    """Multiply the queries by what config.json says of the scores, so that they have the usual scale."""
    for layer in range(size.layers):
        scale = 1.0 if config.flag("scale_attn_weights", True) else size.width_of_head**0.5
        scale /= layer + 1 if config.flag("scale_attn_by_inverse_layer_idx", False) else 1
        for end in ("weight", "bias"):
            state[f"stack.blocks.{layer}.attention.query_key_value.{end}"][: size.dim] *= scale


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a GPT-2."""
    return {
        "n_positions": size.max_positions,
        "n_embd": size.dim,
        "n_layer": size.layers,
        "n_head": size.heads,
        "n_inner": size.width_of_feedforward,
        "activation_function": ACTIVATION_NAMES[size.activation],
        "resid_pdrop": size.dropout,
        "embd_pdrop": size.dropout,
        "attn_pdrop": size.dropout,
        "layer_norm_epsilon": size.epsilon,
        "tie_word_embeddings": size.tied,
    }


def is_gpt2(size: Architecture) -> bool:
    """Return whether a network is a GPT-2: learned positions, norms before sublayers, no gated activation."""
    return size.positions == "learned" and size.pre_norm and size.activation in ACTIVATION_NAMES


GPT2 = Family(
    model_type="gpt2",
    title="GPT-2",
    prefix="transformer.",
    architecture=architecture,
    config=config,
    names={
        "embedding.tokens": "wte",
        "embedding.positions": "wpe",
        "stack.blocks.*.attention_norm": "h.*.ln_1",
        "stack.blocks.*.attention.query_key_value": Source(("h.*.attn.c_attn",), transposed=True),
        "stack.blocks.*.attention.output": Source(("h.*.attn.c_proj",), transposed=True),
        "stack.blocks.*.feed_norm": "h.*.ln_2",
        "stack.blocks.*.feed.wide": Source(("h.*.mlp.c_fc",), transposed=True),
        "stack.blocks.*.feed.back": Source(("h.*.mlp.c_proj",), transposed=True),
        "stack.norm": "ln_f",
    },
    head_names={"output": "lm_head"},
    classes={(): "GPT2LMHeadModel"},
    ignored=tuple(f"h.{layer}.attn.{name}" for layer in range(1000) for name in ("bias", "masked_bias")),
)
