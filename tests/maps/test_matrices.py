"""Heat maps of blocks and curves of explained variance."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth.maps import plot_block, plot_variance


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_block_shows_its_numbers_and_names(tmp_path):
    figure = plot_block(np.array([[1.5, -2.0], [0.0, 3.25]]), ["heaven", "hell"], ["gate", "$fire"], tmp_path / "b.svg")
    axes = figure.axes[0]
    assert {"1.50", "-2.00", "0.00", "3.25"} <= set(texts(axes))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["gate", "$fire"]
    assert axes.images[0].get_clim() == (-3.25, 3.25)  # zero is the middle where numbers have signs
    assert (tmp_path / "b.svg").read_text().startswith("<?xml")


def test_variance_adds_up(tmp_path):
    figure = plot_variance([0.4, 0.2, 0.1], tmp_path / "v.png")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.4, 0.6, 0.7])
    assert "50% in 2" in texts(figure.axes[0]) and figure.axes[0].lines[1].get_xdata() == [2, 2]
    for drawn in (figure, plot_variance([0.7])):
        assert all(tick == round(tick) for tick in drawn.axes[0].get_xticks())
    assert not any("50%" in text for text in texts(plot_variance([0.3, 0.1]).axes[0]))  # it is never reached
    assert (tmp_path / "v.png").read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(firth.FirthError, match="each with a name"):
        plot_block(np.zeros((2, 2)), ["a"], ["b", "c"])
    with pytest.raises(firth.FirthError, match="finite"):
        plot_block(np.array([[np.nan]]), ["a"], ["b"])
    with pytest.raises(firth.FirthError, match="at least 0"):
        plot_variance([-0.1])


def test_a_block_of_pmi_says_which_pmi_it_is(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from firth.cli.main import cli

    figures = []
    monkeypatch.setattr("firth.maps.plots.save_figure", lambda figure, path: figures.append(figure))
    model = firth.PMI(dim=2, min_count=1, smoothing=0.5).fit(["a cat sat", "a dog sat", "a cat ran"])
    model.save(tmp_path / "pmi")
    for options in ([], ["--counts"]):
        done = CliRunner().invoke(cli, ["plot", "heatmap", str(tmp_path / "pmi"), "cat", *options, "-o", "b.png"])
        assert done.exit_code == 0, done.output
    notes = [texts(figure.axes[0])[0] for figure in figures]
    assert notes == ["variant ppmi, smoothing 0.5; plain PMI: firth query associations", ""]
