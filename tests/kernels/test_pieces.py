"""Pre-tokenization for subwords: the native kernel against plain Python and the package `tokenizers`."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers, pre_tokenizers

from firth.data.corpus import Corpus
from firth.data.shared_options import UNITS
from firth.kernels import pieces as twin
from firth.kernels import text as kernel

# Characters for every rule: contractions, whitespace, control characters, marks, Chinese, Hangul, folding to ASCII.
TRICKY = (
    "aZs'tremvld09_ '’.,-\n\r\t\0\x0b\x0c\x1c\x7f\x85\xa0é\u0301\u0308İΣςßǅȺ²½Ⅷ٣\u2003\u3000中文豈かタไ\u200d\ufe0f❤"
)
TRICKY += "👍🏽𝔘한국≠≮\u037eǰ\ufffd"
texts = st.one_of(
    st.text(alphabet=TRICKY, max_size=60), st.text(alphabet="a 's\n\t1!é", max_size=40), st.text(max_size=40)
)
gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
bert = pre_tokenizers.BertPreTokenizer()
normal = {fold: normalizers.BertNormalizer(lowercase=fold) for fold in (True, False)}


def expected_pieces(text: str, split: str, fold: bool) -> list[str]:
    """Return the pieces of the package `tokenizers`."""
    pieces = gpt2.pre_tokenize_str(text) if split == "gpt2" else bert.pre_tokenize_str(normal[fold].normalize_str(text))
    return [piece for piece, _ in pieces]


@given(texts, st.sampled_from([("gpt2", False), ("bert", True), ("bert", False)]))
@settings(max_examples=300, deadline=None)
def test_pieces_equal_tokenizers(text: str, rule: tuple[str, bool]) -> None:
    assert kernel.tokenize(text, *rule) == expected_pieces(text, *rule)


@pytest.mark.parametrize("rule", [("gpt2", False), ("bert", True), ("bert", False)])
def test_all_code_points(rule: tuple[str, bool]) -> None:
    codes = [*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200), *range(0x32400, 0x110000, 997)]
    characters = [chr(code) for code in codes]  # unassigned planes are sampled
    wrong = 0
    for begin in range(0, len(characters), 500):
        text = " a".join(characters[begin : begin + 500])
        wrong += kernel.tokenize(text, *rule) != expected_pieces(text, *rule)
    # Later releases follow later Unicode versions, which add few blocks.
    assert wrong == 0 if tokenizers.__version__.startswith("0.23.") else wrong < 100


# Below U+0600 all Unicode versions in question agree.
@given(st.one_of(st.text(alphabet=TRICKY), st.text(st.characters(max_codepoint=0x5FF))), st.booleans())
@settings(max_examples=300, deadline=None)
def test_native_equals_twin(text: str, fold: bool) -> None:
    assert kernel.tokenize(text, "gpt2", False) == twin.gpt2_twin(text)
    assert kernel.tokenize(text, "bert", fold) == twin.bert_twin(text, fold)
    assert "".join(map(twin.letters_to_text, twin.gpt2_twin(text))) == text


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("We've  said it's 3 o'clock!!\n\n Yes", "We 've Ġ Ġsaid Ġit 's Ġ3 Ġo ' clock !! ĊĊ ĠYes"),
        ("  x ", "Ġ Ġx Ġ"),
        ("a\n\nb", "a Ċ Ċ b"),
        ("''s 'S", "'' s Ġ' S"),
    ],
)
def test_gpt2_rules(text: str, pieces: str) -> None:
    assert kernel.tokenize(text, "gpt2", False) == pieces.split(" ")


def test_bert_rules() -> None:
    assert kernel.tokenize("Déjà-vu: 中文\x00字 ≠ İ", "bert", True) == [
        "deja",
        "-",
        "vu",
        ":",
        "中",
        "文",
        "字",
        "=",
        "i",
    ]
    assert kernel.tokenize("Déjà-vu: ≠ İ", "bert", False) == ["Déjà", "-", "vu", ":", "≠", "İ"]


@given(
    st.lists(st.text(alphabet=TRICKY + "   \n\n", max_size=30), min_size=1, max_size=8),
    st.sampled_from(UNITS),
    st.sampled_from([("gpt2", False), ("bert", True)]),
    st.sampled_from([1, 3]),
    st.integers(16, 80),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_counts_are_independent_of_blocks_and_threads(
    lines: list[str], unit: str, rule: tuple[str, bool], slots: int, size: int, large: bool
) -> None:
    """The counts are those of each document's pieces, for any blocks, threads and document unit."""
    text = "\n".join(lines).replace("\0", "")
    text *= 80_000 // (len(text.encode()) + 1) if large else 1  # enough for every thread to get a part
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        Path(file.name).write_bytes(text.encode() + b"\xff x")  # one invalid UTF-8 sequence
        corpus = Corpus(file.name, unit=unit)
        expected = Counter(piece for document in corpus for piece in expected_pieces(document.text, *rule))
        encoder = kernel.TextEncoder(*rule, slots, unit)
        for block in corpus.blocks(size * (1000 if large else 1), rule[0]):
            encoder.encode(kernel.as_bytes(bytes(block.data)), block.ends)
    assert encoder.statistics()[0] == 1
    merged = kernel.merge(encoder, 1, None)
    assert dict(zip(merged.words, merged.counts.tolist(), strict=True)) == expected
