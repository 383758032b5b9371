"""RoBERTa (Liu et al. 2019), XLM-RoBERTa (Conneau et al. 2020) and CamemBERT (Martin et al. 2020): BERT without
segments in practice, with positions that begin after the padding token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families import bert
from firth.transformers.families.family import Config, Family, Source

OFFSET = 2  # position ids begin after that of the padding token, which is 1


def architecture(config: Config) -> Architecture:
    """Read the config of a RoBERTa."""
    config.require("pad_token_id", 1)
    positions = config.integer("max_position_embeddings", 512 + OFFSET, low=OFFSET + 1)
    size = bert.architecture(config)
    return replace(size, family=config.get("model_type"), max_positions=positions - OFFSET, head_activation="gelu")


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a RoBERTa."""
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    return {**bert.config(size), **ids, "max_position_embeddings": size.max_positions + OFFSET}


def family(model_type: str, title: str, name: str) -> Family:
    """Return a family with RoBERTa's layout; `name` begins the names of its classes."""
    return Family(
        model_type=model_type,
        title=title,
        prefix="roberta.",
        architecture=architecture,
        config=config,
        names={
            **bert.BERT.names,
            "input.positions": Source(("embeddings.position_embeddings",), skip=OFFSET),
        },
        head_names=bert.LM_HEAD,
        classes={("masked",): f"{name}ForMaskedLM", (): f"{name}Model"},
        heads=bert.TANH_HEADS,
        output="lm_head.decoder.weight",
        output_bias="lm_head.decoder.bias",
        ignored=bert.BUFFERS,
    )


ROBERTA = family("roberta", "RoBERTa", "Roberta")
XLM_ROBERTA = family("xlm-roberta", "XLM-RoBERTa", "XLMRoberta")
CAMEMBERT = family("camembert", "CamemBERT", "Camembert")
