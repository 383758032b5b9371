"""Pictures of attention: what is drawn is what the weights are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import firth
from firth.core.model import Attention
from firth.maps import plot_attention
from firth.maps.attention import select_weights, visible, without_special_tokens

TOKENS = ["a", " fluffy", "blue", "creature"]


def attention(rows: int = 4, columns: int = 4) -> Attention:
    weights = np.random.default_rng(0).dirichlet(np.ones(columns), size=(2, 3, rows)).astype(np.float32)
    return Attention(TOKENS[:rows], TOKENS[:columns], weights)


@pytest.mark.parametrize("name", ["grid.png", "grid.svg"])
@pytest.mark.parametrize("settings", [{}, {"layer": 2}, {"layer": 1, "head": 3}], ids=str)
def test_pictures(tmp_path: Path, name, settings):
    plot_attention(attention(), tmp_path / name, **settings)
    begin = (tmp_path / name).read_bytes()[:100]
    assert begin.startswith(b"\x89PNG") if name.endswith("png") else b"<?xml" in begin
    other = attention()
    other.weights[1, 2], other.weights[0, 2] = np.eye(4), np.eye(4)
    plot_attention(other, tmp_path / f"other-{name}", **settings)
    assert (tmp_path / name).read_bytes() != (tmp_path / f"other-{name}").read_bytes()


def test_the_page_holds_the_weights_and_nothing_runs_from_a_token(tmp_path: Path):
    found = attention(3, 4)._replace(queries=["</script><script>alert(1)</script>", "b", "c"])
    plot_attention(found, tmp_path / "page.html", title="<b>")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
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
    for layer, head, message in (
        (3, 1, "layer must be from 1 to 2"),
        (0, 1, "layer"),
        (1, 4, "head must be from 1 to 3"),
    ):
        with pytest.raises(firth.FirthError, match=message):
            select_weights(found, layer, head)


def test_what_cannot_be_drawn(tmp_path: Path):
    with pytest.raises(firth.FirthError, match="needs the layer"):
        plot_attention(attention(), tmp_path / "a.png", head=1)
    long = Attention(["x"] * 90, ["x"] * 90, np.ones((1, 1, 90, 90), np.float32) / 90)
    with pytest.raises(firth.FirthError, match="at most 80 tokens; got 90"):
        plot_attention(long, tmp_path / "a.png", layer=1)
    with pytest.raises(firth.FirthError, match=r"\.png or \.svg"):
        plot_attention(attention(), tmp_path / "a.gif")


def test_tokens_of_space_are_seen():
    assert [visible(token) for token in (" the", "\n", "  ")] == ["the", "⏎", "␣␣"]


def test_marks_are_left_out():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 5)).astype(np.float32)
    tokens = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    found = without_special_tokens(Attention(tokens, tokens, weights, [0, 0, 0, 1, 1]))
    assert found.queries == found.keys == ["a", "b"] and found.segments == [0, 1]
    np.testing.assert_array_equal(found.weights, weights[:, :, [1, 3]][..., [1, 3]])
    with pytest.raises(firth.FirthError, match="no words"):
        without_special_tokens(Attention(["[CLS]"], ["[CLS]"], weights[:, :, :1, :1]))


def test_the_second_text_of_a_pair_is_told_from_the_first(tmp_path: Path):
    found = attention()
    for name, settings in (("pair.svg", {"layer": 1}), ("pair.html", {})):
        plot_attention(found, tmp_path / name, **settings)
        plot_attention(found._replace(segments=[0, 0, 1, 1]), tmp_path / f"two-{name}", **settings)
        assert (tmp_path / name).read_bytes() != (tmp_path / f"two-{name}").read_bytes()
    page = (tmp_path / "two-pair.html").read_text()
    assert json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["segments"] == [0, 0, 1, 1]


def test_the_grid_says_its_scales_and_what_is_looked_at(tmp_path: Path, monkeypatch):
    figures = []
    monkeypatch.setattr("firth.maps.attention.save_figure", lambda figure, path: figures.append(figure))
    found = attention()
    for written in (found, found._replace(queries=["ein", "blaues", "flauschiges", "Wesen"])):
        plot_attention(written, tmp_path / "grid.png")
    low, high = found.weights.max(axis=(2, 3)).min(), found.weights.max(axis=(2, 3)).max()
    scale = f"each head by its own scale: darkest is {low:.2f} to {high:.2f}"
    same, other = (figure.axes[0] for figure in figures)
    assert same.get_xlabel() == scale and same.texts[0].get_text() == "a fluffy blue creature"
    assert other.get_xlabel() == f"looked at: a fluffy blue creature\n{scale}"
    assert other.texts[0].get_text() == "looking: ein blaues flauschiges Wesen"
