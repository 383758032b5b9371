"""Encoder-decoders of transformers with random weights, as a table of families and settings.

Weights are drawn with a large standard deviation: at the usual one, a missing position scheme changes logits little.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

VOCABULARY, PAD, END, BEGIN = 60, 0, 1, 2
T5_COMMON = {
    "d_model": 48,
    "d_kv": 8,
    "d_ff": 80,
    "num_layers": 3,
    "num_heads": 4,
    "initializer_factor": 1.0,
    "decoder_start_token_id": PAD,
    "relative_attention_num_buckets": 16,
    "relative_attention_max_distance": 40,
}
BART_COMMON = {
    "d_model": 48,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 80,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 90,
    "init_std": 0.15,
    "decoder_start_token_id": BEGIN,
    "forced_eos_token_id": None,
}
#: Family, the classes of transformers, and settings.
CONFIGS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("t5", "T5Config", "T5ForConditionalGeneration", {}),
    ("t5", "T5Config", "T5ForConditionalGeneration", {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 2}),
    (
        "t5",
        "T5Config",
        "T5ForConditionalGeneration",
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "d_kv": 12},
    ),
    ("t5", "T5Config", "T5ForConditionalGeneration", {"feed_forward_proj": "gated-silu", "layer_norm_epsilon": 1e-3}),
    ("bart", "BartConfig", "BartForConditionalGeneration", {}),
    ("bart", "BartConfig", "BartForConditionalGeneration", {"scale_embedding": True, "activation_function": "relu"}),
    ("marian", "MarianConfig", "MarianMTModel", {"activation_function": "swish", "scale_embedding": True}),
    ("marian", "MarianConfig", "MarianMTModel", {"activation_function": "relu", "decoder_attention_heads": 4}),
]
NAMES = [f"{family}{number}" for number, (family, *_) in enumerate(CONFIGS)]


def hugging_face(config_class: str, model_class: str, settings: dict[str, Any]) -> Any:
    """A network of transformers with random weights, biases and norms included."""
    common = T5_COMMON if config_class.startswith("T5") else BART_COMMON
    ids = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "eos_token_id": END, "bos_token_id": None}
    config = getattr(transformers, config_class)(**{**common, **ids, **settings})
    torch.manual_seed(5)
    net = getattr(transformers, model_class)._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for part in net.parameters():
            if part.dim() == 1:
                part += 0.1 * torch.randn_like(part)
        if "final_logits_bias" in dict(net.named_buffers()):
            net.final_logits_bias += torch.randn_like(net.final_logits_bias)
        if settings.get("tie_word_embeddings") is False:
            net.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, config.d_model))
    return net


def new_tokenizer() -> Tokenizer:
    """Words w3 to w59, and </s> after each text."""
    vocabulary = {"<pad>": PAD, "</s>": END, "<unk>": BEGIN} | {f"w{id}": id for id in range(3, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return tokenizer


def save_tokenizer(folder: Path) -> None:
    """Write the tokenizer as transformers does."""
    new_tokenizer().save(str(folder / "tokenizer.json"))
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
