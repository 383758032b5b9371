"""NomicBERT (Nussbaum et al. 2024): BERT with rotary positions and gated feed-forward, without biases.

Files have the array names of the first folders, which transformers renames when it reads and writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.transformers.families import bert
from firth.transformers.families.family import ACTIVATION_NAMES, BERT_HEADS, SEQUENCE, TOKEN, Config, Family
from firth.transformers.families.modernbert import GATES

#: Keys of the config that came with the first NomicBERT folders, by their names in transformers.
OLD_KEYS = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
    "hidden_dropout_prob": "resid_pdrop",
    "layer_norm_eps": "layer_norm_epsilon",
}
OLD_ACTIVATIONS = {"swiglu": "silu", "geglu": "gelu"}
#: Variants that those folders may ask for, with the only supported value.
FIXED = {
    "prenorm": False,
    "parallel_block": False,
    "use_rms_norm": False,
    "causal": False,
    "qkv_proj_bias": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "rotary_emb_interleaved": False,
    "rotary_emb_fraction": 1.0,
}


def architecture(config: Config) -> Architecture:
    """Read the config of a NomicBERT, with the keys of transformers or of the folder's own code."""
    if "n_embd" in config.values:
        config = translated(config)
    size = bert.architecture(config)
    entries = config.get("rope_parameters")
    rotary = Config(entries if isinstance(entries, dict) else {})
    rotary.require("rope_type", "default")
    config.require("head_dim", size.dim // size.heads)
    plain = config.activation("hidden_act", "silu")
    return replace(
        size,
        family="nomic_bert",
        max_positions=config.integer("max_position_embeddings", 2048),
        dropout=config.share("hidden_dropout_prob", 0.0),
        activation=GATES[plain],
        positions="rotary",
        attention_biases=False,
        output_biases=False,
        head_activation=plain,
        rotary_base=rotary.number("rope_theta", 1000.0, 1.0),
        rotary_halves=True,
        feedforward_biases=False,
    )


def translated(config: Config) -> Config:
    """Return a config with the keys of transformers."""
    for name, value in FIXED.items():
        config.require(name, value)
    config.require("rotary_scaling_factor", None)
    values = {new: config.values[old] for new, old in OLD_KEYS.items() if old in config.values}
    values["hidden_act"] = config.choice("activation_function", "swiglu", OLD_ACTIVATIONS)
    values["rope_parameters"] = {"rope_theta": config.number("rotary_emb_base", 1000.0, 1.0)}
    values["type_vocab_size"] = config.get("type_vocab_size", 2)
    return Config(values)


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a NomicBERT."""
    plain = replace(size, activation=GATED_ACTIVATIONS[size.activation])
    rotary = {"rope_type": "default", "rope_theta": size.rotary_base}
    return {**bert.config(plain), "hidden_act": ACTIVATION_NAMES[plain.activation], "rope_parameters": rotary}


NOMIC_BERT = Family(
    model_type="nomic_bert",
    title="NomicBERT",
    prefix="nomic_bert.",
    architecture=architecture,
    config=config,
    names={
        "input.tokens": "embeddings.word_embeddings",
        "input.segments": "embeddings.token_type_embeddings",
        "input.norm": "emb_ln",
        "stack.blocks.*.attention.query_key_value": "encoder.layers.*.attn.Wqkv",
        "stack.blocks.*.attention.output": "encoder.layers.*.attn.out_proj",
        "stack.blocks.*.attention_norm": "encoder.layers.*.norm1",
        "stack.blocks.*.feed.wide": ("encoder.layers.*.mlp.fc12", "encoder.layers.*.mlp.fc11"),  # the gate comes first
        "stack.blocks.*.feed.back": "encoder.layers.*.mlp.fc2",
        "stack.blocks.*.feed_norm": "encoder.layers.*.norm2",
        "pooler": "pooler.dense",
    },
    head_names={
        "masked.dense": "cls.predictions.transform.dense",
        "masked.norm": "cls.predictions.transform.layer_norm",
        "masked.bias": "cls.predictions.bias",
    },
    classes={("masked",): "NomicBertForMaskedLM", (): "NomicBertModel"},
    heads={SEQUENCE: BERT_HEADS[SEQUENCE], TOKEN: BERT_HEADS[TOKEN]},
    output="cls.predictions.decoder.weight",
    output_bias="cls.predictions.decoder.bias",
    ignored=bert.BUFFERS,
    modules={
        "stack.blocks.*.attention.query_key_value": (
            "layers.*.self_attn.q_proj",
            "layers.*.self_attn.k_proj",
            "layers.*.self_attn.v_proj",
        ),
        "stack.blocks.*.attention.output": "layers.*.self_attn.o_proj",
        "stack.blocks.*.feed.wide": ("layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"),
        "stack.blocks.*.feed.back": "layers.*.mlp.down_proj",
    },
)
