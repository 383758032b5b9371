"""Plots: image sizes, points compared with scikit-learn, labels that do not overlap."""

import itertools
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread
from refusing import refuses, warns_code
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances
from sklearn.preprocessing import normalize

from firth import Vectors
from firth.maps import plot_analogies, plot_curve, plot_loss, plot_map, plot_similarity, plot_zipf
from firth.maps.plots import zipf_fit

LOSSES = {"epochs": [{"loss": 3.0, "held_out_loss": 2.9}, {"loss": 2.5, "held_out_loss": 2.6}, {"loss": 2.4}]}


@pytest.fixture
def vectors():
    keys = [*"abcdefgh", "$dollar$", "<tag>", *(f"word{i}" for i in range(90))]
    return Vectors(keys, np.random.default_rng(0).normal(size=(100, 8)))


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def points_of(figure, collection):
    return np.asarray(figure.axes[0].collections[collection].get_offsets())


def expected_points(vectors, words):
    rows = normalize(vectors.matrix[[vectors.row(word) for word in words]].astype(np.float64))
    return PCA(2, svd_solver="full").fit_transform(rows)


def assert_same_up_to_direction(found, expected):
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-5)


def test_map_shows_the_principal_components(vectors, tmp_path):
    figure = plot_map(vectors, 60, tmp_path / "map.png", highlight=["word80", "a"])
    shown = ["word80", "a", *(key for key in vectors.keys[:60] if key != "a")]
    found = np.vstack((points_of(figure, 1), points_of(figure, 0)))
    assert_same_up_to_direction(found, expected_points(vectors, shown))
    assert imread(tmp_path / "map.png").shape == (1200, 1500, 4)
    assert {"word80", "a", "$dollar$"} <= set(texts(figure))
    assert figure.axes[0].get_title(loc="left") == "Map of 61 vectors"  # of words, documents, nodes or tags
    assert list(tmp_path.iterdir()) == [tmp_path / "map.png"]


def test_labels_do_not_overlap_and_omitted_ones_are_counted(vectors):
    figure = plot_map(vectors, 100)
    axes = figure.axes[0]
    labels = [text for text in axes.texts if text.get_text() in vectors]
    boxes = [text.get_window_extent() for text in labels]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(
        axes.get_window_extent().containsx(box.x0) and axes.get_window_extent().containsx(box.x1) for box in boxes
    )
    missing = len(vectors) - len(labels)
    assert any(text.startswith(f"{missing} of 100 labels omitted") for text in texts(figure)) == (missing > 0)


def test_a_crowded_map_states_how_many_labels_are_omitted():
    crowd = Vectors([f"a-rather-long-word-{i}" for i in range(300)], np.random.default_rng(1).normal(size=(300, 3)))
    assert any("of 300 labels omitted" in text for text in texts(plot_map(crowd, 300)))


def test_pairs_are_connected_by_lines(vectors, tmp_path):
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    figure = plot_analogies(vectors, pairs, tmp_path / "pairs.svg")
    expected = expected_points(vectors, list("abcdef")).reshape(3, 4)
    found = np.array([np.ravel(line.get_xydata()) for line in figure.axes[0].lines])
    assert_same_up_to_direction(found.reshape(6, 2), expected.reshape(6, 2))
    assert set(texts(figure)) >= set("abcdef")
    root = ElementTree.parse(tmp_path / "pairs.svg").getroot()
    assert root.tag.endswith("svg")
    assert (root.get("width"), root.get("height")) == ("720pt", "576pt")


@pytest.mark.parametrize(
    ("metric", "truth"),
    [("cosine", cosine_similarity), ("dot", lambda rows: rows @ rows.T), ("euclidean", euclidean_distances)],
)
def test_heat_map_has_every_number(metric, truth, vectors, tmp_path):
    words = ["a", "b", "$dollar$", "<tag>"]
    figure = plot_similarity(vectors, words, tmp_path / "heat.png", metric)
    expected = truth(vectors.matrix[[vectors.row(word) for word in words]].astype(np.float64))
    np.testing.assert_allclose(np.asarray(figure.axes[0].images[0].get_array()), expected, atol=1e-6)
    assert {f"{value:.2f}" for value in expected.ravel()} <= set(texts(figure)) | {"-0.00"}
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == words
    assert imread(tmp_path / "heat.png").shape[:2] == (
        round(150 * (2.2 + 0.62 * 4)),
        round(150 * (2.0 + 0.07 * len("$dollar$") + 0.62 * 4)),
    )


def test_loss_lines_are_the_losses(tmp_path):
    figure = plot_loss(LOSSES, tmp_path / "loss.png")
    lines = sorted((np.asarray(line.get_xydata()).tolist() for line in figure.axes[0].lines), key=len)
    assert lines == [[[1, 2.9], [2, 2.6]], [[1, 3.0], [2, 2.5], [3, 2.4]]]
    assert "training  2.4" in texts(figure)
    assert imread(tmp_path / "loss.png").shape[:2] == (750, 1200)
    without: list[Any] = [{}, {"epochs": []}, {"epochs": 5}, {"epochs": [{"words": 3}]}, object()]
    for training in without:
        with refuses("unsupported_model"):
            plot_loss(training)


def test_zipf_finds_the_planted_slope(tmp_path):
    ranks = np.arange(1, 20001)
    assert zipf_fit(np.float64(1e9) * ranks**-1.25) == pytest.approx((-1.25, np.log(1e9)))
    words = {f"w{rank}": int(10**7 / rank) for rank in ranks.tolist()}
    figure = plot_zipf(dict(reversed(words.items())), tmp_path / "zipf.png")
    assert figure.axes[0].get_title(loc="left") == "Word frequency by rank: slope −1.00"
    assert {"w1", "w10", "w100"} <= set(texts(figure))
    assert plot_zipf(list(words.values())).axes[0].get_title(loc="left") == "Word frequency by rank: slope −1.00"
    for bad in ([], [5], [5, 0], {"a": 1, "b": -1}):
        with refuses("too_few"):
            plot_zipf(bad)


def test_image_files_are_reproducible(vectors, tmp_path):
    for suffix in ("png", "svg"):
        files = [tmp_path / f"{number}.{suffix}" for number in range(2)]
        for file in files:
            plot_loss(LOSSES, file)
        assert files[0].read_bytes() == files[1].read_bytes()


def test_refused_plots_leave_no_file(vectors, tmp_path):
    path = tmp_path / "x.png"
    broken = Vectors(["a", "b", "c"], [[1.0, 0.0], [np.nan, 0.0], [0.0, 1.0]])
    gif = tmp_path / "x.gif"
    for draw, code, values in (
        (lambda: plot_map(vectors, ["a", "nowhere"], path), "unknown_key", {"key": "nowhere"}),
        (lambda: plot_map(vectors, 10, path, highlight=["nowhere"]), "unknown_key", {"key": "nowhere"}),
        (lambda: plot_map(vectors, ["a"], path), "too_few", {"least": 2, "got": 1}),
        (lambda: plot_map(vectors, 0, path), "too_few", {"least": 2, "got": 0}),
        (lambda: plot_map(broken, 3, path), "non_finite", {"word": "b"}),
        (lambda: plot_map(vectors, 10, gif), "unknown_format", {"suffixes": ".png or .svg", "got": gif}),
        (lambda: plot_analogies(vectors, [("a", "nowhere")], path), "unknown_key", {"key": "nowhere"}),
        (lambda: plot_analogies(vectors, [], path), "invalid_value", {"got": []}),
        (lambda: plot_similarity(vectors, ["a"], path), "invalid_value", {"most": 60, "got": 1}),
        (lambda: plot_similarity(vectors, ["a", "b"], path, "angle"), "invalid_value", {"option": "metric"}),
        (lambda: plot_similarity(broken, ["a", "b"], path), "non_finite", {"word": "b"}),
    ):
        with refuses(code, **values):
            draw()
    assert not list(tmp_path.iterdir())


def test_missing_folders_are_created(vectors, tmp_path):
    plot_map(vectors, 10, tmp_path / "new" / "x.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.png"]


def test_matplotlib_is_imported_only_when_used():
    code = "import firth.maps, firth.evaluate, sys; sys.exit('matplotlib' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_characters_without_a_glyph_are_reported(tmp_path):
    strange = Vectors(["\U0002f9ff", "a", "b"], np.eye(3))  # not assigned: no font has it
    with warns_code("missing_glyphs") as warned:
        plot_map(strange, 3, tmp_path / "x.png")
    assert any("1 of the characters" in str(warning) for warning in warned)
    assert (tmp_path / "x.png").exists()


def test_a_curve_has_the_epochs_of_a_trial_and_marks_the_best():
    """Of equal scores, the one with the lower loss is the best; sentence encoders have one trial, without a rate."""
    measured = [
        {"share": share, "score": score, "held_out_loss": loss, "try": number, "rate": 1e-4, "epoch": epoch}
        for number, share, epoch, score, loss in [
            (1, 0.5, 1, 0.8, 0.6), (1, 1.0, 2, 0.9, 0.7), (2, 0.5, 3, 0.9, 0.5), (2, 1.0, 4, 0.7, 0.9)
        ]
    ]  # fmt: skip
    figure = plot_curve({"held_out": measured, "finished_epochs": 4})
    lines = [np.asarray(line.get_xydata()).tolist() for line in figure.axes[0].lines]
    assert lines == [[[1.0, 0.8], [2.0, 0.9]], [[1.0, 0.9], [2.0, 0.7]], [[1.0, 0.9]]]
    assert any("2 trials of 2 epochs" in text.get_text() for text in [*figure.texts, *figure.axes[0].texts])
    plain = plot_curve({"held_out": [{"share": 0.5, "score": 0.3}, {"share": 1.0, "score": 0.4}], "finished_epochs": 3})
    assert np.asarray(plain.axes[0].lines[0].get_xydata()).tolist() == [[1.5, 0.3], [3.0, 0.4]]
