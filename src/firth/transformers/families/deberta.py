"""DeBERTa-v2 and v3 (He et al. 2021): BERT with disentangled attention to content and distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.core.errors import FirthError
from firth.nets.architecture import Architecture
from firth.nets.disentangled import CONTENT_TO_POSITION, POSITION_TO_CONTENT
from firth.transformers.families import bert
from firth.transformers.families.family import BERT_HEADS, SEQUENCE, Config, Family, Head

SCORES = (CONTENT_TO_POSITION, POSITION_TO_CONTENT)
ATTENTION = "encoder.layer.*.attention.self"


def architecture(config: Config) -> Architecture:
    """Read the config of a DeBERTa."""
    size = bert.architecture(Config({**config.values, "type_vocab_size": 1}))  # it may have no segments
    config.require("conv_kernel_size", 0)
    config.require("pooler_hidden_act", "gelu")
    config.require("embedding_size", size.dim)
    config.require("attention_head_size", size.dim // size.heads)
    scores = relative_scores(config)
    relative = config.flag("relative_attention", False)
    if relative and not scores:
        raise FirthError(
            "unsupported_architecture",
            "config.json has relative_attention, but pos_att_type names none of {choices}.",
            choices=", ".join(SCORES),
        )
    far = config.integer("max_relative_positions", -1, low=-1)
    buckets = config.integer("position_buckets", -1, low=-1)
    return replace(
        size,
        family="deberta-v2",
        positions="learned" if config.flag("position_biased_input", True) else "none",
        epsilon=config.number("layer_norm_eps", 1e-7, high=0.95),
        segments=config.integer("type_vocab_size", 0, low=0),
        score_scale=((1 + len(scores)) * size.dim / size.heads) ** -0.5,
        score_bias="disentangled" if relative else "none",
        relative_buckets=max(buckets, 0),
        relative_far=far if far > 0 else size.max_positions,
        relative_scores=scores,
        relative_norm="layer_norm" in names(config, "norm_rel_ebd") and relative,
        relative_shared=config.flag("share_att_key", False),
    )


def names(config: Config, key: str) -> list[str]:
    """Return an entry with several names, a list or separated by |."""
    entry = config.get(key, [])
    parts = entry.lower().split("|") if isinstance(entry, str) else entry
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise FirthError(
            "damaged_model", "config.json: {name} must be a list of names; got {got!r:.60}.", name=key, got=entry
        )
    return [part.strip() for part in parts]


def relative_scores(config: Config) -> tuple[str, ...]:
    """Return which scores of distances are added."""
    kinds = names(config, "pos_att_type")
    if others := sorted(set(kinds) - {*SCORES, ""}):
        raise FirthError(
            "unsupported_architecture",
            "config.json: {name} must be one of {choices}; got {got!r}.",
            name="pos_att_type",
            choices=", ".join(SCORES),
            got=others[0],
        )
    return tuple(kind for kind in SCORES if kind in kinds)


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a DeBERTa."""
    return {
        **bert.config(size),
        "position_biased_input": size.positions == "learned",
        "relative_attention": size.score_bias == "disentangled",
        "position_buckets": size.relative_buckets or -1,
        "max_relative_positions": size.relative_far,
        "pos_att_type": list(size.relative_scores),
        "norm_rel_ebd": "layer_norm" if size.relative_norm else "none",
        "share_att_key": size.relative_shared,
        "legacy": True,  # the names of the masked-token head's arrays
    }


DEBERTA = Family(
    model_type="deberta-v2",
    title="DeBERTa",
    prefix="deberta.",
    architecture=architecture,
    config=config,
    names={
        **bert.INPUT,
        **bert.BLOCK,
        "stack.blocks.*.attention.query_key_value": tuple(
            f"{ATTENTION}.{part}_proj" for part in ("query", "key", "value")
        ),
        "stack.blocks.*.attention.distances.key": f"{ATTENTION}.pos_key_proj",
        "stack.blocks.*.attention.distances.query": f"{ATTENTION}.pos_query_proj",
        "stack.distances.table": "encoder.rel_embeddings",
        "stack.distances.norm": "encoder.LayerNorm",
    },
    head_names={
        "masked.dense": "cls.predictions.transform.dense",
        "masked.norm": "cls.predictions.transform.LayerNorm",
        "masked.bias": "cls.predictions.bias",
    },
    classes={("masked",): "DebertaV2ForMaskedLM", (): "DebertaV2Model"},
    heads={**BERT_HEADS, SEQUENCE: Head("classifier", "pooler.dense", "gelu")},
    output="cls.predictions.decoder.weight",
    output_bias="cls.predictions.decoder.bias",
    ignored=bert.BUFFERS,
    renamed={
        "lm_predictions.lm_head.dense": "cls.predictions.transform.dense",
        "lm_predictions.lm_head.LayerNorm": "cls.predictions.transform.LayerNorm",
        "lm_predictions.lm_head": "cls.predictions",
    },
)
