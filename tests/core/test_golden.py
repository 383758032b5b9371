"""Models saved by earlier versions must open for ever, with the answers they gave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firth

GOLDEN = Path(__file__).parents[1] / "golden"

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


def test_format_1_skipgram():
    folder = GOLDEN / "format-1-skipgram"
    assert set(firth.verify(folder)) == {"training.json", "vectors.safetensors", "vocabulary.json"}
    model = firth.load(folder)
    assert model.method == firth.SkipGram(dim=8, epochs=3, min_count=2, phrases=1, max_vocabulary=60)
    assert list(model.vectors.keys[:4]) == KEYS
    np.testing.assert_allclose(model.vectors.matrix[0], ROW, rtol=1e-6)
    assert [hit.key for hit in model.vectors.neighbors(KEYS[3], 3)] == NEIGHBORS
    assert model.vocabulary.counts[0] == COUNT
    assert model.training["epochs"][-1]["loss"] == pytest.approx(LOSS)
    assert model.tables["contexts"].matrix.shape == (60, 8)
