"""Translation pairs from every kind of source, and errors."""

from __future__ import annotations

import gzip
import json

import pandas
import pyarrow
import pyarrow.parquet
import pytest
from refusing import refuses

from firth.data.translation_pairs import Pair, TranslationPairs

PAIRS = [Pair("ein hund", "a dog"), Pair('eine "katze"', 'a "cat"'), Pair("", "nothing")]


def write(folder, form):
    columns = {"de": [pair.source for pair in PAIRS], "en": [pair.target for pair in PAIRS]}
    path = folder / f"pairs{form}"
    if form in (".csv", ".tsv"):
        pandas.DataFrame(columns).to_csv(path, index=False, sep="," if form == ".csv" else "\t")
    elif form == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    else:
        lines = "".join(json.dumps({"de": pair.source, "en": pair.target, "more": 1}) + "\n" for pair in PAIRS)
        path.write_bytes(gzip.compress(lines.encode()))
    return path


@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl.gz", ".parquet"])
def test_tables(tmp_path, form):
    pairs = TranslationPairs(write(tmp_path, form), source="de", target="en")
    assert list(pairs) == PAIRS and list(pairs) == PAIRS
    back = TranslationPairs(tmp_path / f"pairs{form}", source="en", target="de")
    assert [pair.source for pair in back] == [pair.target for pair in PAIRS]
    assert pairs.fingerprint() and pairs.fingerprint() != back.fingerprint()


def test_parallel_files(tmp_path):
    for name, side in (("a.de", 0), ("a.en", 1)):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS))
    pairs = TranslationPairs(tmp_path / "a.de", tmp_path / "a.en")
    assert list(pairs) == PAIRS
    assert pairs.fingerprint() not in (None, TranslationPairs(tmp_path / "a.en", tmp_path / "a.de").fingerprint())
    evaluated = TranslationPairs(tmp_path / "a.de", tmp_path / "a.en", dev=pairs)
    assert evaluated.fingerprint() != pairs.fingerprint()
    for dev in (pairs, [tmp_path / "a.de", tmp_path / "a.en"], PAIRS):
        held_out = TranslationPairs(PAIRS, dev=dev).dev
    assert held_out is not None and list(held_out) == PAIRS


def test_iterables_and_data_frames():
    assert list(TranslationPairs(PAIRS)) == PAIRS and list(TranslationPairs([list(pair) for pair in PAIRS])) == PAIRS
    drawn = TranslationPairs(pair for pair in PAIRS)
    assert list(drawn) == PAIRS and list(drawn) == PAIRS
    frame = pandas.DataFrame(PAIRS)
    assert list(TranslationPairs(frame)) == PAIRS
    assert TranslationPairs(PAIRS).fingerprint() is None


@pytest.mark.parametrize("longer", [0, 1])
def test_parallel_files_of_different_lengths_are_refused(tmp_path, longer):
    names = [tmp_path / "a.de", tmp_path / "a.en"]
    for side, name in enumerate(names):
        name.write_text("x\n" * (3 if side == longer else 2))
    with refuses("wrong_input", longer=names[longer], shorter=names[1 - longer], lines=2):
        list(TranslationPairs(*names))


def test_invalid_sources_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    with refuses("wrong_input", path=tmp_path / "a.txt"):
        TranslationPairs(tmp_path / "a.txt")
    with refuses("unknown_column", name="source", available="de, en"):
        list(TranslationPairs(write(tmp_path, ".csv")))
    with refuses("invalid_type", got=3):
        TranslationPairs("a", "b", "c")
    with refuses("invalid_type", got=0):
        TranslationPairs()
    with refuses("malformed_data", number=2, got="ab"):
        list(TranslationPairs([("a", "b"), "ab"]))
    with refuses("invalid_type", got="int"):
        TranslationPairs(3)
