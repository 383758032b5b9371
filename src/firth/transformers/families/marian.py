"""Marian (Junczys-Dowmunt et al. 2018), as in the OPUS-MT translators: BART with sinusoidal positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families import bart
from firth.transformers.families.family import Config, Family


def architecture(config: Config) -> Architecture:
    """Read the config of a Marian."""
    size = bart.common(config, "marian", 512)
    config.require("share_encoder_decoder_embeddings", True)
    for name, value in (("normalize_before", False), ("add_final_layer_norm", False), ("normalize_embedding", False)):
        config.require(name, value)  # of old configs
    config.require("static_position_embeddings", True)
    return replace(size, positions="sinusoidal", sinusoidal_halves=True, embedding_norm=False)


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a Marian."""
    return {**bart.config(size), "share_encoder_decoder_embeddings": True}


MARIAN = Family(
    model_type="marian",
    title="Marian",
    prefix="model.",
    architecture=architecture,
    config=config,
    names=bart.STACKS,
    head_names=bart.HEADS,
    classes={(): "MarianMTModel"},
    ignored=("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
    generation={"eos_token_id": 0},
    aliases=bart.ALIASES,
    one_tokenizer=False,
)
