"""Words and their token spans with tokenizers that mark spaces in tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentencepiece

from firth import BPE, SubwordTokenizer
from firth.transformers.word_spans import WordMatcher, read

CORPUS = ["the bank of the river, isn't it? a bank.", "She went to the (old) bank; the bank was closed!"] * 20
TEXT = "the bank, the (old) bank isn't  closed!"


def sentencepiece_tokenizer(folder: Path, model_type: str, name: str) -> SubwordTokenizer:
    (folder / "corpus.txt").write_text("\n".join(CORPUS))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "m"), vocab_size=60, model_type=model_type,
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    return SubwordTokenizer.load((folder / "m.model").rename(folder / name))


@pytest.mark.parametrize(
    ("kind", "name"), [("unigram", "sentencepiece.bpe.model"), ("bpe", "tokenizer.model"), ("", "")]
)
def test_words_are_split_from_punctuation(kind: str, name: str, tmp_path: Path) -> None:
    tokenizer = sentencepiece_tokenizer(tmp_path, kind, name) if kind else BPE(size=290).train(CORPUS)
    (reading,) = read(tokenizer, [TEXT])
    expected = ["the", "bank", ",", "the", "(", "old", ")", "bank", "isn", "'", "t", "closed", "!"]
    if not kind:
        expected[9:11] = ["'t"]
    assert [word.text for word in reading.words] == expected
    for word in reading.words:
        assert TEXT[word.begin : word.end] == word.text
        tokens = "".join(tokenizer.tokens[id] for id in reading.ids[word.first : word.last])
        assert tokens.strip("▁Ġ") == word.text
    spans = [span for _, span in WordMatcher(tokenizer, ["bank"]).within(reading)]
    assert spans == [(word.first, word.last) for word in reading.words if word.text == "bank"] and len(spans) == 2
