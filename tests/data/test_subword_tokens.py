"""Encoding of a corpus with a subword tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses, warns_code

import firth
from firth import BPE, Characters, Corpus, Run, WordPiece, encode_corpus
from firth.core.report import Silence
from firth.data import subword_tokens
from firth.data.world import World

TEXT = list(World(seed=3).sentences(300))
MADE = {
    "bytes": BPE(size=400).train(TEXT),
    "characters": BPE(size=200, level="characters").train(TEXT),
    "wordpiece": WordPiece(size=200).train(TEXT),
    "single": Characters().train(TEXT),
}


class Steps(Silence):
    def __init__(self) -> None:
        self.tasks: list[tuple[str, float]] = []
        self.steps: list[float] = []

    def begin(self, task: str, total: float, unit: str) -> None:
        self.tasks.append((task, total))

    def step(self, done: float, **metrics: float) -> None:
        self.steps.append(done)


@pytest.mark.parametrize("kind", MADE)
def test_documents_are_encoded_as_ids(kind: str) -> None:
    tokenizer = MADE[kind]
    tokens = encode_corpus(tokenizer, [*TEXT[:20], "", TEXT[20]])
    assert len(tokens) == 22 and tokens.ids.dtype == np.int32
    for number, text in enumerate([*TEXT[:20], "", TEXT[20]]):
        ids = tokens.ids[tokens.starts[number] : tokens.starts[number + 1]].tolist()
        assert ids == tokenizer.encode(text, special=False).ids
    assert tokens.vocabulary.tokens == [tokenizer.tokens[id] for id in range(tokenizer.size)]
    assert tokens.vocabulary.counts.tolist() == np.bincount(tokens.ids, minlength=tokenizer.size).tolist()


def test_end_token_is_appended_to_each_document() -> None:
    tokenizer = MADE["bytes"]
    tokens = encode_corpus(tokenizer, TEXT[:5], end="<|endoftext|>")
    assert tokens.ids[tokens.starts[1:] - 1].tolist() == [0] * 5
    assert tokenizer.decode(tokens.ids) == "".join(TEXT[:5])
    with refuses("unknown_token", token="</s>", available="<|endoftext|>"):
        encode_corpus(tokenizer, TEXT, end="</s>")


def test_the_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT))
    report = Steps()
    first = encode_corpus(MADE["bytes"], path, Run(report=report))
    assert report.tasks == [("encoding", path.stat().st_size)] and report.steps[-1] == path.stat().st_size
    with_end = encode_corpus(MADE["bytes"], path, end="<|endoftext|>")
    other = encode_corpus(MADE["wordpiece"], path)
    monkeypatch.setattr(firth.SubwordTokenizer, "ids_batch", None)  # encoding again would fail
    again = encode_corpus(MADE["bytes"], Corpus(path))
    assert again.fingerprint == first.fingerprint not in (with_end.fingerprint, other.fingerprint)
    assert encode_corpus(MADE["bytes"], path, end="<|endoftext|>").fingerprint == with_end.fingerprint
    assert again.vocabulary.tokens == first.vocabulary.tokens and len(again) == len(TEXT)


def test_invalid_utf8_is_reported_each_time(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9 and \xff\n")
    for _ in range(2):  # the second time from the cache
        with warns_code("invalid_utf8") as warned:
            encode_corpus(MADE["wordpiece"], tmp_path / "a.txt")
        assert str(warned[0]).startswith("2 ")


TRICKY = "ab 's  \n\r\t.é\u3000\u2003中\x1c\x85\u0301<|endoftext|>"


@given(st.text(alphabet=TRICKY, max_size=80), st.sampled_from(sorted(MADE)), st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_encoding_in_parts_gives_the_same_ids(text: str, kind: str, part: int) -> None:
    tokenizer = MADE[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subword_tokens, "PART", part)
        parts = [each for each, _ in subword_tokens.split_document(text)]
        assert "".join(parts) == text and subword_tokens.can_encode_parts(tokenizer)
    all_ids = [id for ids in tokenizer.ids_batch(parts, special=False) for id in ids]
    assert all_ids == tokenizer.encode(text, special=False).ids


def test_long_documents_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subword_tokens, "PART", 50)
    monkeypatch.setattr(subword_tokens, "BATCH", 200)
    text = " ".join(TEXT)
    sizes = [len(part) for parts, _, _ in subword_tokens.batches(MADE["bytes"], Corpus([text])) for part in parts]
    assert sum(sizes) == len(text) and max(sizes) < 80
    tokens = encode_corpus(MADE["bytes"], [text, TEXT[0]])
    assert len(tokens) == 2 and tokens.ids[: tokens.starts[1]].tolist() == MADE["bytes"].encode(text).ids


def test_external_tokenizers_encode_whole_documents() -> None:
    from tokenizers import pre_tokenizers

    theirs = BPE(size=300).train(TEXT)
    theirs.engine.pre_tokenizer = pre_tokenizers.Metaspace()
    assert not subword_tokens.can_encode_parts(firth.SubwordTokenizer.from_json(theirs.to_json()))
    spaced = BPE(size=300, special_tokens=("end of text",)).train(TEXT)
    assert not subword_tokens.can_encode_parts(spaced)


def test_empty_corpora_are_refused() -> None:
    with refuses("empty_data"):
        encode_corpus(MADE["bytes"], ["", ""])
