"""ModernBERT (Warner et al. 2024): pre-norm, rotary positions, gated feed-forward, local and global attention."""

from __future__ import annotations

from typing import Any

from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.transformers.families.family import (
    ACTIVATION_NAMES,
    EACH,
    GLOBAL,
    LOCAL,
    SEQUENCE,
    SPAN,
    TOKEN,
    Config,
    Family,
    Head,
    layer_types,
)

GATES = {plain: gated for gated, plain in GATED_ACTIVATIONS.items()}
DENSE: dict[str, Any] = {"output": "classifier", "dense": "head.dense", "activation": "", "norm": "head.norm"}


def architecture(config: Config) -> Architecture:
    """Read the config of a ModernBERT."""
    every = config.integer("global_attn_every_n_layers", 3)
    bases = rotary_bases(config)
    return Architecture(
        layers=config.layers(),
        dim=config.width(),
        heads=config.heads(),
        feedforward_dim=config.integer("intermediate_size"),
        max_positions=config.integer("max_position_embeddings", 8192),
        dropout=config.share("mlp_dropout", 0.0),
        activation=GATES[config.activation("hidden_activation", "gelu")],
        positions="rotary",
        epsilon=config.number("norm_eps", 1e-5, high=0.95),
        family="modernbert",
        embedding_norm=True,
        attention_biases=config.flag("attention_bias", False),
        output_biases=config.flag("attention_bias", False),
        window=config.integer("local_attention", 128, low=2) // 2,
        local_layers=config.local_layers(lambda layer: layer % every > 0),
        head_activation=config.activation("classifier_activation", "gelu"),
        head_biases=config.flag("classifier_bias", False),
        rotary_base=bases[0],
        rotary_local_base=bases[1],
        rotary_halves=True,
        norm_biases=config.flag("norm_bias", False),
        first_norm=False,
        feedforward_biases=config.flag("mlp_bias", False),
    )


def rotary_bases(config: Config) -> tuple[float, float]:
    """Return the bases of global and of local layers, from old or new keys."""
    settings = config.get("rope_parameters")
    if not isinstance(settings, dict):
        return config.number("global_rope_theta", 160_000.0, 1.0), config.number("local_rope_theta", 10_000.0, 1.0)
    bases = []
    for kind, default in ((GLOBAL, 160_000.0), (LOCAL, 10_000.0)):
        entries = settings.get(kind)
        rotary = Config(entries if isinstance(entries, dict) else {})
        rotary.require("rope_type", "default")
        bases.append(rotary.number("rope_theta", default, 1.0))
    return bases[0], bases[1]


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a ModernBERT."""
    return {
        "hidden_size": size.dim,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.width_of_feedforward,
        "hidden_activation": ACTIVATION_NAMES[GATED_ACTIVATIONS[size.activation]],
        "max_position_embeddings": size.max_positions,
        "norm_eps": size.epsilon,
        "norm_bias": size.norm_biases,
        "attention_bias": size.attention_biases,
        "mlp_bias": size.feedforward_biases,
        "embedding_dropout": size.dropout,
        "attention_dropout": 0.0,  # as in BERT
        "mlp_dropout": size.dropout,
        "local_attention": 2 * size.window,
        "layer_types": layer_types(size),
        "rope_parameters": {
            GLOBAL: {"rope_type": "default", "rope_theta": size.rotary_base},
            LOCAL: {"rope_type": "default", "rope_theta": size.rotary_local_base or size.rotary_base},
        },
        "classifier_activation": ACTIVATION_NAMES[size.head_activation],
        "classifier_bias": size.head_biases,
        "decoder_bias": True,
        "tie_word_embeddings": True,
    }


MODERNBERT = Family(
    model_type="modernbert",
    title="ModernBERT",
    prefix="model.",
    architecture=architecture,
    config=config,
    names={
        "input.tokens": "embeddings.tok_embeddings",
        "input.norm": "embeddings.norm",
        "stack.blocks.*.attention.query_key_value": "layers.*.attn.Wqkv",
        "stack.blocks.*.attention.output": "layers.*.attn.Wo",
        "stack.blocks.*.attention_norm": "layers.*.attn_norm",
        "stack.blocks.*.feed.wide": "layers.*.mlp.Wi",
        "stack.blocks.*.feed.back": "layers.*.mlp.Wo",
        "stack.blocks.*.feed_norm": "layers.*.mlp_norm",
        "stack.norm": "final_norm",
    },
    head_names={"masked.dense": "head.dense", "masked.norm": "head.norm", "masked.bias": "decoder.bias"},
    classes={("masked",): "ModernBertForMaskedLM", (): "ModernBertModel"},
    heads={
        SEQUENCE: Head(**DENSE, pools=("cls", "mean"), pooling_key="classifier_pooling"),
        TOKEN: Head(**DENSE, pools=EACH),
        SPAN: Head(**DENSE, pools=EACH),
    },
    output="decoder.weight",
)
