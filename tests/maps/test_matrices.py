"""Heat maps of blocks and curves of explained variance."""

from __future__ import annotations

import numpy as np
from refusing import refuses

import firth
from firth.maps import plot_block, plot_variance


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_block_shows_its_numbers_and_names(tmp_path):
    figure = plot_block(np.array([[1.5, -2.0], [0.0, 3.25]]), ["heaven", "hell"], ["gate", "$fire"], tmp_path / "b.svg")
    axes = figure.axes[0]
    assert {"1.50", "-2.00", "0.00", "3.25"} <= set(texts(axes))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["gate", "$fire"]
    assert axes.images[0].get_clim() == (-3.25, 3.25)  # zero is the middle of the scale if there are negative values
    assert (tmp_path / "b.svg").read_text().startswith("<?xml")


def test_variance_is_cumulative(tmp_path):
    figure = plot_variance([0.4, 0.2, 0.1], tmp_path / "v.png")
    np.testing.assert_allclose(np.asarray(figure.axes[0].lines[0].get_ydata()), [0.4, 0.6, 0.7])
    assert "50% in 2" in texts(figure.axes[0]) and figure.axes[0].lines[1].get_xdata() == [2, 2]
    for each in (figure, plot_variance([0.7])):
        assert all(tick == round(tick) for tick in each.axes[0].get_xticks())
    assert not any("50%" in text for text in texts(plot_variance([0.3, 0.1]).axes[0]))  # it is never reached
    assert (tmp_path / "v.png").read_bytes()[:4] == b"\x89PNG"


def test_invalid_plots_are_refused():
    with refuses("shape_mismatch", most=60, got=(2, 2), n_rows=1, n_columns=2):
        plot_block(np.zeros((2, 2)), ["a"], ["b", "c"])
    with refuses("non_finite"):
        plot_block(np.array([[np.nan]]), ["a"], ["b"])
    with refuses("invalid_value"):
        plot_variance([-0.1])


def test_a_heat_map_of_pmi_states_the_variant(tmp_path, monkeypatch):
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
