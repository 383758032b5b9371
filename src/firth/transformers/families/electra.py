"""ELECTRA (Clark et al. 2020): BERT with narrower embeddings; discriminators and generators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families import bert
from firth.transformers.families.family import BERT_HEADS, SEQUENCE, Config, Family, Head


def architecture(config: Config) -> Architecture:
    """Read the config of an ELECTRA."""
    size = bert.architecture(config)
    width = config.width("embedding_size", 128)
    return replace(size, family="electra", embedding_dim=0 if width == size.dim else width, head_activation="gelu")


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of an ELECTRA."""
    return {**bert.config(size), "embedding_size": size.width_of_embedding}


ELECTRA = Family(
    model_type="electra",
    title="ELECTRA",
    prefix="electra.",
    architecture=architecture,
    config=config,
    names={**bert.INPUT, **bert.BLOCK, "input.projection": "embeddings_project"},
    head_names={
        "masked.dense": "generator_predictions.dense",
        "masked.norm": "generator_predictions.LayerNorm",
        "masked.bias": "generator_lm_head.bias",
    },
    classes={("masked",): "ElectraForMaskedLM", (): "ElectraModel"},
    heads={**BERT_HEADS, SEQUENCE: Head("classifier.out_proj", "classifier.dense", "gelu")},
    output="generator_lm_head.weight",
    ignored=bert.BUFFERS,
)
