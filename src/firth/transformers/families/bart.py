"""BART (Lewis et al. 2020): learned positions, norms after the residual sums, a norm of the embeddings."""

from __future__ import annotations

from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families.family import ACTIVATION_NAMES, Config, Family, Source

OFFSET = 2  # position ids begin after two that are never used


def architecture(config: Config) -> Architecture:
    """Read the config of a BART."""
    for name, value in (
        ("normalize_before", False), ("add_final_layer_norm", False), ("add_bias_logits", False),
        ("normalize_embedding", True), ("static_position_embeddings", False),
    ):  # fmt: skip
        config.require(name, value)  # of old configs
    return common(config, "bart", 1024)


def common(config: Config, family: str, positions: int) -> Architecture:
    """Read what BART and Marian have in common."""
    dim, heads = config.width("d_model"), config.heads("encoder_attention_heads")
    layers, feedforward = config.layers("encoder_layers"), config.integer("encoder_ffn_dim")
    return Architecture(
        layers=layers,
        dim=dim,
        heads=heads,
        feedforward_dim=feedforward,
        max_positions=config.integer("max_position_embeddings", positions),
        dropout=config.share("dropout", 0.1),
        activation=config.activation("activation_function", "gelu"),
        family=family,
        pre_norm=False,
        embedding_norm=True,
        embedding_scale=dim**0.5 if config.flag("scale_embedding", False) else 1.0,
        tied=config.flag("tie_word_embeddings", True),
        decoder_layers=config.layers("decoder_layers", layers),
        decoder_heads=config.heads("decoder_attention_heads", heads),
        decoder_feedforward_dim=config.integer("decoder_ffn_dim", feedforward),
    )


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a BART."""
    decoder = size.decoder
    return {
        "d_model": size.dim,
        "encoder_layers": size.layers,
        "encoder_attention_heads": size.heads,
        "encoder_ffn_dim": size.width_of_feedforward,
        "decoder_layers": decoder.layers,
        "decoder_attention_heads": decoder.heads,
        "decoder_ffn_dim": decoder.width_of_feedforward,
        "activation_function": ACTIVATION_NAMES[size.activation],
        "dropout": size.dropout,
        "max_position_embeddings": size.max_positions,
        "scale_embedding": size.embedding_scale != 1.0,
        "tie_word_embeddings": size.tied,
    }


def stack(name: str) -> dict[str, str | tuple[str, ...]]:
    """Return the names of a stack."""
    ours, theirs = f"{name}.blocks.*", f"{name}.layers.*"
    return {
        f"{ours}.attention.query_key_value": tuple(f"{theirs}.self_attn.{part}_proj" for part in "qkv"),
        f"{ours}.attention.output": f"{theirs}.self_attn.out_proj",
        f"{ours}.attention_norm": f"{theirs}.self_attn_layer_norm",
        f"{ours}.feed.wide": f"{theirs}.fc1",
        f"{ours}.feed.back": f"{theirs}.fc2",
        f"{ours}.feed_norm": f"{theirs}.final_layer_norm",
    }


CROSS = "decoder.layers.*.encoder_attn"
STACKS = {
    "source.tokens": "shared",
    **stack("encoder"),
    **stack("decoder"),
    "decoder.blocks.*.cross.query": f"{CROSS}.q_proj",
    "decoder.blocks.*.cross.key_value": (f"{CROSS}.k_proj", f"{CROSS}.v_proj"),
    "decoder.blocks.*.cross.output": f"{CROSS}.out_proj",
    "decoder.blocks.*.cross_norm": f"{CROSS}_layer_norm",
}
HEADS = {"output": "lm_head", "output_bias": "final_logits_bias"}
ALIASES = dict.fromkeys(("encoder.embed_tokens", "decoder.embed_tokens", "lm_head"), "shared")

BART = Family(
    model_type="bart",
    title="BART",
    prefix="model.",
    architecture=architecture,
    config=config,
    names={
        **STACKS,
        "source.positions": Source(("encoder.embed_positions",), skip=OFFSET),
        "source.norm": "encoder.layernorm_embedding",
        "target.positions": Source(("decoder.embed_positions",), skip=OFFSET),
        "target.norm": "decoder.layernorm_embedding",
    },
    head_names=HEADS,
    classes={(): "BartForConditionalGeneration"},
    ignored=("encoder.version", "decoder.version"),
    generation={"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
    aliases=ALIASES,
)
