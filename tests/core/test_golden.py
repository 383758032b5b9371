"""Models saved by earlier versions must open for ever, with the answers they gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firth
from firth.core import registry, renamed
from firth.index import verify_index

GOLDEN = Path(__file__).parents[1] / "golden"
METHODS = GOLDEN / "methods-1"

KEYS = ["the", "and", "is", "of"]
ROW = [
    -0.00208744477,
    0.000846354524,
    0.0329671018,
    0.0676770136,
    -0.0605073981,
    -0.0457283556,
    0.0474979505,
    0.05591489,
]
NEIGHBORS = ["his", "she", "by"]
COUNT = 569
LOSS = 3.72245812


def test_format_1_index():
    """int8, with texts, an attribute and deleted rows, in two segments."""
    folder = GOLDEN / "format-1-index"
    names = {path.name for path in folder.iterdir()} - {"index.json"}
    assert set(verify_index(folder)) == names and len(names) == 7
    index = firth.Index.open(folder)
    assert (len(index), index.store.state.rows, index.space) == (5, 7, (3, "cosine", "int8"))
    hits = index.search([1, 2, 3], 2)
    assert [(hit.key, round(hit.score, 4), hit.attributes["year"]) for hit in hits] == [
        ("c", 0.9974, 2003),
        ("f", 0.9449, 2006),
    ]
    assert [hit.key for hit in index.search("river", mode="words", where="year > 2002")] == ["g", "c"]


def test_format_1_skipgram():
    folder = GOLDEN / "format-1-skipgram"
    assert set(firth.verify(folder)) == {"training.json", "vectors.safetensors", "vocabulary.json"}
    model = firth.load(folder, firth.SkipGram)
    assert model.method == firth.SkipGram(dim=8, epochs=3, min_count=2, phrases=1, max_vocabulary=60)
    assert list(model.vectors.keys[:4]) == KEYS
    np.testing.assert_allclose(model.vectors.matrix[0], ROW, rtol=1e-6)
    assert [hit.key for hit in model.vectors.neighbors(KEYS[3], 3)] == NEIGHBORS
    assert model.vocabulary.counts[0] == COUNT
    assert model.training["epochs"][-1]["loss"] == pytest.approx(LOSS)
    assert model.tables["contexts"].matrix.shape == (60, 8)


def close(found: object, expected: object) -> bool:
    """Equal, numbers up to rounding: kernels of other instruction sets add in another order."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(close(found[k], expected[k]) for k in found)
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    return found == (pytest.approx(expected, rel=1e-3, abs=1e-5) if isinstance(expected, float) else expected)


def test_every_method_has_a_golden_folder():
    names = {path.name for path in METHODS.iterdir() if path.is_dir()}
    assert {renamed.METHODS.get(name, name) for name in names} == set(registry.method_classes())


@pytest.mark.parametrize("name", sorted(path.name for path in METHODS.iterdir() if path.is_dir()))
def test_a_model_of_every_method_opens_and_answers_as_it_did(name):
    from golden.make import answers

    folder = METHODS / name
    assert "config.json" not in firth.verify(folder)
    expected = json.loads((METHODS / f"{name}.json").read_text(encoding="utf-8"))
    found = answers(firth.load(folder))
    assert expected and close({name: found[name] for name in expected}, expected)  # a model may answer more by now
