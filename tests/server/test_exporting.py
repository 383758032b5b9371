"""A selection as csv: every row with all that is known of it, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from serving import serving

import firth
from firth.server.workbench.exporting import escaped

ROWS = 5000
TEXTS = [
    "=cmd|' /C calc'!A0",
    "+1 (555) 010",
    "-5",
    "@sum",
    "\tx",
    'say "hi", then go',
    "two\nlines",
    "plain",
    "-5 degrees",
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory, places):
    folder = tmp_path_factory.mktemp("many") / "many"
    random = np.random.default_rng(1)
    with firth.Index.create(folder, dim=3) as index:
        about = {
            "text": [TEXTS[row % len(TEXTS)] for row in range(ROWS)],
            "year": [None if row == 1 else 1990 - row for row in range(ROWS)],
            "group": [f"g{row % 3}" for row in range(ROWS)],
        }
        index.add([f"k{row}" for row in range(ROWS)], random.normal(size=(ROWS, 3)).astype(np.float32), about)
    with serving(models={"words": places["words"]}, indexes={"many": folder}) as client:
        client.headers["X-Firth-Token"] = client.settings.token
        yield client


def exported(client, **body):
    answer = client.post("/api/map/export", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return answer, list(csv.DictReader(io.StringIO(answer.text, newline="")))


def test_every_selected_row_is_exported_with_all_its_columns(bench):
    picked = list(range(ROWS - 1, -1, -1))[: ROWS - 500]  # more than the page lists, in an order of its own
    answer, rows = exported(bench, of="index/many", rows=picked, k=4)
    assert list(rows[0]) == ["key", "text", "year", "group", "map_group", "x", "y"]
    assert [row["key"] for row in rows] == [f"k{row}" for row in picked] and len(rows) == 4500
    xy = np.frombuffer(bench.get("/api/map/points", params={"of": "index/many"}).content, np.float32).reshape(-1, 2)
    np.testing.assert_allclose([(float(row["x"]), float(row["y"])) for row in rows], xy[picked], atol=1e-5)
    colour = bench.get("/api/map/colour", params={"of": "index/many", "k": 4}).json()
    assert {row["map_group"] for row in rows} <= set(colour["labels"]) and len(colour["labels"]) == 4
    last = rows[-1]
    assert (last["key"], last["year"], last["group"]) == ("k500", "1490", "g2")
    assert answer.headers["x-firth-rows"] == "4500"


def test_cells_that_look_like_formulas_are_escaped_and_counted(bench):
    answer, rows = exported(bench, of="index/many", rows=list(range(9)), k=2)
    assert [row["text"] for row in rows] == [escaped(text) for text in TEXTS]
    assert [row["text"][0] for row in rows] == ["'", "'", "-", "'", "'", "s", "t", "p", "'"]
    assert [row["year"] for row in rows][:3] == ["1990", "", "1988"]
    group = sum(row["map_group"].startswith("'") for row in rows)
    assert int(answer.headers["x-firth-escaped"]) == 5 + group
    assert exported(bench, of="index/many", rows=[7], k=2)[1][0]["text"] == "plain"


def test_words_are_exported_with_their_counts(bench):
    about = bench.get("/api/map/about", params={"of": "model/words/words"}).json()
    _, rows = exported(bench, of="model/words/words", rows=[0, 3], k=3)
    assert list(rows[0]) == ["key", "count", "group", "x", "y"]
    assert [row["key"] for row in rows] == [about["keys"][0], about["keys"][3]] and int(rows[0]["count"]) > 0


def test_rows_that_do_not_exist_are_refused(bench):
    for rows in ([ROWS], [-1], []):
        assert bench.post("/api/map/export", json={"of": "index/many", "rows": rows}).status_code in (400, 404, 422)


@pytest.mark.parametrize("text", ["=1", "+a", "-a", "@a", "\ta", "\ra", "\na", "-1-2", "-", "＝1", "＋a"])
def test_formulas_are_escaped(text):
    assert escaped(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "a=1", "-1", "+1.5", "-1e-5", "-.5", "'=1", " =1", "1,5", "−1"])
def test_numbers_and_other_texts_are_not_changed(text):
    assert escaped(text) == text
