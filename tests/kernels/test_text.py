"""Native tokenizing, counting and encoding against plain Python."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firth.kernels import _native
from firth.kernels import text as kernel

SPLITS = ("words", "whitespace", "characters")
# Characters for every rule: marks, apostrophes, points, case that changes length, spaces, astral planes, emoji.
TRICKY = (
    "aZ09_ '’.,-\n\r\t\0\x1c\x85\xa0é\u0301\u0308İΣςßǅȺK²½Ⅷ٣\u2003\u3000中文かタไทยພາສາ\u200d\ufe0f❤👍🏽𝔘𐐀\U00010428�"
)
CLASSES, LOWER = _native.unicode_tables()
KINDS = ("", "letter", "digit", "mark", "underscore", "")


def without_version_differences(text: str) -> str:
    """Return the text without code points that differ between the two Unicode versions."""
    return "".join(c for c in text if unicodedata.category(c) == "Cs" or table_agrees(ord(c)))


def table_agrees(code: int) -> bool:
    return KINDS[CLASSES[code] & 7] == kernel._character_class(chr(code)) and LOWER[code] == ord(chr(code).lower()[0])


texts = st.one_of(
    st.text(alphabet=TRICKY, max_size=200),
    st.text(max_size=100).map(without_version_differences),
    st.text(alphabet="ab'.1 ", max_size=300),
)


def joined(pieces: list[bytes]) -> bytes:
    return b"".join(pieces)


# Valid text with stray bytes and truncated sequences.
broken_utf8 = st.lists(
    st.one_of(texts.map(lambda t: t.encode("utf-8", "surrogatepass")), st.binary(max_size=4), st.sampled_from(
        [b"\xc3", b"\xe2\x80", b"\xf0\x9f\x91", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xff"])),
    max_size=12,
).map(joined)  # fmt: skip


def test_tables_follow_unicodedata() -> None:
    differing = [code for code in range(sys.maxunicode + 1) if not table_agrees(code)]
    if unicodedata.unidata_version == kernel.unicode_version():
        assert differing == []
    else:  # a newer Unicode assigns code points but rarely changes assigned ones
        assert sum(unicodedata.category(chr(code)) != "Cn" and CLASSES[code] for code in differing) < 50


def test_whitespace_class_equals_str_split() -> None:
    spaces = {code for code in range(sys.maxunicode + 1) if chr(code).isspace()}
    assert {int(code) for code in np.flatnonzero((CLASSES & 7) == 5)} == spaces | {0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop; rock 'n' roll.", ["don't", "stop", "rock", "n", "roll"]),
        ("l’été dernier", ["l’été", "dernier"]),
        ("pi is 3.14, or 1,000.5!", ["pi", "is", "3.14", "or", "1,000.5"]),
        ("v1.2.x a.b 3.", ["v1.2", "x", "a", "b", "3"]),
        ("snake_case __init__", ["snake_case", "__init__"]),
        ("cafe\u0301s ❤\ufe0f ok", ["cafe\u0301s", "ok"]),
        ("İstanbul ΣΊΣΥΦΟΣ Straße", ["istanbul", "σίσυφοσ", "straße"]),
        ("Привет, мир! नमस्ते", ["привет", "мир", "नमस्ते"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert kernel.tokenize(text, "words", True) == words
    assert kernel.tokenize_twin(text, "words", True) == words


def test_characters() -> None:
    assert kernel.tokenize("中文, e\u0301A1!", "characters", True) == ["中", "文", "e\u0301", "a", "1"]


@given(texts, st.sampled_from(SPLITS), st.booleans())
@settings(max_examples=400, deadline=None)
def test_native_equals_twin(text: str, split: str, lowercase: bool) -> None:
    text = without_version_differences(text)
    assert kernel.tokenize(text, split, lowercase) == kernel.tokenize_twin(text, split, lowercase)


@given(texts)
def test_whitespace_equals_str_split(text: str) -> None:
    valid = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert kernel.tokenize(text, "whitespace", False) == valid.replace("\0", " ").split()


Encoded = tuple[kernel.Merged, list[int], tuple[int, int]]


def encode(data: bytes, ends: list[int], split: str, threads: int, block: int) -> Encoded:
    """Encode in blocks of about `block` bytes; return vocabulary, final ids with document ends, and statistics."""
    encoder = kernel.TextEncoder(split, True, threads)
    pieces: list[tuple[int, np.ndarray]] = []
    start = 0
    while start < len(data):
        stop = min(start + block, len(data))
        cut = kernel.safe_cut(kernel.as_bytes(data[start:stop]), split) if stop < len(data) else stop - start
        if cut == 0:
            block *= 2
            continue
        inside = [end - start for end in ends if start < end <= start + cut]
        encoder.encode(kernel.as_bytes(data[start : start + cut]), np.array(inside, dtype=np.int64))
        pieces += [(slot, ids.copy()) for slot, ids in encoder.stretches()]
        start += cut
    merged = kernel.merge(encoder, 1, None)
    parts = [np.append(merged.maps[slot], np.int32(-1))[ids] for slot, ids in pieces]
    return merged, np.concatenate(parts).tolist(), encoder.statistics()


def test_tables_of_several_encoders_are_merged() -> None:
    """Words with their counts, as other processes counted them, give the vocabulary of the whole text."""
    texts = [b"b a a long-word-of-more-than-sixteen-bytes c ", b"c c d long-word-of-more-than-sixteen-bytes a "]
    whole, total = (kernel.TextEncoder("whitespace", False, slots) for slots in (1, 2))
    for slot, text in enumerate(texts):
        part = kernel.TextEncoder("whitespace", False, 1)
        for encoder in (part, whole):
            encoder.encode(kernel.as_bytes(text), np.array([len(text)], dtype=np.int64))
        words, counts = part.words(0)
        [(_, ids)] = part.stretches()
        assert [words.split(b"\0")[id] for id in ids[:-1]] == text.split() and counts.sum() == len(ids) - 1
        assert total.add(slot, words, counts).tolist() == list(range(len(counts)))
    with pytest.raises(ValueError, match="one count per word"):
        kernel.TextEncoder("whitespace", False, 1).add(0, b"a\0b\0", np.ones(3, dtype=np.int64))
    one, two = kernel.merge(whole, 1, None), kernel.merge(total, 1, None)
    assert (two.words, two.counts.tolist(), two.tokens) == (one.words, one.counts.tolist(), one.tokens)


@given(
    st.lists(broken_utf8, min_size=1, max_size=6), st.sampled_from(SPLITS), st.sampled_from([1, 2, 4]),
    st.integers(1, 200), st.booleans(),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_counts_and_ids_are_independent_of_threads_and_blocks(
    documents: list[bytes], split: str, threads: int, block: int, large: bool
) -> None:
    decoded = [document.decode("utf-8", "replace") for document in documents]
    if any(without_version_differences(text) != text for text in decoded):
        return
    repeats = 65536 // (len(b"".join(documents)) + 6) if large else 1  # enough for every thread to get a part
    data = b"".join((document + b" ") * repeats + b"\n" for document in documents)
    ends = np.cumsum([(len(document) + 1) * repeats + 1 for document in documents]).tolist()
    tokens = [kernel.tokenize_twin(text, split, True) * repeats for text in decoded]
    counts = Counter(token for document in tokens for token in document)
    order = sorted(counts, key=lambda token: (-counts[token], token.encode()))
    merged, stream, (invalid, _) = encode(data, ends, split, threads, block * repeats)
    assert merged.words == order
    assert merged.counts.tolist() == [counts[token] for token in order]
    ids = {token: id for id, token in enumerate(order)}
    assert stream == [id for document in tokens for id in [*(ids[token] for token in document), -1]]
    replaced = sum(text.count("�") for text in decoded) - sum(document.count("�".encode()) for document in documents)
    assert invalid == replaced * repeats
