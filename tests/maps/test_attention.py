"""Plots of attention show the weights."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

from firth.core.model import Attention
from firth.maps import plot_attention
from firth.maps.attention import select_weights, visible, without_special_tokens

TOKENS = ["a", " fluffy", "blue", "creature"]


def attention(rows: int = 4, columns: int = 4) -> Attention:
    weights = np.random.default_rng(0).dirichlet(np.ones(columns), size=(2, 3, rows)).astype(np.float32)
    return Attention(TOKENS[:rows], TOKENS[:columns], weights)


@pytest.mark.parametrize("name", ["grid.png", "grid.svg"])
@pytest.mark.parametrize("settings", [{}, {"layer": 2}, {"layer": 1, "head": 3}], ids=str)
def test_plots_depend_on_the_weights(tmp_path: Path, name, settings):
    plot_attention(attention(), tmp_path / name, **settings)
    begin = (tmp_path / name).read_bytes()[:100]
    assert begin.startswith(b"\x89PNG") if name.endswith("png") else b"<?xml" in begin
    other = attention()
    other.weights[1, 2], other.weights[0, 2] = np.eye(4), np.eye(4)
    plot_attention(other, tmp_path / f"other-{name}", **settings)
    assert (tmp_path / name).read_bytes() != (tmp_path / f"other-{name}").read_bytes()


def data_of(page: str) -> Any:
    """The JSON document inside the page."""
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_page_contains_the_weights_and_escapes_tokens(tmp_path: Path):
    found = attention(3, 4)._replace(queries=["</script><script>alert(1)</script>", "b", "c"])
    plot_attention(found, tmp_path / "page.html", title="<b>")
    page = (tmp_path / "page.html").read_text()
    data = data_of(page)
    assert data["queries"] == found.queries and np.allclose(data["weights"], found.weights, atol=1e-4)
    assert (
        "alert(1)</script>" not in page
        and "&lt;b&gt;" in page
        and "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    )


def test_a_layer_without_a_head_is_its_mean():
    found = attention()
    np.testing.assert_allclose(select_weights(found, 2, None), found.weights[1].mean(axis=0))
    np.testing.assert_allclose(select_weights(found, 2, 3), found.weights[1, 2])
    for layer, head, values in (
        (3, 1, {"option": "layer", "layers": 2, "got": 3}),
        (0, 1, {"option": "layer", "got": 0}),
        (1, 4, {"option": "head", "heads": 3, "got": 4}),
    ):
        with refuses("invalid_value", **values):
            select_weights(found, layer, head)


def test_invalid_plots_are_refused(tmp_path: Path):
    with refuses("missing_option", head=1, layers=2):
        plot_attention(attention(), tmp_path / "a.png", head=1)
    long = Attention(["x"] * 90, ["x"] * 90, np.full((1, 1, 90, 90), 1 / 90, np.float32))
    with refuses("text_too_long", most=80, got=90):
        plot_attention(long, tmp_path / "a.png", layer=1)
    with refuses("unknown_format", suffixes=".png or .svg", got=tmp_path / "a.gif"):
        plot_attention(attention(), tmp_path / "a.gif")


def test_white_space_tokens_are_visible():
    assert [visible(token) for token in (" the", "\n", "  ")] == ["the", "⏎", "␣␣"]


def test_special_tokens_can_be_left_out():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 5)).astype(np.float32)
    tokens = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    found = without_special_tokens(Attention(tokens, tokens, weights, [0, 0, 0, 1, 1]))
    assert found.queries == found.keys == ["a", "b"] and found.segments == [0, 1]
    np.testing.assert_array_equal(found.weights, weights[:, :, [1, 3]][..., [1, 3]])
    with refuses("empty_data"):
        without_special_tokens(Attention(["[CLS]"], ["[CLS]"], weights[:, :, :1, :1]))


def test_the_two_texts_of_a_pair_are_distinguished(tmp_path: Path):
    found = attention()
    cases: list[tuple[str, dict[str, Any]]] = [("pair.svg", {"layer": 1}), ("pair.html", {})]
    for name, settings in cases:
        plot_attention(found, tmp_path / name, **settings)
        plot_attention(found._replace(segments=[0, 0, 1, 1]), tmp_path / f"two-{name}", **settings)
        assert (tmp_path / name).read_bytes() != (tmp_path / f"two-{name}").read_bytes()
    page = (tmp_path / "two-pair.html").read_text()
    assert data_of(page)["segments"] == [0, 0, 1, 1]


def test_the_grid_states_its_scales_and_the_tokens(tmp_path: Path, monkeypatch):
    figures = []
    monkeypatch.setattr("firth.maps.attention.save_figure", lambda figure, path: figures.append(figure))
    found = attention()
    for written in (found, found._replace(queries=["ein", "blaues", "flauschiges", "Wesen"])):
        plot_attention(written, tmp_path / "grid.png")
    low, high = found.weights.max(axis=(2, 3)).min(), found.weights.max(axis=(2, 3)).max()
    scale = f"each head has its own scale: its largest weight is {low:.2f} to {high:.2f}"
    same, other = (figure.axes[0] for figure in figures)
    assert same.get_xlabel() == scale and same.texts[0].get_text() == "a fluffy blue creature"
    assert other.get_xlabel() == f"keys: a fluffy blue creature\n{scale}"
    assert other.texts[0].get_text() == "queries: ein blaues flauschiges Wesen"
