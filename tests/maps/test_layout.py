"""Maps: the scores against scikit-learn and by hand, planted groups found again, kept with a model and never stale."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
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
    """12 groups of 20 in 30 dimensions, in no order: more than two components can part."""
    rng = np.random.default_rng(0)
    of = rng.permutation(np.repeat(np.arange(12), 20))
    matrix = 4 * np.eye(30)[of] + rng.normal(size=(240, 30)) * 0.6
    return Vectors([f"{group}-{row}" for row, group in enumerate(of)], matrix)


@pytest.fixture(scope="module")
def maps(groups):
    return {method: layout(groups, method) for method in METHODS}


@pytest.fixture
def model(tmp_path, groups):
    """A saved model of four points and more, small enough to place at once."""
    made = firth.SkipGram(dim=8, min_count=1, epochs=1).fit(
        [f"a{i % 7} b{i % 5} c{i % 3} d{i % 11}" for i in range(99)]
    )
    return made.save(tmp_path / "model")


def test_scores_are_scikit_learns(groups, maps):
    for found in maps.values():
        expected = trustworthiness(groups.unit, found.xy, n_neighbors=10)
        assert found.score.trustworthiness == pytest.approx(expected, abs=1e-3)
        near = [
            NearestNeighbors(n_neighbors=10).fit(rows).kneighbors(return_distance=False)
            for rows in (groups.unit, found.xy)
        ]
        kept = np.mean([len(set(one) & set(other)) / 10 for one, other in zip(*near, strict=True)])
        assert found.score.kept == pytest.approx(kept, abs=2e-3)


def test_scores_by_hand():
    line = np.arange(6, dtype=np.float32)[:, None]
    same = np.hstack([line, np.zeros_like(line)])
    assert preservation(line, same, k=2)[:2] == (1, 1)
    # 0 1 2 3 4 5 with 0 moved behind 5: 0's nearest on the map (5) is its farthest; 5's two are 0 (rank 5) and 4.
    moved = same.copy()
    moved[0, 0] = 6
    found = preservation(line, moved, k=1)
    # nearest on the map: 0→5 (rank 5), 1→2, 2→1, 3→2, 4→3 and 5→0 or 4, the lower row: 0 (rank 5)
    assert found.kept == pytest.approx(4 / 6)
    assert found.trustworthiness == pytest.approx(1 - 2 / (6 * 1 * (12 - 3 - 1)) * (4 + 4))
    assert found.chance == pytest.approx(1 / 5)


def test_a_random_map_scores_like_chance(groups):
    xy = np.random.default_rng(1).normal(size=(240, 2)).astype(np.float32)
    found = preservation(groups.unit, xy)
    assert found.kept == pytest.approx(found.chance, abs=0.02)
    assert found.trustworthiness == pytest.approx(0.5, abs=0.03)


def test_a_sample_tells_what_all_points_tell(monkeypatch, groups, maps):
    monkeypatch.setattr("firth.maps.preserved.SAMPLE", 120)
    found = preservation(groups.unit, maps["tsne"].xy)
    assert found.kept == pytest.approx(maps["tsne"].score.kept, abs=0.05)
    assert found.trustworthiness == pytest.approx(maps["tsne"].score.trustworthiness, abs=0.01)


def test_planted_groups_are_islands(groups, maps):
    """The nearest point on the map is of the same group; the two components of PCA can't do that."""
    of = np.array([key.split("-")[0] for key in groups.keys])
    right = {}
    for method, found in maps.items():
        near = NearestNeighbors(n_neighbors=1).fit(found.xy).kneighbors(return_distance=False)[:, 0]
        right[method] = (of == of[near]).mean()
    assert right["tsne"] > 0.97 < right["umap"]
    assert right["pca"] < 0.9
    assert maps["pca"].score.trustworthiness < min(maps[name].score.trustworthiness for name in ("tsne", "umap"))


def test_pca_is_scikit_learns(groups, maps):
    expected = PCA(2, svd_solver="full").fit_transform(groups.unit.astype(np.float64))
    signs = np.sign((maps["pca"].xy * expected).sum(axis=0))
    np.testing.assert_allclose(maps["pca"].xy, expected * signs, atol=1e-5)


@pytest.mark.parametrize("method", ["tsne", "umap"])
def test_the_seed_decides(groups, maps, method):
    part = first_rows(groups, 60)
    one, two = (layout(part, method, run=Run(threads=threads)) for threads in (1, 2))
    assert one.xy.tobytes() == two.xy.tobytes()
    assert one.neighbors == {"tsne": 19, "umap": 15}[method]  # 59 others hold 19 × 3
    assert layout(part, method, run=Run(seed=2)).xy.tobytes() != one.xy.tobytes()


def test_neighbours_are_the_nearest(groups):
    found = nearest(groups.unit, 7, threads=2)
    distances, rows = NearestNeighbors(n_neighbors=7).fit(groups.unit).kneighbors()
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.distances, distances, atol=1e-5)
    twins = np.repeat(np.eye(2, 3, dtype=np.float32), 5, axis=0)  # of five equals, itself is never among the four
    near = nearest(twins, 4, threads=1).rows
    assert [sorted([row, *others]) for row, others in enumerate(near.tolist())] == [list(range(5))] * 5 + [
        list(range(5, 10))
    ] * 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("rows", "metric"),
    [
        (np.random.default_rng(1).normal(size=(4, 3)), "cosine"),
        (np.repeat(np.random.default_rng(2).normal(size=(3, 4)), 20, axis=0), "cosine"),  # many equals
        (np.vstack([np.zeros((9, 4)), np.eye(4)]), "cosine"),
        (np.arange(9.0)[:, None], "euclidean"),  # one dimension
        (np.random.default_rng(3).normal(size=(20, 3)) * 1e37, "euclidean"),
    ],
)
def test_odd_rows_get_finite_places(method, rows, metric):
    found = layout(Vectors([str(row) for row in range(len(rows))], rows), method, metric=metric)
    assert found.xy.shape == (len(rows), 2)
    assert np.isfinite(found.xy).all()
    assert np.ptp(found.xy[:, 0]) > 0


def test_bad_requests(groups, monkeypatch):
    def of(rows):
        return Vectors([f"k{row}" for row in range(len(rows))], rows)

    broken = groups.matrix.copy()
    broken[3, 2] = np.nan
    for vectors, settings, message in (
        (of(np.eye(3)), {}, "at least 4 points; got 3"),
        (of(broken), {}, "the vector of 'k3'"),
        (of(np.ones((9, 3))), {"metric": "euclidean"}, "All 9 vectors are the same"),
        (of(np.outer(np.arange(1, 9), [1, 2])), {}, "All 8 vectors point the same way"),
        (of(np.zeros((9, 3))), {}, "All 9 vectors"),
        (of(np.arange(9.0)[:, None]), {}, "one number differ only in sign"),
        (groups, {"method": "som"}, "one of pca, tsne, umap; got 'som'"),
        (groups, {"metric": "dot"}, "one of cosine, euclidean; got 'dot'"),
        (groups, {"neighbors": 5}, "PCA looks at no neighbours"),
        (groups, {"method": "tsne", "neighbors": 1}, "at least 2; got 1"),
    ):
        with pytest.raises(FirthError, match=message):
            layout(vectors, **settings)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for method, package in (("tsne", "openTSNE"), ("umap", "umap-learn")):
        with pytest.raises(FirthError) as caught:
            layout(groups, method)
        assert caught.value.code == "missing_package"
        assert (caught.value.values["package"], caught.value.values["how"]) == (package, how_to_install("maps"))


# ---- kept with a model ----


def test_kept_and_found_again(model):
    assert saved_layouts(model) == {}
    made = saved_layout(model, "pca")
    found = saved_layouts(model)["words-pca"]
    assert found.xy.tobytes() == made.xy.tobytes()
    assert list(found.keys) == list(firth.load(model).vectors.keys)
    assert found.score == made.score
    firth.verify(model)
    firth.load(model)


def test_only_what_is_asked_anew_is_made_anew(model, monkeypatch):
    made = saved_layout(model, "pca", restrict=9)
    assert len(made.keys) == 9
    monkeypatch.setattr("firth.maps.layout_files.layout", lambda *_, **__: pytest.fail("made again"))
    assert saved_layout(model, "pca", restrict=9).xy.tobytes() == made.xy.tobytes()
    for other in ({"restrict": 8}, {"restrict": 9, "metric": "euclidean"}, {"restrict": 9, "run": Run(seed=2)}):
        with pytest.raises(pytest.fail.Exception, match="made again"):
            saved_layout(model, "pca", **other)


def test_other_vectors_make_it_stale(model, tmp_path):
    made = saved_layout(model, "pca")
    other = firth.SkipGram(dim=8, min_count=1, epochs=2).fit(
        [f"a{i % 7} b{i % 5} c{i % 3} d{i % 11}" for i in range(99)]
    )
    other.save(model, overwrite=True)
    assert saved_layouts(model) == {}  # replaced with the folder
    save_layout(made, model, "words")
    assert saved_layouts(model) == {}  # carried over by hand, and seen to be another's
    assert saved_layout(model, "pca").vectors == other.vectors.fingerprint()


def test_damage_is_named_and_mended(model):
    saved_layout(model, "pca")
    file = model / "maps" / "words-pca.safetensors"
    whole = file.read_bytes()
    place = whole.index(b"]}}") + 40  # among the coordinates
    for bad, message in (
        (whole[:-20], "does not fit|not a map"),
        (whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], "was changed"),
        (b"", "not a safetensors"),
    ):
        file.write_bytes(bad)
        with pytest.raises(FirthError, match=message):
            saved_layouts(model)
    with pytest.warns(firth.FirthWarning, match="made anew"):
        saved_layout(model, "pca")
    assert "words-pca" in saved_layouts(model)


def test_a_model_without_vectors_keeps_none(tmp_path):
    made = firth.Standardize().fit(firth.Table({"a": [1.0, 2.0, 3.0]})).save(tmp_path / "model")
    with pytest.raises(FirthError, match="can keep no map"):
        saved_layouts(made)
    with pytest.raises(FirthError, match="No model folder"):
        saved_layouts(tmp_path / "none")


def test_killed_while_writing_the_old_map_stays(model):
    """A loop that keeps maps with seeds 1, 2, 3, …, killed again and again: what is there is always whole."""
    environment = {**os.environ, "PYTHONPATH": str(Path(firth.__file__).parents[1])}
    for number in range(4):
        job = subprocess.Popen([sys.executable, "-c", KEEP_ON, model], stdout=subprocess.PIPE, env=environment)
        job.stdout.readline()
        time.sleep(0.01 * number)
        job.send_signal(signal.SIGKILL)
        job.wait()
        assert saved_layouts(model)["words-pca"].seed >= 1
    firth.verify(model)
