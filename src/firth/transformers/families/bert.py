"""BERT (Devlin et al. 2019), in Hugging Face's layout."""

from __future__ import annotations

from typing import Any

from firth.nets.architecture import Architecture
from firth.transformers.families.family import ACTIVATION_NAMES, BERT_HEADS, SEQUENCE, Config, Family, Head, Names

BLOCK: Names = {
    "stack.blocks.*.attention.query_key_value": (
        "encoder.layer.*.attention.self.query",
        "encoder.layer.*.attention.self.key",
        "encoder.layer.*.attention.self.value",
    ),
    "stack.blocks.*.attention.output": "encoder.layer.*.attention.output.dense",
    "stack.blocks.*.attention_norm": "encoder.layer.*.attention.output.LayerNorm",
    "stack.blocks.*.feed.wide": "encoder.layer.*.intermediate.dense",
    "stack.blocks.*.feed.back": "encoder.layer.*.output.dense",
    "stack.blocks.*.feed_norm": "encoder.layer.*.output.LayerNorm",
}
INPUT: Names = {
    "input.tokens": "embeddings.word_embeddings",
    "input.positions": "embeddings.position_embeddings",
    "input.segments": "embeddings.token_type_embeddings",
    "input.norm": "embeddings.LayerNorm",
}
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")


LM_HEAD: Names = {
    "masked.dense": "lm_head.dense",
    "masked.norm": "lm_head.layer_norm",
    "masked.bias": "lm_head.bias",
}  # of RoBERTa and MPNet
TANH_HEADS = {**BERT_HEADS, SEQUENCE: Head("classifier.out_proj", "classifier.dense")}


def architecture(config: Config) -> Architecture:
    """Read the config of a BERT."""
    config.require("position_embedding_type", "absolute")
    config.require("is_decoder", False)
    return Architecture(
        layers=config.layers(),
        dim=config.width(),
        heads=config.heads(),
        feedforward_dim=config.integer("intermediate_size"),
        max_positions=config.integer("max_position_embeddings", 512),
        dropout=config.share("hidden_dropout_prob", 0.1),
        activation=config.activation("hidden_act", "gelu"),
        family="bert",
        pre_norm=False,
        epsilon=config.number("layer_norm_eps", 1e-12, high=0.95),
        segments=config.integer("type_vocab_size", 2),
        embedding_norm=True,
    )


def config(size: Architecture) -> dict[str, Any]:
    """Write the config of a BERT."""
    return {
        "hidden_size": size.dim,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": size.width_of_feedforward,
        "hidden_act": ACTIVATION_NAMES[size.activation],
        "hidden_dropout_prob": size.dropout,
        "attention_probs_dropout_prob": 0.0,  # dropout is applied to hidden states, never to attention weights
        "max_position_embeddings": size.max_positions,
        "type_vocab_size": size.segments,
        "layer_norm_eps": size.epsilon,
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }


BERT = Family(
    model_type="bert",
    title="BERT",
    prefix="bert.",
    architecture=architecture,
    config=config,
    names={**INPUT, **BLOCK, "pooler": "pooler.dense"},
    head_names={
        "masked.dense": "cls.predictions.transform.dense",
        "masked.norm": "cls.predictions.transform.LayerNorm",
        "masked.bias": "cls.predictions.bias",
        "next_sentence": "cls.seq_relationship",
    },
    classes={
        ("masked", "next_sentence"): "BertForPreTraining",
        ("masked",): "BertForMaskedLM",
        ("next_sentence",): "BertForNextSentencePrediction",
        (): "BertModel",
    },
    heads=BERT_HEADS,
    output="cls.predictions.decoder.weight",
    output_bias="cls.predictions.decoder.bias",
    ignored=BUFFERS,
)
