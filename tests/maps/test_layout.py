"""Layouts: scores compared with scikit-learn and by hand, planted clusters, layouts saved with a model."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses, warns_code
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

import firth
from firth import FirthError, Run, Vectors
from firth.core.extras import how_to_install
from firth.maps import layout, preservation, save_layout, saved_layout, saved_layouts
from firth.maps.layouts import first_rows, nearest

METHODS = ("pca", "tsne", "umap")
KEEP_ON = """
import itertools, sys
from firth import Run
from firth.maps import saved_layout
for seed in itertools.count(1):
    saved_layout(sys.argv[1], "pca", run=Run(seed=seed))
    print(seed, flush=True)
"""


@pytest.fixture(scope="module")
def groups():
    """12 clusters of 20 points in 30 dimensions, shuffled: more than two components can separate."""
    rng = np.random.default_rng(0)
    of = rng.permutation(np.repeat(np.arange(12), 20))
    matrix = 4 * np.eye(30)[of] + rng.normal(size=(240, 30)) * 0.6
    return Vectors([f"{group}-{row}" for row, group in enumerate(of)], matrix)


@pytest.fixture(scope="module")
def maps(groups):
    return {method: layout(groups, method) for method in METHODS}


@pytest.fixture
def model(tmp_path, groups):
    """A small saved model with more than four words."""
    trained = firth.SkipGram(dim=8, min_count=1, epochs=1).fit(
        [f"a{i % 7} b{i % 5} c{i % 3} d{i % 11}" for i in range(99)]
    )
    return trained.save(tmp_path / "model")


def test_scores_equal_those_of_scikit_learn(groups, maps):
    for found in maps.values():
        expected = trustworthiness(groups.unit, found.xy, n_neighbors=10)
        assert found.score.trustworthiness == pytest.approx(expected, abs=1e-3)
        near = [
            NearestNeighbors(n_neighbors=10).fit(rows).kneighbors(return_distance=False)
            for rows in (groups.unit, found.xy)
        ]
        recall = np.mean([len(set(one) & set(other)) / 10 for one, other in zip(*near, strict=True)])
        assert found.score.recall == pytest.approx(recall, abs=2e-3)


def test_scores_of_a_worked_example():
    line = np.arange(6, dtype=np.float32)[:, None]
    same = np.hstack([line, np.zeros_like(line)])
    assert preservation(line, same, k=2)[:2] == (1, 1)
    # 0 1 2 3 4 5 with 0 moved behind 5: the nearest of 0 on the map (5) is truly its farthest.
    moved = same.copy()
    moved[0, 0] = 6
    found = preservation(line, moved, k=1)
    # nearest on the map: 0→5 (rank 5), 1→2, 2→1, 3→2, 4→3 and 5→0 or 4, the lower row: 0 (rank 5)
    assert found.recall == pytest.approx(4 / 6)
    assert found.trustworthiness == pytest.approx(1 - 2 / (6 * 1 * (12 - 3 - 1)) * (4 + 4))
    assert found.chance == pytest.approx(1 / 5)


def test_a_random_map_scores_like_chance(groups):
    xy = np.random.default_rng(1).normal(size=(240, 2)).astype(np.float32)
    found = preservation(groups.unit, xy)
    assert found.recall == pytest.approx(found.chance, abs=0.02)
    assert found.trustworthiness == pytest.approx(0.5, abs=0.03)


def test_scores_of_a_sample_are_close_to_those_of_all_points(monkeypatch, groups, maps):
    monkeypatch.setattr("firth.maps.preserved.SAMPLE", 120)
    found = preservation(groups.unit, maps["tsne"].xy)
    assert found.recall == pytest.approx(maps["tsne"].score.recall, abs=0.05)
    assert found.trustworthiness == pytest.approx(maps["tsne"].score.trustworthiness, abs=0.01)


def test_planted_clusters_are_separated(groups, maps):
    """The nearest point on the map is in the same cluster; the two components of PCA cannot achieve that."""
    clusters = np.array([key.split("-")[0] for key in groups.keys])
    accuracy = {}
    for method, found in maps.items():
        near = NearestNeighbors(n_neighbors=1).fit(found.xy).kneighbors(return_distance=False)[:, 0]
        accuracy[method] = (clusters == clusters[near]).mean()
    assert accuracy["tsne"] > 0.97 < accuracy["umap"]
    assert accuracy["pca"] < 0.9
    assert maps["pca"].score.trustworthiness < min(maps[name].score.trustworthiness for name in ("tsne", "umap"))


def test_pca_equals_that_of_scikit_learn(groups, maps):
    expected = PCA(2, svd_solver="full").fit_transform(groups.unit.astype(np.float64))
    signs = np.sign((maps["pca"].xy * expected).sum(axis=0))
    np.testing.assert_allclose(maps["pca"].xy, expected * signs, atol=1e-5)


@pytest.mark.parametrize("method", ["tsne", "umap"])
def test_the_result_is_a_function_of_the_seed(groups, maps, method):
    part = first_rows(groups, 60)
    one, two = (layout(part, method, run=Run(threads=threads)) for threads in (1, 2))
    assert one.xy.tobytes() == two.xy.tobytes()
    assert one.neighbors == {"tsne": 19, "umap": 15}[method]  # 59 other points allow 19 × 3
    assert layout(part, method, run=Run(seed=2)).xy.tobytes() != one.xy.tobytes()


def test_neighbors_equal_those_of_scikit_learn(groups):
    found = nearest(groups.unit, 7, threads=2)
    distances, rows = NearestNeighbors(n_neighbors=7).fit(groups.unit).kneighbors()
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.distances, distances, atol=1e-5)
    twins = np.repeat(np.eye(2, 3, dtype=np.float32), 5, axis=0)  # a row is not its own neighbor, even among duplicates
    near = nearest(twins, 4, threads=1).rows
    assert [sorted([row, *others]) for row, others in enumerate(near.tolist())] == [list(range(5))] * 5 + [
        list(range(5, 10))
    ] * 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("rows", "metric"),
    [
        (np.random.default_rng(1).normal(size=(4, 3)), "cosine"),
        (np.repeat(np.random.default_rng(2).normal(size=(3, 4)), 20, axis=0), "cosine"),  # many duplicates
        (np.vstack([np.zeros((9, 4)), np.eye(4)]), "cosine"),
        (np.arange(9.0)[:, None], "euclidean"),  # one dimension
        (np.random.default_rng(3).normal(size=(20, 3)) * 1e37, "euclidean"),
    ],
)
def test_unusual_rows_get_finite_coordinates(method, rows, metric):
    found = layout(Vectors([str(row) for row in range(len(rows))], rows), method, metric=metric)
    assert found.xy.shape == (len(rows), 2)
    assert np.isfinite(found.xy).all()
    assert np.ptp(found.xy[:, 0]) > 0


def test_invalid_arguments_are_refused(groups, monkeypatch):
    def of(rows):
        return Vectors([f"k{row}" for row in range(len(rows))], rows)

    broken = groups.matrix.copy()
    broken[3, 2] = np.nan
    methods, metrics = "pca, tsne, umap", "cosine, euclidean"
    for vectors, settings, code, values in (
        (of(np.eye(3)), {}, "too_few", {"least": 4, "got": 3}),
        (of(broken), {}, "non_finite", {"key": "k3"}),
        (of(np.ones((9, 3))), {"metric": "euclidean"}, "no_variation", {"n_rows": 9, "detail": "are equal"}),
        (of(np.outer(np.arange(1, 9), [1, 2])), {}, "no_variation", {"n_rows": 8, "detail": "have the same direction"}),
        (of(np.zeros((9, 3))), {}, "no_variation", {"n_rows": 9}),
        (of(np.arange(9.0)[:, None]), {}, "conflicting_options", {"metric": "metric='euclidean'"}),
        (groups, {"method": "som"}, "invalid_value", {"option": "method", "choices": methods, "got": "som"}),
        (groups, {"metric": "dot"}, "invalid_value", {"option": "metric", "choices": metrics, "got": "dot"}),
        (groups, {"neighbors": 5}, "conflicting_options", {"neighbors": 5}),
        (groups, {"method": "tsne", "neighbors": 1}, "invalid_value", {"option": "neighbors", "got": 1}),
    ):
        with refuses(code, **values):
            layout(vectors, **settings)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for method, package in (("tsne", "openTSNE"), ("umap", "umap-learn")):
        with refuses("missing_package", package=package, how=how_to_install("maps")):
            layout(groups, method)


# ---- saved with a model ----


def test_saved_layouts_are_read_again(model):
    assert saved_layouts(model) == {}
    computed = saved_layout(model, "pca")
    stored = saved_layouts(model)["words-pca"]
    assert stored.xy.tobytes() == computed.xy.tobytes()
    assert list(stored.keys) == list(firth.load(model, firth.SkipGram).vectors.keys)
    assert stored.score == computed.score
    firth.verify(model)
    firth.load(model)


def test_a_layout_is_computed_again_only_for_other_settings(model, monkeypatch):
    computed = saved_layout(model, "pca", restrict=9)
    assert len(computed.keys) == 9
    monkeypatch.setattr("firth.maps.layout_files.layout", lambda *_, **__: pytest.fail("computed again"))
    assert saved_layout(model, "pca", restrict=9).xy.tobytes() == computed.xy.tobytes()
    for other in ({"restrict": 8}, {"restrict": 9, "metric": "euclidean"}, {"restrict": 9, "run": Run(seed=2)}):
        with pytest.raises(pytest.fail.Exception, match="computed again"):
            saved_layout(model, "pca", **other)


def test_layouts_of_other_vectors_are_ignored(model, tmp_path):
    computed = saved_layout(model, "pca")
    other = firth.SkipGram(dim=8, min_count=1, epochs=2).fit(
        [f"a{i % 7} b{i % 5} c{i % 3} d{i % 11}" for i in range(99)]
    )
    other.save(model, overwrite=True)
    assert saved_layouts(model) == {}  # replaced with the folder
    save_layout(computed, model, "words")
    assert saved_layouts(model) == {}  # the fingerprint does not match
    assert saved_layout(model, "pca").vectors == other.vectors.fingerprint()


def test_damaged_layouts_are_refused_and_computed_again(model):
    saved_layout(model, "pca")
    file = model / "maps" / "words-pca.safetensors"
    data = file.read_bytes()
    offset = data.index(b"]}}") + 40  # among the coordinates
    for damaged, codes in (
        (data[:-20], ("damaged_model", "damaged_file")),
        (data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :], ("hash_mismatch",)),
        (b"", ("damaged_model", "damaged_file")),
    ):
        file.write_bytes(damaged)
        with pytest.raises(FirthError) as caught:
            saved_layouts(model)
        assert caught.value.code in codes and str(file) in str(caught.value)
    with warns_code("damaged_layout"):
        saved_layout(model, "pca")
    assert "words-pca" in saved_layouts(model)


def test_models_without_vectors_have_no_layouts(tmp_path):
    folder = firth.Standardize().fit(firth.Table({"a": [1.0, 2.0, 3.0]})).save(tmp_path / "model")
    with refuses("unsupported_model", folder=folder):
        saved_layouts(folder)
    with refuses("not_found", folder=tmp_path / "none"):
        saved_layouts(tmp_path / "none")


def test_a_kill_while_writing_leaves_a_complete_layout(model):
    """A process saves layouts with the seeds 1, 2, 3, … and is killed several times; the file is always complete."""
    environment = {**os.environ, "PYTHONPATH": str(Path(firth.__file__).parents[1])}
    for number in range(4):
        job = subprocess.Popen([sys.executable, "-c", KEEP_ON, model], stdout=subprocess.PIPE, env=environment)
        assert job.stdout is not None and all(job.stdout.readline() for _ in range(number + 1))
        job.send_signal(signal.SIGKILL)
        job.wait()
        assert saved_layouts(model)["words-pca"].seed >= 1
    firth.verify(model)
