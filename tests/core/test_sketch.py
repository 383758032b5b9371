"""The sketch of rows: exact while they are few, an estimate when they are many; joined; small."""

from __future__ import annotations

import json

import pytest
from near import near

import firth
from firth.core.sketch import SIZE, RowSketch


def numbered(first, last):
    return [f"row number {place}" for place in range(first, last)]


def test_few_rows_are_compared_exactly():
    known = RowSketch.of(numbered(0, 1000))
    assert known.share_of(RowSketch.of(numbered(900, 1100))) == (0.5, 200)
    assert known.share_of(RowSketch.of(numbered(5000, 5100))) == (0.0, 100)
    assert known.share_of(RowSketch.of([])) == (0.0, 0)
    assert known.count == 1000


@pytest.mark.parametrize(("first", "last", "truth"), [(0, 5_000, 1.0), (35_000, 45_000, 0.5), (60_000, 65_000, 0.0)])
def test_many_rows_are_estimated(first, last, truth):
    known = RowSketch.of(numbered(0, 40_000))
    share, looked_up = known.share_of(RowSketch.of(numbered(first, last), size=1 << 16))
    assert share == pytest.approx(truth, abs=0.06) and 0.08 < looked_up / (last - first) < 0.13  # 4,096 of 40,000
    small = RowSketch.of(numbered(0, 1000)).share_of(RowSketch.of(numbered(0, 40_000)))
    assert small[0] == pytest.approx(1 / 40, abs=0.01) and small[1] == SIZE


def test_case_white_space_and_labels_make_no_difference():
    known = RowSketch.of(["The king he sleeps"])
    for same in (" the  KING he sleeps\n", "__label__sci.med the king he sleeps", "the king\the sleeps __label__x"):
        assert known.share_of(RowSketch.of([same])) == (1.0, 1)
    for other in ("the king sleeps", "the king he sleeps label", ""):
        assert known.share_of(RowSketch.of([other]))[0] == 0.0


def test_pairs_are_rows_whatever_their_order_and_their_texts_are_too():
    known = RowSketch.of([("a king", "a queen"), ("a river", "the sea")])
    assert known.share_of(RowSketch.of_pairs([("a queen", "a king"), ("a king", "the sea")])) == (0.5, 2)
    assert known.share_of(RowSketch.of(["the sea", "a queen", "a tree"])) == (near(2 / 3), 3)


def test_saved_and_joined():
    first, second = RowSketch.of(numbered(0, 30_000)), RowSketch.of(numbered(30_000, 60_000))
    both = first.joined(second)
    assert len(both.hashes) == SIZE and both.count == 60_000
    assert both.hashes == RowSketch.of(numbered(0, 60_000)).hashes
    text = json.dumps(both.to_json())
    again = RowSketch.from_json(json.loads(text))
    assert (again.hashes, again.limit, again.count) == (both.hashes, both.limit, both.count) and len(text) < 50_000
    with pytest.raises(firth.FirthError) as refused:
        RowSketch.from_json({"count": 3, "hashes": "not base64!"})
    assert refused.value.code == "damaged_model"
