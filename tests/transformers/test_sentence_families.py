"""sentence-transformers folders with other tokenizers than BERT's: RoBERTa, XLM-RoBERTa, MPNet; written back too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import firth
from firth.transformers.bert_model import BertModel

TEXTS = [
    "The river bank was sandy.",
    "Ein Mädchen aß  süße Äpfel 😀 東京",
    "",
    "a <mask> b",
    "the bank of the river " * 20,
]
DIM, FAIRSEQ = 16, ["<s>", "<pad>", "</s>", "<unk>"]
MASK = transformers.AddedToken("<mask>", lstrip=True, special=True)


def roberta_tokenizer(folder: Path) -> Any:
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[*FAIRSEQ, "<mask>"], initial_alphabet=alphabet)
    engine.train_from_iterator(TEXTS * 4, trainer)
    engine.model.save(str(folder))
    files: dict[str, Any] = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
    return transformers.RobertaTokenizer(**files | {"mask_token": MASK})


def xlm_roberta_tokenizer(folder: Path) -> Any:
    (folder / "corpus.txt").write_text("\n".join(TEXTS * 4), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "sentencepiece.bpe"), vocab_size=90,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    return transformers.XLMRobertaTokenizer.from_pretrained(folder, mask_token=MASK)


def mpnet_tokenizer(folder: Path) -> Any:
    engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=[*FAIRSEQ, "[UNK]", "<mask>"])
    engine.train_from_iterator(TEXTS * 4, trainer)
    vocab = engine.get_vocab()
    return transformers.MPNetTokenizer(vocab={token: vocab[token] for token in sorted(vocab, key=vocab.__getitem__)})


FAMILIES = {
    "roberta": (roberta_tokenizer, transformers.RobertaConfig, transformers.RobertaModel),
    "xlm-roberta": (xlm_roberta_tokenizer, transformers.XLMRobertaConfig, transformers.XLMRobertaModel),
    "mpnet": (mpnet_tokenizer, transformers.MPNetConfig, transformers.MPNetModel),
    "bert with tokens of xlm-roberta": (xlm_roberta_tokenizer, transformers.BertConfig, transformers.BertModel),
}


@pytest.mark.parametrize("mode", ["mean", ("cls", "weightedmean"), "lasttoken"])
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_of_sentence_transformers(family: str, mode: Any, tmp_path: Path) -> None:
    make_tokenizer, config, network = FAMILIES[family]
    work = tmp_path / "work"
    work.mkdir()
    tokenizer = make_tokenizer(work)
    torch.manual_seed(1)
    sizes = {"hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    settings = config(vocab_size=len(tokenizer), max_position_embeddings=66, initializer_range=0.2, **sizes, **ids)
    network(settings).save_pretrained(work / "net")
    tokenizer.save_pretrained(work / "net")
    net = Transformer(str(work / "net"), max_seq_length=30)
    prompts = {"query": "search: ", "document": "read this: "}
    pooling = Pooling(DIM, pooling_mode=mode, include_prompt=family != "mpnet")
    SentenceTransformer(modules=[net, pooling], device="cpu", prompts=prompts).save(str(tmp_path / "theirs"))
    theirs, model = SentenceTransformer(str(tmp_path / "theirs"), device="cpu"), firth.load(tmp_path / "theirs")
    assert isinstance(model, BertModel)
    with pytest.warns(UserWarning, match="truncated"):
        model.save(tmp_path / "ours")
        again, ours = SentenceTransformer(str(tmp_path / "ours"), device="cpu"), firth.load(tmp_path / "ours")
        assert isinstance(ours, BertModel)
        for name in ("query", "document", None):
            expected = theirs.encode(TEXTS, prompt_name=name)
            for vectors in (
                model.embed(TEXTS, device="cpu", prompt=name),
                ours.embed(TEXTS, device="cpu", prompt=name),
                again.encode(TEXTS, prompt_name=name),
            ):
                np.testing.assert_allclose(vectors, expected, atol=1e-5)
