"""DistilBERT (Sanh et al. 2019): BERT without segments and pooler, half as deep."""

from __future__ import annotations

from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families.bert import BUFFERS
from firth.transformers.families.family import ACTIVATION_NAMES, BERT_HEADS, SEQUENCE, Config, Family, Head


def architecture(config: Config) -> Architecture:
    """Read the config of a DistilBERT."""
    return Architecture(
        layers=config.layers("n_layers"),
        dim=config.width("dim"),
        heads=config.heads("n_heads"),
        feedforward_dim=config.integer("hidden_dim"),
        max_positions=config.integer("max_position_embeddings", 512),
        dropout=config.share("dropout", 0.1),
        activation=config.activation("activation", "gelu"),
        family="distilbert",
        pre_norm=False,
        epsilon=1e-12,
        embedding_norm=True,
    )


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a DistilBERT."""
    return {
        "dim": size.dim,
        "n_layers": size.layers,
        "n_heads": size.heads,
        "hidden_dim": size.width_of_feedforward,
        "activation": ACTIVATION_NAMES[size.activation],
        "dropout": size.dropout,
        "attention_dropout": 0.0,  # as in BERT
        "max_position_embeddings": size.max_positions,
        "sinusoidal_pos_embds": False,  # sinusoidal positions are stored like learned ones
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }


DISTILBERT = Family(
    model_type="distilbert",
    title="DistilBERT",
    prefix="distilbert.",
    architecture=architecture,
    config=config,
    names={
        "input.tokens": "embeddings.word_embeddings",
        "input.positions": "embeddings.position_embeddings",
        "input.norm": "embeddings.LayerNorm",
        "stack.blocks.*.attention.query_key_value": (
            "transformer.layer.*.attention.q_lin",
            "transformer.layer.*.attention.k_lin",
            "transformer.layer.*.attention.v_lin",
        ),
        "stack.blocks.*.attention.output": "transformer.layer.*.attention.out_lin",
        "stack.blocks.*.attention_norm": "transformer.layer.*.sa_layer_norm",
        "stack.blocks.*.feed.wide": "transformer.layer.*.ffn.lin1",
        "stack.blocks.*.feed.back": "transformer.layer.*.ffn.lin2",
        "stack.blocks.*.feed_norm": "transformer.layer.*.output_layer_norm",
    },
    head_names={
        "masked.dense": "vocab_transform",
        "masked.norm": "vocab_layer_norm",
        "masked.bias": "vocab_projector.bias",
    },
    classes={("masked",): "DistilBertForMaskedLM", (): "DistilBertModel"},
    heads={**BERT_HEADS, SEQUENCE: Head("classifier", "pre_classifier", "relu")},
    output="vocab_projector.weight",
    ignored=BUFFERS,
)
