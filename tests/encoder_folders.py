"""Folders of small encoders as transformers writes them, one for each family, with a tokenizer of its kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import tiny
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BRACKETS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
TAGS = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
#: Family: the name of transformers' classes, the kind of tokenizer, its special tokens, other settings of the config.
FAMILIES: dict[str, tuple[str, str, dict[str, str], dict[str, Any]]] = {
    "bert": ("Bert", "WordPiece", BRACKETS, {}),
    "roberta": ("Roberta", "BPE", TAGS, {"type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", "Unigram", TAGS, {"type_vocab_size": 1}),
    "camembert": ("Camembert", "Unigram", TAGS, {"type_vocab_size": 1}),
    "electra": ("Electra", "WordPiece", BRACKETS, {"embedding_size": 16}),
    "distilbert": ("DistilBert", "WordPiece", BRACKETS, {}),
    "mpnet": ("MPNet", "WordPiece", TAGS, {}),
    "modernbert": ("ModernBert", "BPE", BRACKETS, {"local_attention": 8, "global_attn_every_n_layers": 2}),
    "nomic_bert": ("NomicBert", "WordPiece", BRACKETS, {}),
    "deberta-v2": (
        "DebertaV2",
        "Unigram",
        BRACKETS,
        {
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
    "albert": ("Albert", "Unigram", BRACKETS, {"embedding_size": 16}),
}
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 130,
    "initializer_range": 0.1,
}


@cache
def tokenizer_of(family: str) -> Any:
    """A tokenizer of the kind that the family has, trained on the synthetic corpus."""
    _, kind, special, _ = FAMILIES[family]
    trained = {"WordPiece": wordpiece, "BPE": byte_level_bpe, "Unigram": unigram}[kind](list(special.values()), special)
    cls, sep = special["cls"], special["sep"]
    roberta_like = special is TAGS  # two separators between the texts of a pair, one segment
    trained.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} {sep} $B {sep}" if roberta_like else f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(token, trained.token_to_id(token)) for token in (cls, sep)],
    )
    roles = {f"{role}_token": token for role, token in special.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=trained, model_max_length=128, **roles)


def wordpiece(tokens: list[str], special: dict[str, str]) -> Tokenizer:
    engine = Tokenizer(models.WordPiece(unk_token=special["unk"]))
    engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    engine.train_from_iterator(tiny.texts(), trainers.WordPieceTrainer(vocab_size=500, special_tokens=tokens))
    return engine


def byte_level_bpe(tokens: list[str], special: dict[str, str]) -> Tokenizer:
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    engine.train_from_iterator(
        tiny.texts(), trainers.BpeTrainer(vocab_size=500, special_tokens=tokens, initial_alphabet=alphabet)
    )
    return engine


def unigram(tokens: list[str], special: dict[str, str]) -> Tokenizer:
    engine = Tokenizer(models.Unigram())
    engine.normalizer, engine.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    engine.train_from_iterator(
        tiny.texts(), trainers.UnigramTrainer(vocab_size=500, special_tokens=tokens, unk_token=special["unk"])
    )
    return engine


def network(family: str, kind: str = "ForMaskedLM", **settings: Any) -> Any:
    """A network of transformers with random weights, biases and norms included."""
    name, _, _, more = FAMILIES[family]
    tokenizer = tokenizer_of(family)
    ids = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "cls", "sep")}
    config = getattr(transformers, f"{name}Config")(
        **{**SHAPE, "vocab_size": len(tokenizer), **ids, "bos_token_id": ids["cls_token_id"],
           "eos_token_id": ids["sep_token_id"], **more, **settings}
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        net = getattr(transformers, f"{name}{kind}")._from_config(config, attn_implementation="eager").eval()
        with torch.no_grad():
            for part in net.parameters():
                if part.dim() == 1:
                    part += 0.1 * torch.randn_like(part)
    net.tie_weights()
    return net


def write_folder(folder: Path, family: str, kind: str = "ForMaskedLM", **settings: Any) -> Any:
    """Write a folder as transformers does, and return its network."""
    net = network(family, kind, **settings)
    net.save_pretrained(folder)
    tokenizer_of(family).save_pretrained(folder)
    return net
