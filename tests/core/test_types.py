"""Type checkers see the real signatures: `make check` runs mypy over this file, where each `assert_type` must hold and
each ignored error must be one. The same calls run here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from refusing import refuses
from typing_extensions import assert_type

import firth
from firth.core.train import Trained
from firth.core.vectors import Hits
from firth.evaluate.analogy import AnalogyResult
from firth.words.fasttext_model import FastTextModel
from firth.words.window_model import Word2VecModel

TEXTS = ["the king and the queen", "the sea and the river"] * 20


def test_a_script_that_trains_saves_and_loads(tmp_path: Path) -> None:
    method = firth.SkipGram(dim=4, epochs=1, min_count=1)
    model = method.fit(firth.Corpus(TEXTS), firth.Run(seed=2))
    assert_type(model, Word2VecModel)
    assert_type(model.vectors.neighbors("king", 2), Hits)
    assert_type(model.embed(["the king"]), NDArray[np.float32])
    model.save(tmp_path / "model")
    assert_type(firth.load(tmp_path / "model"), firth.Model)
    loaded = firth.load(tmp_path / "model", firth.SkipGram)
    assert_type(loaded, Word2VecModel)
    assert np.array_equal(loaded.vectors.matrix, model.vectors.matrix)
    result = firth.evaluate.analogies(loaded.vectors, [])
    assert_type(result, AnalogyResult)
    trained = firth.train(firth.FastText(dim=4, epochs=1, min_count=1), TEXTS, tmp_path / "fasttext")
    assert_type(trained, Trained[FastTextModel])
    assert trained.model.vectors["kings"].any()  # composed of subwords


def test_another_method_than_the_expected_one_is_refused(tmp_path: Path) -> None:
    firth.Counts().fit(TEXTS).save(tmp_path / "counts")
    with refuses("unsupported_model", folder=tmp_path / "counts", got="Counts", expected="SkipGram"):
        firth.load(tmp_path / "counts", firth.SkipGram)


def test_wrong_arguments_are_errors_of_types() -> None:
    with refuses("unknown_option"):
        firth.SkipGram(vector_size=100)  # type: ignore[call-arg]
    with refuses("invalid_type"):
        firth.Vectors(["a"], [[1.0]]).neighbors("a", "ten")  # type: ignore[arg-type]


def test_every_public_name_is_declared() -> None:
    assert_type(firth.__all__, list[str])
    assert {"SkipGram", "load", "Index"} <= set(firth.__all__) and "evaluate" not in firth.__all__
    for name in dir(firth):
        assert getattr(firth, name) is not None
    assert {"evaluate", "maps", "words", *firth.__all__} <= set(dir(firth))
