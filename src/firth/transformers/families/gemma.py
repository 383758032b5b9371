"""Gemma 2 and Gemma 3 (Gemma Team 2024, 2025): norms around each sublayer, soft caps, local and global attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.transformers.families.family import GLOBAL, LOCAL, Config, Family, Names, Source
from firth.transformers.families.llama import (
    BLOCK,
    GATES,
    QUERY_KEY_NORMS,
    REST,
    architecture,
    rotary_config,
    rotary_settings,
    windows,
)
from firth.transformers.families.llama import config as llama_config

#: Norms are stored as the difference from 1.
NORMS = {
    "stack.norm": "norm",
    "stack.blocks.*.attention_norm": "layers.*.input_layernorm",
    "stack.blocks.*.attention_output_norm": "layers.*.post_attention_layernorm",
    "stack.blocks.*.feed_norm": "layers.*.pre_feedforward_layernorm",
    "stack.blocks.*.feed_output_norm": "layers.*.post_feedforward_layernorm",
}
ACTIVATION_NAMES = {"gelu_tanh": "gelu_pytorch_tanh", "gelu": "gelu", "silu": "silu", "relu": "relu"}


def shared(config: Config) -> dict[str, Any]:
    """Return what Gemma 2 and Gemma 3 have in common."""
    head_dim = config.width("head_dim", 256)
    return {
        "head_dim": head_dim,
        "key_value_heads": config.heads("num_key_value_heads", 4),
        "activation": GATES[config.activation("hidden_activation", "gelu_pytorch_tanh")],
        "tied": config.flag("tie_word_embeddings", True),
        "embedding_scale": float(config.width()) ** 0.5,
        "sublayer_norms": True,
        "score_scale": config.number("query_pre_attn_scalar", 256.0, 1e-6) ** -0.5,
    }


def gemma2(config: Config) -> Architecture:
    """Read the config of a Gemma 2: every second layer is local."""
    config.require("use_bidirectional_attention", None, False)
    return architecture(
        config,
        "gemma2",
        **shared(config),
        max_positions=config.integer("max_position_embeddings", 8192),
        score_cap=config.number(
            "attn_logit_softcapping", 50.0 if "attn_logit_softcapping" not in config.values else 0.0
        ),
        logit_cap=config.number(
            "final_logit_softcapping", 30.0 if "final_logit_softcapping" not in config.values else 0.0
        ),
        **windows(config, lambda layer: layer % 2 == 0),
    )


def gemma3(config: Config) -> Architecture:
    """Read the config of a Gemma 3: normalized queries and keys, five local layers before each global one."""
    every = config.integer("sliding_window_pattern", 6)
    bases = rotary_bases(config)
    size = architecture(
        config,
        "gemma3_text",
        **shared(config),
        **bases,
        max_positions=config.integer("max_position_embeddings", 131_072),
        qk_norm=True,
        score_cap=config.number("attn_logit_softcapping", 0.0),
        logit_cap=config.number("final_logit_softcapping", 0.0),
        bidirectional=config.flag("use_bidirectional_attention", False),
        **windows(config, lambda layer: (layer + 1) % every > 0),
    )
    if not size.bidirectional or not size.local_layers:
        return size
    from dataclasses import replace

    return replace(size, window=(size.window + 1) // 2)  # half to each side


def rotary_bases(config: Config) -> dict[str, Any]:
    """Return the rotary positions of global and of local layers, from old or new keys."""
    settings = config.get("rope_parameters")
    if isinstance(settings, dict) and GLOBAL in settings:
        parts = {
            kind: Config(settings[kind] if isinstance(settings.get(kind), dict) else {}) for kind in (GLOBAL, LOCAL)
        }
        parts[LOCAL].require("rope_type", "default")
        base, scaling = rotary_settings(parts[GLOBAL], 1_000_000.0)
        local = parts[LOCAL].number("rope_theta", 10_000.0, 1.0)
    else:
        settings = {**(config.get("rope_scaling") or {}), "rope_theta": config.get("rope_theta")}
        base, scaling = rotary_settings(Config(settings), 1_000_000.0)
        local = config.number("rope_local_base_freq", 10_000.0, 1.0)
    return {"rotary_base": base, "rotary_scaling": scaling, "rotary_local_base": local}


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a Gemma."""
    written = llama_config(size)
    for name in ("hidden_act", "mlp_bias", "use_sliding_window"):
        del written[name]
    window = size.window + 1 if size.local_layers else 4096
    if size.family == "gemma3_text":
        written["rope_parameters"] = {
            GLOBAL: rotary_config(size.rotary_base, size.rotary_scaling),
            LOCAL: rotary_config(size.rotary_local_base, None),
        }
        written["use_bidirectional_attention"] = size.bidirectional
        window = 2 * size.window if size.bidirectional else window
    return {
        **written,
        "hidden_activation": ACTIVATION_NAMES[GATED_ACTIVATIONS[size.activation]],
        "query_pre_attn_scalar": round(size.score_scale**-2),
        "attn_logit_softcapping": size.score_cap or None,
        "final_logit_softcapping": size.logit_cap or None,
        "sliding_window": window,
    }


def family(model_type: str, title: str, name: str, read: Callable[[Config], Architecture], more: Names) -> Family:
    """Return a family with the names of Gemma and `more`."""
    stored = {ours: theirs for ours, theirs in {**NORMS, **more}.items() if isinstance(theirs, str)}
    norms = {ours: Source((theirs,), plus_one=True) for ours, theirs in stored.items()}
    return Family(
        model_type=model_type,
        title=title,
        prefix="model.",
        architecture=read,
        config=config,
        names={**REST, **BLOCK, **norms},
        head_names={"output": "lm_head"},
        classes={(): f"{name}ForCausalLM"},
    )


GEMMA2 = family("gemma2", "Gemma 2", "Gemma2", gemma2, {})
GEMMA3 = family("gemma3_text", "Gemma 3", "Gemma3", gemma3, QUERY_KEY_NORMS)
