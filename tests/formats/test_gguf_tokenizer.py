"""Tokenizers in GGUF files against transformers' tokenizers and sentencepiece's rule."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from formats.gguf_files import write_gguf
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth.data.subword_tokenizer import SubwordTokenizer
from firth.formats.gguf import read_gguf
from firth.formats.gguf_tokenizer import SPACE, tokenizer_document

END = "<|endoftext|>"
TEXTS = [
    "It's the king's 12345 apples, don't WE'VE?  naïve  川 川川\n\n\n  and\tmore \r\n",
    "the cat sat on the mat. the cat's mat was 1024 years old!! \u00e9 e\u0301 é",
    f"one{END}two",
    "",
]


def trained() -> tuple[dict[str, int], list[tuple[str, str]]]:
    engine = tokenizers.Tokenizer(tokenizers.models.BPE())
    engine.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=380, special_tokens=[END], initial_alphabet=alphabet)
    engine.train_from_iterator([*TEXTS[:2], "1234 1024 123 12"] * 3, trainer)
    model = json.loads(engine.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def open_tokenizer(path: Path, metadata: dict[str, Any]) -> SubwordTokenizer:
    write_gguf(path, metadata, {})
    return SubwordTokenizer.from_json(json.dumps(tokenizer_document(read_gguf(path))))


def byte_level(pre: str, **more: Any) -> dict[str, Any]:
    vocab, merges = trained()
    tokens = sorted(vocab, key=vocab.__getitem__)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token == END else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
        "tokenizer.ggml.eos_token_id": vocab[END],
        "tokenizer.ggml.bos_token_id": vocab[END],
    } | {f"tokenizer.ggml.{key}": value for key, value in more.items()}


@pytest.mark.parametrize(("pre", "name"), [("gpt-2", "GPT2Tokenizer"), ("qwen2", "Qwen2Tokenizer")])
def test_byte_level_bpe_is_that_of_transformers(tmp_path: Path, pre: str, name: str) -> None:
    vocab, merges = trained()
    theirs = getattr(transformers, name)(vocab=vocab, merges=merges)
    ours = open_tokenizer(tmp_path / "t.gguf", byte_level(pre))
    for text in TEXTS:
        assert ours.encode(text).ids == theirs(text, add_special_tokens=False).input_ids
        assert ours.decode(ours.encode(text).ids, special=True) == theirs.decode(theirs(text).input_ids)


@pytest.mark.parametrize(
    ("pre", "words"),
    [("llama-bpe", ["123", "45"]), ("qwen2", [*"12345"]), ("smollm", [*"12345"]), ("gpt-2", ["12345"])],
)
def test_digits_by_pre_tokenizer(tmp_path: Path, pre: str, words: list[str]) -> None:
    engine = open_tokenizer(tmp_path / "t.gguf", byte_level(pre)).engine
    assert [word for word, _ in engine.pre_tokenizer.pre_tokenize_str("12345")] == words


def test_first_and_last_tokens(tmp_path: Path) -> None:
    def ids(pre: str, **more: Any) -> list[int]:
        encoded: list[int] = open_tokenizer(tmp_path / "t.gguf", byte_level(pre, **more)).engine.encode("cat").ids
        return encoded

    end = trained()[0][END]
    plain = ids("gpt-2")
    assert ids("gpt-2", add_bos_token=True) == [end, *plain]
    assert ids("gpt-2", add_bos_token=True, add_eos_token=True) == [end, *plain, end]
    assert ids("llama-bpe")[0] == end and ids("llama-bpe", add_bos_token=False)[0] != end


# ---- sentencepiece ----

PIECES = [SPACE, "a", "b", "c", "t", "at", "ca", "cat", SPACE + "c", SPACE + "cat", "ab", "bc", "abc", "tt", SPACE * 2]
SCORES = [-20, -21, -22, -23, -24, -1, -2, -7, -5, -3, -4, -4.5, -9, -8, -10]


def sentencepiece(prefix: bool) -> dict[str, Any]:
    special, bytes_ = ["<unk>", "<s>", "</s>"], [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = [*special, *bytes_, *PIECES, "<user>"]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * 259 + [float(score) for score in SCORES] + [0.0],
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(PIECES), 4],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": prefix,
    }


def merged(text: str, prefix: bool) -> list[str]:
    """Sentencepiece's rule: merge the pair that forms the piece with the highest score, the leftmost first."""
    scores = dict(zip(PIECES, SCORES, strict=True))
    parts = list((" " + text if prefix and text else text).replace(" ", SPACE))
    while True:
        pairs = [(-scores[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not pairs:
            break
        at = min(pairs)[1]
        parts[at : at + 2] = ["".join(parts[at : at + 2])]
    return [token for part in parts for token in ([part] if part in scores else as_bytes(part))]


def as_bytes(part: str) -> list[str]:
    return [f"<0x{byte:02X}>" for byte in part.encode()]


@pytest.mark.parametrize("prefix", [True, False])
@settings(max_examples=200, deadline=None)
@given(text=st.text("abct é", max_size=12))
def test_pieces_are_merged_by_score(tmp_path_factory: pytest.TempPathFactory, prefix: bool, text: str) -> None:
    tokenizer = opened(tmp_path_factory, prefix)
    assert tokenizer.encode(text).tokens == merged(text, prefix)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


OPENED: dict[bool, SubwordTokenizer] = {}


def opened(folders: pytest.TempPathFactory, prefix: bool) -> SubwordTokenizer:
    if prefix not in OPENED:
        OPENED[prefix] = open_tokenizer(folders.mktemp("spm") / "t.gguf", sentencepiece(prefix))
    return OPENED[prefix]


def test_special_and_user_defined_tokens(tmp_path: Path) -> None:
    tokenizer = open_tokenizer(tmp_path / "t.gguf", sentencepiece(False))
    assert set(tokenizer.special_tokens) == {"<unk>", "<s>", "</s>"}
    assert tokenizer.encode("cat<user>cat</s>").tokens == ["cat", "<user>", "cat", "</s>"]
    assert tokenizer.decode(tokenizer.encode("cat<user></s>").ids) == "cat<user>"


# ---- refusals ----


def test_unknown_kinds_are_refused_by_name(tmp_path: Path) -> None:
    with refuses("unsupported_format", got="t5", available="gpt2, llama"):
        open_tokenizer(tmp_path / "t.gguf", byte_level("gpt-2") | {"tokenizer.ggml.model": "t5"})
    with refuses("unsupported_format", name="tokenizer.ggml.pre", got="brand-new"):
        open_tokenizer(tmp_path / "t.gguf", byte_level("brand-new"))


def test_damaged_tokenizers(tmp_path: Path) -> None:
    for change in (
        {"tokenizer.ggml.tokens": ["a", "a"]},
        {"tokenizer.ggml.token_type": [1, 2]},
        {"tokenizer.ggml.merges": ["no such"]},
        {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 10**6},
    ):
        with refuses("invalid_tokenizer"):
            open_tokenizer(tmp_path / "t.gguf", byte_level("gpt-2") | change)
    for more in ({"tokenizer.ggml.scores": [0.5]}, {"tokenizer.ggml.tokens": ["a" * 300]}):
        settings: dict[str, Any] = sentencepiece(True) | dict(more)
        settings["tokenizer.ggml.token_type"] = [1] * len(settings["tokenizer.ggml.tokens"])
        if "tokenizer.ggml.tokens" in change:
            settings["tokenizer.ggml.scores"] = [0.5]
        with refuses("invalid_tokenizer"):
            open_tokenizer(tmp_path / "t.gguf", settings)
    for missing in ("tokens", "model", "merges", "pre"):
        settings = byte_level("gpt-2")
        del settings[f"tokenizer.ggml.{missing}"]
        with refuses("incomplete_model", name=f"tokenizer.ggml.{missing}"):
            open_tokenizer(tmp_path / "t.gguf", settings)
