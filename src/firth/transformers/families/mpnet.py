"""MPNet (Song et al. 2020): BERT without segments, with learned positions and a relative bias of the scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families import bert
from firth.transformers.families.family import Config, Family, Source

OFFSET = 2  # position ids begin after that of the padding token, which is 1
BUCKETS = 32  # transformers ignores another number in config.json


def architecture(config: Config) -> Architecture:
    """Read the config of an MPNet."""
    config.require("relative_attention_num_buckets", BUCKETS)
    positions = config.integer("max_position_embeddings", 512, low=OFFSET + 1)
    return replace(
        bert.architecture(config),
        family="mpnet",
        segments=0,
        max_positions=positions - OFFSET,
        score_bias="relative",
        relative_buckets=BUCKETS,
        head_activation="gelu",
    )


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of an MPNet."""
    common = bert.config(size)
    del common["type_vocab_size"]
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    more = {"max_position_embeddings": size.max_positions + OFFSET, "relative_attention_num_buckets": BUCKETS}
    return {**common, **ids, **more}


MPNET = Family(
    model_type="mpnet",
    title="MPNet",
    prefix="mpnet.",
    architecture=architecture,
    config=config,
    names={
        "input.tokens": "embeddings.word_embeddings",
        "input.positions": Source(("embeddings.position_embeddings",), skip=OFFSET),
        "input.norm": "embeddings.LayerNorm",
        "stack.bias.table": "encoder.relative_attention_bias",
        "stack.blocks.*.attention.query_key_value": (
            "encoder.layer.*.attention.attn.q",
            "encoder.layer.*.attention.attn.k",
            "encoder.layer.*.attention.attn.v",
        ),
        "stack.blocks.*.attention.output": "encoder.layer.*.attention.attn.o",
        "stack.blocks.*.attention_norm": "encoder.layer.*.attention.LayerNorm",
        "stack.blocks.*.feed.wide": "encoder.layer.*.intermediate.dense",
        "stack.blocks.*.feed.back": "encoder.layer.*.output.dense",
        "stack.blocks.*.feed_norm": "encoder.layer.*.output.LayerNorm",
        "pooler": "pooler.dense",
    },
    head_names=bert.LM_HEAD,
    classes={("masked",): "MPNetForMaskedLM", (): "MPNetModel"},
    heads=bert.TANH_HEADS,
    output="lm_head.decoder.weight",
    output_bias="lm_head.decoder.bias",
    ignored=bert.BUFFERS,
)
