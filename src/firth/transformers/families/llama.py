"""Llama (Touvron et al. 2023, Dubey et al. 2024; SmolLM2 has the same network), Qwen 2 and Qwen 3."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from firth.core.errors import FirthError
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.nets.positions import LLAMA3, RotaryScaling
from firth.transformers.families.family import ACTIVATION_NAMES, Config, Family, Names, layer_types

GATES = {plain: gated for gated, plain in GATED_ACTIVATIONS.items()}

BLOCK: Names = {
    "stack.blocks.*.attention.query_key_value": (
        "layers.*.self_attn.q_proj",
        "layers.*.self_attn.k_proj",
        "layers.*.self_attn.v_proj",
    ),
    "stack.blocks.*.attention.output": "layers.*.self_attn.o_proj",
    "stack.blocks.*.attention_norm": "layers.*.input_layernorm",
    "stack.blocks.*.feed.wide": ("layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"),
    "stack.blocks.*.feed.back": "layers.*.mlp.down_proj",
    "stack.blocks.*.feed_norm": "layers.*.post_attention_layernorm",
}
REST: Names = {"embedding.tokens": "embed_tokens", "stack.norm": "norm"}
QUERY_KEY_NORMS: Names = {
    "stack.blocks.*.attention.query_norm": "layers.*.self_attn.q_norm",
    "stack.blocks.*.attention.key_norm": "layers.*.self_attn.k_norm",
}


def architecture(config: Config, family: str, **changes: Any) -> Architecture:
    """Read the config of a Llama or a Qwen; `changes` are the settings in which the family differs."""
    biases = config.flag("attention_bias", False)
    dim, heads = config.width(), config.heads()
    base, scaling = rotary(config)
    settings: dict[str, Any] = {
        "layers": config.layers(),
        "dim": dim,
        "heads": heads,
        "key_value_heads": config.heads("num_key_value_heads", heads),
        "head_dim": config.width("head_dim", max(1, dim // heads)),
        "feedforward_dim": config.integer("intermediate_size"),
        "max_positions": config.integer("max_position_embeddings", 2048),
        "dropout": config.share("attention_dropout", 0.0),
        "activation": GATES[config.activation("hidden_act", "silu")],
        "positions": "rotary",
        "epsilon": config.number("rms_norm_eps", 1e-6, high=0.95),
        "family": family,
        "tied": config.flag("tie_word_embeddings", False),
        "attention_biases": biases,
        "output_biases": biases,
        "rotary_base": base,
        "rotary_halves": True,
        "rotary_scaling": scaling,
        "norm": "rms",
        "norm_biases": False,
        "feedforward_biases": config.flag("mlp_bias", False),
    }
    return Architecture(**settings | changes)


def rotary(config: Config, base: float = 10_000.0) -> tuple[float, RotaryScaling | None]:
    """Return the base and the scaling of rotary positions, from old or new keys."""
    settings = config.get("rope_parameters")
    if not isinstance(settings, dict):
        settings = {**(config.get("rope_scaling") or {}), "rope_theta": config.get("rope_theta", base)}
    return rotary_settings(Config(settings), base)


def rotary_settings(settings: Config, base: float) -> tuple[float, RotaryScaling | None]:
    """Return the base and the scaling of rotary positions in a part of config.json."""
    kind = settings.choice(
        "rope_type" if settings.get("rope_type") else "type",
        "default",
        {"default": "", "linear": "linear", LLAMA3: LLAMA3},
    )
    theta = settings.number("rope_theta", base, 1.0)
    if not kind:
        return theta, None
    factor = settings.number("factor", 1.0, 1.0)
    if kind != LLAMA3:
        return theta, RotaryScaling(kind, factor)
    low, high = settings.number("low_freq_factor", 1.0, 1e-6), settings.number("high_freq_factor", 4.0, 1e-6)
    if low >= high:
        raise FirthError(
            "damaged_model",
            "config.json: {name} must be larger than low_freq_factor={low:g}; got {got:g}.",
            name="high_freq_factor",
            low=low,
            got=high,
        )
    context = settings.integer("original_max_position_embeddings", 8192)
    return theta, RotaryScaling(kind, factor, low, high, context)


def windows(config: Config, default: Callable[[int], bool]) -> dict[str, Any]:
    """Return the window and the local layers; `default` says whether a layer is local if config.json does not."""
    window = config.get("sliding_window")
    local = config.local_layers(lambda layer: bool(window) and default(layer))
    # The window counts the token itself; Firth's is the distance of the farthest token.
    return {"window": config.integer("sliding_window") - 1 if local else 0, "local_layers": local}


def qwen2(config: Config) -> Architecture:
    """Read the config of a Qwen 2: queries, keys and values have biases, upper layers may be local."""
    return architecture(config, "qwen2", attention_biases=True, output_biases=False, **qwen_windows(config))


def qwen3(config: Config) -> Architecture:
    """Read the config of a Qwen 3: queries and keys are normalized."""
    head_dim = config.width("head_dim", 128)
    return architecture(config, "qwen3", qk_norm=True, head_dim=head_dim, **qwen_windows(config))


def qwen_windows(config: Config) -> dict[str, Any]:
    """Return the windows of local layers, which Qwen has from a given layer on."""
    if config.get("layer_types") is None and not config.flag("use_sliding_window", False):
        return {}
    first = config.integer("max_window_layers", 28, low=0)
    return windows(config, lambda layer: layer >= first)


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a Llama or a Qwen."""
    return {
        "hidden_size": size.dim,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.key_value_heads,
        "head_dim": size.head_dim,
        "intermediate_size": size.width_of_feedforward,
        "hidden_act": ACTIVATION_NAMES[GATED_ACTIVATIONS[size.activation]],
        "max_position_embeddings": size.max_positions,
        "attention_dropout": size.dropout,
        "rms_norm_eps": size.epsilon,
        "rope_parameters": rotary_config(size.rotary_base, size.rotary_scaling),
        "attention_bias": size.output_biases,
        "mlp_bias": size.feedforward_biases,
        "tie_word_embeddings": size.tied,
        **window_config(size),
    }


def rotary_config(base: float, scaling: RotaryScaling | None) -> dict[str, Any]:
    """Write the settings of rotary positions."""
    settings: dict[str, Any] = {"rope_type": scaling.kind if scaling else "default", "rope_theta": base}
    if scaling is not None:
        settings["factor"] = scaling.factor
        if scaling.kind == LLAMA3:
            settings |= {"low_freq_factor": scaling.low, "high_freq_factor": scaling.high}
            settings["original_max_position_embeddings"] = scaling.context
    return settings


def window_config(size: Architecture) -> dict[str, Any]:
    """Write the windows of local layers."""
    if size.family == "llama":
        return {}
    types = layer_types(size)
    return {
        "use_sliding_window": bool(size.local_layers),
        "sliding_window": size.window + 1 if size.local_layers else None,
        "layer_types": types,
    }


def family(model_type: str, title: str, name: str, read: Callable[[Config], Architecture], more: Names) -> Family:
    """Return a family with the names of Llama and `more`."""
    return Family(
        model_type=model_type,
        title=title,
        prefix="model.",
        architecture=read,
        config=config,
        names={**REST, **BLOCK, **more},
        head_names={"output": "lm_head"},
        classes={(): f"{name}ForCausalLM"},
        ignored=tuple(f"layers.{layer}.self_attn.rotary_emb.inv_freq" for layer in range(1000)),
    )


LLAMA = family("llama", "Llama", "Llama", partial(architecture, family="llama"), {})
QWEN2 = family("qwen2", "Qwen 2", "Qwen2", qwen2, {})
QWEN3 = family("qwen3", "Qwen 3", "Qwen3", qwen3, QUERY_KEY_NORMS)
