"""T5 (Raffel et al. 2020), T5 v1.1 and Flan-T5: relative bias, RMS norm before the sublayers, no biases, no scaling."""

from __future__ import annotations

from typing import Any

from firth.core.errors import FirthError
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.transformers.families.family import ACTIVATION_NAMES, ACTIVATIONS, Config, Family
from firth.transformers.families.modernbert import GATES

MOST_TOKENS = 4096  # of a text: relative positions have no end, but the scores of all pairs must fit into memory
GATED = "gated-"


def architecture(config: Config) -> Architecture:
    """Read the config of a T5."""
    layers, dim = config.layers("num_layers"), config.width("d_model")
    tied = config.flag("tie_word_embeddings", True)
    return Architecture(
        layers=layers,
        dim=dim,
        heads=config.heads("num_heads"),
        feedforward_dim=config.integer("d_ff"),
        max_positions=MOST_TOKENS,
        dropout=config.share("dropout_rate", 0.1),
        activation=activation(config),
        positions="none",
        epsilon=config.number("layer_norm_epsilon", 1e-6, high=0.95),
        family="t5",
        tied=tied,
        logit_scale=dim**-0.5 if config.flag("scale_decoder_outputs", tied) else 1.0,
        head_dim=config.integer("d_kv", high=65536),
        attention_biases=False,
        output_biases=False,
        score_scale=1.0,
        decoder_layers=config.layers("num_decoder_layers", layers),
        score_bias="relative",
        relative_buckets=config.integer("relative_attention_num_buckets", 32, low=4, high=65536),
        relative_far=config.integer("relative_attention_max_distance", 128),
        norm="rms",
        feedforward_biases=False,
    )


def activation(config: Config) -> str:
    """Return the activation, such as relu or gated-gelu, which is approximated by tanh."""
    name = config.get("feed_forward_proj", "relu")
    gated = isinstance(name, str) and name.startswith(GATED)
    plain = name.removeprefix(GATED) if gated else name
    if not isinstance(plain, str) or plain not in ACTIVATIONS:
        raise FirthError(
            "unsupported_architecture",
            "config.json: {name} must be one of {choices}; got {got!r}.",
            name="feed_forward_proj",
            choices=", ".join([*ACTIVATIONS, *(GATED + each for each in ACTIVATIONS)]),
            got=name,
        )
    if gated and plain == "gelu":
        plain = "gelu_new"
    config.require("is_gated_act", gated)  # transformers derives both from feed_forward_proj, but obeys them if stored
    config.require("dense_act_fn", plain)
    return GATES[ACTIVATIONS[plain]] if gated else ACTIVATIONS[plain]


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a T5."""
    gate = GATED_ACTIVATIONS.get(size.activation)
    named = ACTIVATION_NAMES[gate or size.activation]
    return {
        "d_model": size.dim,
        "num_layers": size.layers,
        "num_decoder_layers": size.decoder.layers,
        "num_heads": size.heads,
        "d_kv": size.width_of_head,
        "d_ff": size.width_of_feedforward,
        "feed_forward_proj": GATED + ("gelu" if gate == "gelu_tanh" else named) if gate else named,
        "dropout_rate": size.dropout,
        "layer_norm_epsilon": size.epsilon,
        "relative_attention_num_buckets": size.relative_buckets,
        "relative_attention_max_distance": size.relative_far,
        "tie_word_embeddings": size.tied,
        "scale_decoder_outputs": size.logit_scale != 1.0,
    }


def stack(name: str, feed: int, part: str = "") -> dict[str, str | tuple[str, ...]]:
    """Return the names of a stack; `feed` is the number of the feed-forward sublayer, `part` Firth's name."""
    part = part or name
    ours, theirs = f"{part}.blocks.*", f"{name}.block.*.layer"
    return {
        f"{part}.bias.table": f"{name}.block.0.layer.0.SelfAttention.relative_attention_bias",
        f"{part}.norm": f"{name}.final_layer_norm",
        f"{ours}.attention.query_key_value": tuple(f"{theirs}.0.SelfAttention.{letter}" for letter in "qkv"),
        f"{ours}.attention.output": f"{theirs}.0.SelfAttention.o",
        f"{ours}.attention_norm": f"{theirs}.0.layer_norm",
        f"{ours}.feed.wide": f"{theirs}.{feed}.DenseReluDense.wi",
        f"{ours}.feed.back": f"{theirs}.{feed}.DenseReluDense.wo",
        f"{ours}.feed_norm": f"{theirs}.{feed}.layer_norm",
    }


def gated(name: str, feed: int) -> tuple[str, ...]:
    """Return the names of the two halves of a gated feed-forward layer."""
    return tuple(f"{name}.block.*.layer.{feed}.DenseReluDense.wi_{half}" for half in range(2))


CROSS = "decoder.block.*.layer.1"
T5 = Family(
    model_type="t5",
    title="T5",
    prefix="",
    architecture=architecture,
    config=config,
    names={
        "source.tokens": "shared",
        **stack("encoder", 1),
        **stack("decoder", 2),
        "decoder.blocks.*.cross.query": f"{CROSS}.EncDecAttention.q",
        "decoder.blocks.*.cross.key_value": (f"{CROSS}.EncDecAttention.k", f"{CROSS}.EncDecAttention.v"),
        "decoder.blocks.*.cross.output": f"{CROSS}.EncDecAttention.o",
        "decoder.blocks.*.cross_norm": f"{CROSS}.layer_norm",
    },
    gated_names={"encoder.blocks.*.feed.wide": gated("encoder", 1), "decoder.blocks.*.feed.wide": gated("decoder", 2)},
    head_names={"output": "lm_head"},
    classes={(): "T5ForConditionalGeneration"},
    ignored=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    generation={"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    aliases=dict.fromkeys(("encoder.embed_tokens", "decoder.embed_tokens", "lm_head"), "shared"),
)
#: The encoder alone, which embeds texts (Sentence-T5, Ni et al. 2022).
T5_ENCODER = Family(
    model_type="t5",
    title="T5 encoder",
    prefix="",
    architecture=architecture,
    config=config,
    names={"input.tokens": "shared", **stack("encoder", 1, "stack")},
    gated_names={"stack.blocks.*.feed.wide": gated("encoder", 1)},
    classes={(): "T5EncoderModel"},
    aliases={"encoder.embed_tokens": "shared"},
)
