"""Plots of Huffman trees and position embeddings show what the kernels and networks compute."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.image import imread
from refusing import refuses

from firth.kernels.predict import huffman_paths
from firth.maps import plot_positions, plot_tree, tree_cost

COUNTS = {"the": 4, "cat": 2, "sat": 1, "$mat": 1}


def test_the_tree_of_the_skip_gram_page():
    """Merged by hand: 1 + 1, 2 + 2, 4 + 4; 1.75 steps per word, which is the entropy; a balanced tree takes 2."""
    cost = tree_cost(np.array([4, 2, 1, 1]))
    assert cost == pytest.approx((1.75, 1.75, 2.0))
    assert str(cost) == "1.75 steps per word; entropy 1.75, balanced tree 2.00"


def test_the_huffman_cost_is_within_one_bit_of_the_entropy():
    counts = np.random.default_rng(0).zipf(1.5, 500).clip(max=10_000)
    cost = tree_cost(counts)
    assert cost.entropy <= cost.huffman < cost.entropy + 1
    assert cost.huffman < cost.balanced


def test_the_depth_of_a_word_is_the_length_of_its_path(tmp_path):
    figure = plot_tree(COUNTS, 4, tmp_path / "tree.png")
    axes = figure.axes[0]
    depth = {
        text.get_text().split()[0]: round(-text.get_position()[1] - 0.12)
        for text in axes.texts
        if "  " in text.get_text()
    }
    steps = np.diff(huffman_paths(np.array(list(COUNTS.values()))).starts)
    assert depth == dict(zip(COUNTS, steps.tolist(), strict=True))
    branches = [line for line in axes.lines if np.size(line.get_xdata()) == 3]
    assert len(branches) == 2 * (len(COUNTS) - 1)  # each inner node has two
    assert imread(tmp_path / "tree.png").shape[2] == 4
    assert "tree of all 4 words: 1.75" in " ".join(text.get_text() for text in axes.texts)


def test_only_the_k_most_frequent_words_are_plotted():
    many = {f"w{n}": 1000 // (n + 1) for n in range(100)}
    labels = [text.get_text() for text in plot_tree(many, 5).axes[0].texts if "  " in text.get_text()]
    assert [word.split()[0] for word in labels] == ["w0", "w1", "w2", "w3", "w4"]


def test_positions_are_plotted_with_their_similarity(tmp_path):
    table = np.array([[3.0, 4.0], [4.0, 3.0], [-3.0, -4.0]])
    figure = plot_positions(table, tmp_path / "p.svg")
    left, right = (np.asarray(axes.images[0].get_array()) for axes in figure.axes[:2])
    np.testing.assert_allclose(left, table)
    np.testing.assert_allclose(right, [[1, 0.96, -1], [0.96, 1, -0.96], [-1, -0.96, 1]], atol=1e-6)
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_invalid_plots_are_refused():
    for counts, k in (({"a": 1}, 2), (COUNTS, 1), (COUNTS, 41), ({"a": 1, "b": 0}, 2)):
        with refuses("invalid_value", most=40, k=k, got=sum(count > 0 for count in counts.values())):
            plot_tree(counts, k)
    for table in (np.zeros((1, 4)), np.zeros(4), np.array([[1.0], [np.nan]])):
        with refuses("invalid_value", most=512, got=table.shape):
            plot_positions(table)
