"""Plots of autoencoders: files, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.patches import Rectangle
from refusing import refuses

from firth.maps import plot_codes, plot_columns, plot_images, plot_parts


def test_codes_are_colored_by_label(tmp_path):
    codes = np.random.default_rng(1).normal(size=(30, 3))
    figure = plot_codes(codes, [str(row % 3) for row in range(30)], tmp_path / "c.svg")
    assert [text.get_text() for text in figure.axes[0].texts[1:]] == ["0", "1", "2"]
    assert (tmp_path / "c.svg").stat().st_size > 1000
    shaded = plot_codes(codes[:, :2], [str(row / 7) for row in range(30)])
    assert len(shaded.axes) == 2  # with a color bar
    assert len(plot_codes(codes).axes[0].collections) == 1
    for invalid, code, values in (
        ((codes[:, :1],), "non_finite", {"got": (30, 1)}),
        ((codes, ["a"]), "shape_mismatch", {"n_labels": 1, "n_codes": 30}),
        ((codes, [f"w{row}" for row in range(30)]), "invalid_value", {"most": 10, "got": 30}),
    ):
        with refuses(code, **values):
            plot_codes(*invalid)


def test_images_are_arranged_in_rows():
    one, two = np.arange(8.0).reshape(2, 4), np.zeros((1, 4))
    figure = plot_images({"given": one, "rebuilt": two}, (2, 2))
    sheet = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_array_equal(sheet[:2, :2], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(sheet[:2, 3:5], [[4, 5], [6, 7]])
    np.testing.assert_array_equal(sheet[-3:-1, :2], np.zeros((2, 2)))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["given", "rebuilt"]
    with refuses("shape_mismatch", height=3, width=3, size=9):
        plot_images({"given": one}, (3, 3))


def test_each_column_has_a_panel():
    real: dict[str, list[Any]] = {
        "age": [1, 2, 3, 4],
        "kind": ["a", "b", None, "a"],
        "gone": [None] * 4,
        "flag": [True, False, True, True],
    }
    generated: dict[str, list[Any]] = {
        "age": [2.0, 2.5],
        "kind": ["a", "a"],
        "gone": [None, None],
        "flag": [True, True],
    }
    figure = plot_columns(real, generated)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["age", "kind", "gone", "flag"]
    assert [bar.get_height() for bar in figure.axes[1].patches if isinstance(bar, Rectangle)] == [2 / 3, 1 / 3]
    with refuses("shape_mismatch"):
        plot_columns({"a": [1]}, {"b": [1]})


def test_the_terms_of_a_loss_are_plotted():
    measured = [{"share": share, "reconstruction": 3 - share, "kl": share} for share in (0.1, 0.5, 1.0)]
    figure = plot_parts({"held_out": measured})
    assert sorted(np.asarray(line.get_ydata())[-1] for line in figure.axes[0].lines[:3]) == [1.0, 2.0, 3.0]
    with refuses("unsupported_model"):
        plot_parts({"held_out": []})
