"""Pictures of squeezed rows: files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from firth import FirthError
from firth.maps import plot_codes, plot_columns, plot_images, plot_parts


def test_codes_are_coloured_by_label(tmp_path):
    codes = np.random.default_rng(1).normal(size=(30, 3))
    figure = plot_codes(codes, [str(row % 3) for row in range(30)], tmp_path / "c.svg")
    assert [text.get_text() for text in figure.axes[0].texts[1:]] == ["0", "1", "2"]
    assert (tmp_path / "c.svg").stat().st_size > 1000
    shaded = plot_codes(codes[:, :2], [str(row / 7) for row in range(30)])
    assert len(shaded.axes) == 2  # with a bar of colours
    assert len(plot_codes(codes).axes[0].collections) == 1
    for wrong, message in (
        ((codes[:, :1],), "at least 2 finite numbers"),
        ((codes, ["a"]), "a label for each code; got 1 for 30"),
        ((codes, [f"w{row}" for row in range(30)]), "2 to 10 different texts; got 30"),
    ):
        with pytest.raises(FirthError, match=message):
            plot_codes(*wrong)


def test_images_stand_in_their_places():
    one, two = np.arange(8.0).reshape(2, 4), np.zeros((1, 4))
    figure = plot_images({"given": one, "rebuilt": two}, (2, 2))
    sheet = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_array_equal(sheet[:2, :2], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(sheet[:2, 3:5], [[4, 5], [6, 7]])
    np.testing.assert_array_equal(sheet[-3:-1, :2], np.zeros((2, 2)))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["given", "rebuilt"]
    with pytest.raises(FirthError, match="rows of 3 × 3 = 9 pixels"):
        plot_images({"given": one}, (3, 3))


def test_columns_have_a_panel_each():
    real = {"age": [1, 2, 3, 4], "kind": ["a", "b", None, "a"], "gone": [None] * 4, "flag": [True, False, True, True]}
    made = {"age": [2.0, 2.5], "kind": ["a", "a"], "gone": [None, None], "flag": [True, True]}
    figure = plot_columns(real, made)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["age", "kind", "gone", "flag"]
    assert [bar.get_height() for bar in figure.axes[1].patches] == [2 / 3, 1 / 3]
    with pytest.raises(FirthError, match="columns of the same names"):
        plot_columns({"a": [1]}, {"b": [1]})


def test_the_parts_of_a_loss():
    measured = [{"share": share, "reconstruction": 3 - share, "kl": share} for share in (0.1, 0.5, 1.0)]
    figure = plot_parts({"held_out": measured})
    assert sorted(line.get_ydata()[-1] for line in figure.axes[0].lines[:3]) == [1.0, 2.0, 3.0]
    with pytest.raises(FirthError, match="held-out figures of a VAE"):
        plot_parts({"held_out": []})
