"""ALBERT (Lan et al. 2020): BERT with narrower embeddings, whose layers share their weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families import bert, electra
from firth.transformers.families.family import BERT_HEADS, Config, Family

LAYER = "encoder.albert_layer_groups.0.albert_layers.0"


def architecture(config: Config) -> Architecture:
    """Read the config of an ALBERT."""
    config.require("num_hidden_groups", 1)
    config.require("inner_group_num", 1)
    width = config.width("embedding_size", 128)
    return replace(bert.architecture(config), family="albert", embedding_dim=width, shared_layers=True)


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of an ALBERT."""
    return {**electra.config(size), "num_hidden_groups": 1, "inner_group_num": 1}


ALBERT = Family(
    model_type="albert",
    title="ALBERT",
    prefix="albert.",
    architecture=architecture,
    config=config,
    names={
        **bert.INPUT,
        "input.projection": "encoder.embedding_hidden_mapping_in",
        "stack.blocks.*.attention.query_key_value": (
            f"{LAYER}.attention.query",
            f"{LAYER}.attention.key",
            f"{LAYER}.attention.value",
        ),
        "stack.blocks.*.attention.output": f"{LAYER}.attention.dense",
        "stack.blocks.*.attention_norm": f"{LAYER}.attention.LayerNorm",
        "stack.blocks.*.feed.wide": f"{LAYER}.ffn",
        "stack.blocks.*.feed.back": f"{LAYER}.ffn_output",
        "stack.blocks.*.feed_norm": f"{LAYER}.full_layer_layer_norm",
        "pooler": "pooler",
    },
    head_names={
        "masked.dense": "predictions.dense",
        "masked.norm": "predictions.LayerNorm",
        "masked.bias": "predictions.bias",
    },
    classes={("masked",): "AlbertForMaskedLM", (): "AlbertModel"},
    heads=BERT_HEADS,
    output="predictions.decoder.weight",
    output_bias="predictions.decoder.bias",
    ignored=bert.BUFFERS,
)
