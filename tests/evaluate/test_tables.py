"""Neighbor tables: the hits of Vectors.neighbors, printed as text, Markdown, HTML and JSON."""

import json

import numpy as np
import pytest
from refusing import refuses

from firth import Vectors
from firth.evaluate import neighbor_table
from firth.evaluate.layout import markdown_table, text_table, width


@pytest.fixture
def vectors():
    return Vectors([f"word{i}" for i in range(30)], np.random.default_rng(0).normal(size=(30, 5)))


def test_hits_are_the_neighbors(vectors):
    table = neighbor_table(vectors, ["word3", "word7"], 4)
    assert table.words == ("word3", "word7")
    for entry in table.entries:
        assert entry.hits == vectors.neighbors(entry.word, 4)
    document = json.loads(json.dumps(table.to_json()))
    assert [hit["key"] for hit in document["word3"]] == [hit.key for hit in vectors.neighbors("word3", 4)]


def test_text_is_aligned_in_columns(vectors):
    first, *rows = str(neighbor_table(vectors, ["word3", "word17"], 3)).splitlines()
    assert first.split() == ["word3", "word17"]
    assert len(rows) == 3
    assert {row.index("word", 5) for row in rows} == {first.index("word17")}


def test_fewer_than_k_leave_no_empty_lines(vectors):
    few = Vectors(vectors.keys[:4], vectors.matrix[:4])
    assert len(str(neighbor_table(few, ["word0", "word1"], 10)).splitlines()) == 1 + 3


def test_many_words_continue_in_a_new_block(vectors):
    text = str(neighbor_table(vectors, list(vectors.keys), 2))
    assert text.count("\n\n") >= 3
    assert max(map(len, text.splitlines())) <= 100


def test_models_side_by_side(vectors):
    other = Vectors(["word3", "x", "y"], np.eye(3))
    table = neighbor_table({"one": vectors, "two": other}, ["word3", "word4"], 5)
    assert table.models == ("one", "two")
    assert table.to_json()["word4"]["two"] is None
    assert "no vector" in str(table)
    assert table.to_markdown().splitlines()[0] == "| word3 | one | two |"
    assert table._repr_html_().count("<table>") == 2
    with refuses("unknown_key", key="nowhere"):
        neighbor_table({"one": vectors, "two": other}, ["word3", "nowhere"], 5)


def test_invalid_arguments_are_refused(vectors):
    with refuses("unknown_key", key="nowhere"):
        neighbor_table(vectors, ["nowhere"])
    with refuses("too_few"):
        neighbor_table(vectors, [])
    with refuses("invalid_value", option="k", got=0):
        neighbor_table(vectors, ["word1"], 0)


def test_special_characters_do_not_break_the_layout():
    table = neighbor_table(Vectors(["a|b", "<i>", "日本"], np.eye(3)), ["a|b"], 2)
    assert "&lt;i&gt;" in table._repr_html_()
    assert "a\\|b" in table.to_markdown()
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert text_table(["日本", "n"], [["a", "10"]], numbers=[1]) == "日本   n\na     10"
    assert markdown_table(["a", "n"], [["b", "1"]], numbers=[1]) == "| a | n |\n| --- | ---: |\n| b | 1 |"
