"""`Index`: worked examples, every storage dtype against the plain formula, changes, and refusals."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from near import near
from refusing import refuses, warns_code

import firth
from firth.core.extras import how_to_install
from firth.data.world import World
from firth.index import Index, reciprocal_rank_fusion, snippet
from firth.index.explain import explain
from firth.index.graph import Graph
from firth.index.snapshot import Snapshot

METRICS = ("cosine", "dot", "euclidean")
DTYPES = ("float32", "float16", "int8")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))


def blobs(rows: int, dim: int = 24, seed: int = 0) -> np.ndarray:
    """Return clustered vectors, as embeddings are."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(20, dim))[rng.integers(20, size=rows)] + rng.normal(size=(rows, dim)) / 2).astype(
        np.float32
    )


def named(rows: int, prefix: str = "k") -> list[str]:
    return [f"{prefix}{i}" for i in range(rows)]


def graph_of(index: Index) -> Graph:
    graph = index._view()[1]
    assert graph is not None
    return graph


def by_hand(matrix: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """Return the scores of all rows by the textbook formula, in float64."""
    rows, vector = matrix.astype(np.float64), query.astype(np.float64)
    if metric == "dot":
        return rows @ vector
    if metric == "euclidean":
        return np.asarray(np.sqrt(((rows - vector) ** 2).sum(axis=1)))
    return np.asarray(rows @ vector / (np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)))


# ---- definitions ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # (4, 3)·(3, 4) = 24, both of length 5; (−3, 4): 16; (6, 8) points as (3, 4) and lies 5 away.
        ("cosine", [("same", 1.0), ("twice", 1.0), ("near", 24 / 25), ("left", 7 / 25)]),
        ("dot", [("twice", 50.0), ("same", 25.0), ("near", 24.0), ("left", 7.0)]),
        ("euclidean", [("same", 0.0), ("near", math.sqrt(2)), ("twice", 5.0), ("left", 6.0)]),
    ],
)
def test_scores_of_a_worked_example(metric, expected, dtype):
    index = Index.create(dim=2, metric=metric, dtype=dtype)
    index.add(["same", "near", "left", "twice"], [[3, 4], [4, 3], [-3, 4], [6, 8]])
    hits = index.search([3, 4], 4)
    assert [hit.key for hit in hits] == [key for key, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_search_equals_the_formula_over_all_rows(metric, dtype):
    matrix, keys = blobs(1500), named(1500)
    index = Index.create(dim=24, metric=metric, dtype=dtype)
    for first in range(0, 1500, 500):  # several segments
        index.add(keys[first : first + 500], matrix[first : first + 500])
    queries = blobs(40, seed=1)
    result = index.find(queries, 10)
    for query, rows, scores in zip(queries, result.rows, result.scores, strict=True):
        true = by_hand(matrix, query, metric)
        ranks = np.argsort(true if metric == "euclidean" else -true)[:10]
        accuracy = 2e-3 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(scores, true[rows], rtol=accuracy, atol=accuracy)
        assert len(set(ranks) & set(rows)) >= (10 if dtype == "float32" else 9)


def test_far_from_the_origin_euclidean_stays_exact():
    """|x|² − 2x·q + |q|² would lose all precision here: the rows differ in the sixth digit."""
    rng = np.random.default_rng(3)
    matrix = (1000 + rng.normal(size=(300, 8)) / 100).astype(np.float32)
    index = Index.create(dim=8, metric="euclidean")
    index.add(named(300), matrix)
    true = by_hand(matrix, matrix[7], "euclidean")
    assert index.find(matrix[7:8], 20).rows[0].tolist() == np.argsort(true, kind="stable")[:20].tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_quantized_rows_do_not_change_the_results(metric):
    """float32 rows of 64 or more values have int8 codes; the results are the same as without them."""
    matrix, queries = blobs(20_000, 64), blobs(9, 64, seed=2)
    index = Index.create(dim=64, metric=metric)
    index.add(named(20_000), matrix)
    segment = index.store.state.segments[0]
    assert segment.quantized is not None
    result = index.find(queries, 10)
    blind = replace(segment, arrays={**segment.arrays, "errors": np.full(20_000, np.inf, np.float32)})
    index.store.state = Snapshot([blind], index.store.state.deleted, index.store.manifest)
    again = index.find(queries, 10)
    assert np.array_equal(result.rows, again.rows) and np.array_equal(result.scores, again.scores)
    narrow = Index.of(firth.Vectors(named(9), blobs(9, 63))).store.state.segments[0]
    assert narrow.quantized is None


def test_segments_of_earlier_versions_have_codes_without_errors():
    """They are searched without their codes, and can be merged with other segments."""
    matrix = blobs(20_000, 64)
    index = Index.create(dim=64, dtype="int8")
    index.add(named(10_000), matrix[:10_000])
    old = index.store.state.segments[0]
    arrays = {name: array for name, array in old.arrays.items() if name not in ("errors", "norms")}
    index.store.state = Snapshot([replace(old, arrays=arrays)], index.store.state.deleted, index.store.manifest)
    index.add(named(10_000, "new"), matrix[10_000:])
    for _ in range(2):
        assert index.find(matrix[[3, 19_000]], 1).rows[:, 0].tolist() == [3, 19_000]
        index.optimize()
    assert len(index.store.state.segments) == 1 and index.store.state.segments[0].quantized is None


def test_an_index_of_vectors_returns_their_neighbors():
    vectors = firth.Vectors(named(500), blobs(500))
    for metric in METRICS:
        index = Index.of(vectors, metric=metric)
        hits = index.search(vectors["k3"], 11)
        near = vectors.neighbors(vectors["k3"], 11, metric=metric)
        assert [hit.key for hit in hits] == [hit.key for hit in near]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in near], abs=1e-4)


# ---- changes ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("on_disk", [False, True])
def test_random_changes_equal_those_of_a_dictionary(tmp_path, dtype, on_disk):
    """After any sequence of add, update, delete and optimize, a search returns what a dictionary of the rows gives."""
    rng = np.random.default_rng(7)
    index = Index.create(tmp_path / "index" if on_disk else None, dim=6, metric="dot", dtype=dtype)
    truth: dict[str, tuple[np.ndarray, int]] = {}
    for number in range(40):
        fresh = [f"{number}-{i}" for i in range(rng.integers(1, 12))]
        some = list(rng.choice(sorted(truth), size=min(4, len(truth)), replace=False)) if truth else []
        change = rng.integers(5)
        if change == 0 and some:
            index.delete(some)
            for key in some:
                del truth[key]
        elif change == 1:
            index.optimize()
        else:
            keys = fresh if change < 4 else [*map(str, some), *fresh]
            matrix = rng.normal(size=(len(keys), 6)).astype(np.float16).astype(np.float32)  # exact in any dtype
            (index.add if change < 4 else index.update)(keys, matrix, {"n": [number] * len(keys)})
            truth |= {key: (row, number) for key, row in zip(keys, matrix, strict=True)}
        assert len(index) == len(truth)
        query = rng.normal(size=6).astype(np.float32)
        best = sorted(truth, key=lambda key: -float(truth[key][0] @ query))[:3]
        hits = index.search(query, 3)
        assert [hit.key for hit in hits] == best
        assert [hit.attributes["n"] for hit in hits] == [truth[key][1] for key in best]
    for key in [*truth][:5]:
        assert np.array_equal(index[key], truth[key][0]) and index.attributes(key) == {"n": truth[key][1]}
    assert "0-99" not in index and 3 not in index
    if on_disk:
        again = Index.open(tmp_path / "index")
        assert len(again) == len(truth) and np.array_equal(
            again.find(query[None], 3).rows, index.find(query[None], 3).rows
        )


def test_k_larger_than_the_index_and_an_empty_index():
    index = Index.create(dim=3)
    assert index.search([1, 2, 3], 5) == [] and index.search(np.ones((2, 3))) == [[], []]
    index.add(["a", "b"], np.eye(3)[:2])
    assert [hit.key for hit in index.search([1, 2, 3], 50)] == ["b", "a"]
    assert index.find(np.ones((1, 3)), 50).rows.shape == (1, 2)
    index.delete(["a", "b"])
    assert index.search([1, 2, 3]) == [] and len(index) == 0
    index.optimize()
    assert index.search([1, 2, 3]) == [] and index.store.state.rows == 0


def test_empty_changes_do_nothing():
    index = Index.create(dim=3)
    index.add([], np.zeros((0, 3)))
    index.update([], np.zeros((0, 3)), {"year": []})
    index.delete([])
    assert len(index) == 0 and index.search([1, 2, 3]) == []
    index.add(["a"], np.ones((1, 3)), {"text": ["words"]})
    assert len(index) == 1 and list(index.columns) == ["text"]


def test_rows_do_not_change_with_the_callers_array():
    matrix = np.eye(3, dtype=np.float32)
    index = Index.create(dim=3)
    index.add(["a", "b", "c"], matrix)
    matrix[:] = 7
    assert index["b"].tolist() == [0, 1, 0]


def test_unusual_keys():
    keys = ["", " ", "ключ", "🙂", "a\nb", "x" * 10_000]
    index = Index.create(dim=1, metric="dot")
    index.add(keys, np.arange(6)[:, None])
    assert [index[key][0] for key in keys] == list(range(6))
    assert [hit.key for hit in index.search([1])] == keys[::-1]


def test_a_full_disk_leaves_the_last_commit(tmp_path, monkeypatch):
    index = Index.create(tmp_path / "index", dim=3)
    index.add(["a"], np.ones((1, 3)))

    def full(*_: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    for where in ("firth.core.storage.dump_arrays", "firth.index.folder.write_json"):
        with monkeypatch.context() as patch:
            patch.setattr(where, full)
            with refuses("unwritable_file", reason="No space left on device"):
                index.add(["b"], np.ones((1, 3)))
        assert "b" not in index and len(Index.open(tmp_path / "index")) == 1
    index.add(["b"], np.ones((1, 3)))
    assert len(Index.open(tmp_path / "index")) == 2
    names = {path.name for path in (tmp_path / "index").iterdir()}
    assert names == {"index.json", "lock", *(f"segment-{n}.{s}" for n in (1, 2) for s in ("arrow", "safetensors"))}


def test_attributes_from_any_kind_of_table():
    index = Index.create(dim=1, metric="dot")
    index.add(["a"], [[1]], {"year": [2020], "name": ["x"]})
    index.add(["b"], [[2]], pandas.DataFrame({"name": ["y"], "year": [2021]}))  # any order
    index.add(["c"], [[3]], pyarrow.table({"year": pyarrow.array([22], pyarrow.int8()), "name": [None]}))
    assert [hit.attributes for hit in index.search([1])] == [
        {"year": 22, "name": None},
        {"year": 2021, "name": "y"},
        {"year": 2020, "name": "x"},
    ]


def test_zero_vectors_are_stored_and_never_near_under_cosine():
    index = Index.create(dim=2, dtype="int8")
    with warns_code("zero_vectors") as warned:
        index.add(["none", "a"], [[0, 0], [-1, 0]], {"text": ["only words", "other"]})
    assert len(warned) == 1 and "1 vectors are zero ('none', …)" in str(warned[0])
    assert [hit.key for hit in index.search([1, 0], 5)] == ["a"] and "none" in index
    assert [hit.key for hit in index.search("words", mode="words")] == ["none"]
    plain = Index.create(dim=2, metric="dot")
    plain.add(["none", "a"], [[0, 0], [-1, 0]])
    assert [hit.key for hit in plain.search([1, 0], 5)] == ["none", "a"]


# ---- approximate ----


@pytest.mark.parametrize(
    ("metric", "dim"), [*((metric, 24) for metric in METRICS), ("cosine", 65)]
)  # 65: with int8 codes
def test_the_graph_has_high_recall(tmp_path, metric, dim):
    matrix, queries = np.split(blobs(6100, dim), [6000])
    index = Index.create(tmp_path / "index", dim=dim, metric=metric)
    index.add(named(6000), matrix, {"n": np.arange(6000)})
    index.optimize(approximate=True)
    assert graph_of(index) is not None

    def recall(opened: Index, **options: Any) -> float:
        near, exact = (opened.find(queries, 10, exact=exact, **options).rows for exact in (False, True))
        return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(near, exact, strict=True)]))

    assert recall(index) >= 0.98
    index.add(named(500, "later"), blobs(500, dim, seed=5), {"n": np.arange(6000, 6500)})  # scanned
    index.delete(named(300))
    assert recall(index) >= 0.98
    assert not {int(row) for row in index.find(queries, 10).rows.ravel()} & set(range(300))
    assert recall(index, where="n > 3000") >= 0.97  # a graph that is built by threads differs slightly each time
    assert recall(index, where="n in (400, 401, 402, 6100)") == 1.0  # too few for the graph: scanned
    index.close()
    opened = Index.open(tmp_path / "index")
    assert np.array_equal(opened.find(queries, 10).rows, index.find(queries, 10).rows)
    with opened:
        opened.optimize(approximate=True)  # drops rows, so the graph is rebuilt
        assert graph_of(opened).rows == 6200 and recall(opened) >= 0.98


def test_the_graph_grows_with_the_index(tmp_path):
    index = Index.create(tmp_path / "index", dim=24)
    index.add(named(1000), blobs(1000))
    index.optimize(approximate=True)
    index.add(named(500, "later"), blobs(500, seed=5))
    assert graph_of(index).rows == 1000
    index.optimize(approximate=True)
    assert graph_of(index).rows == graph_of(index).index.size == 1500
    assert len(list((tmp_path / "index").glob("*.usearch"))) == 1


@pytest.mark.parametrize("how", ["altered", "missing", "another user's", "of another index"])
def test_a_graph_without_a_valid_seal_is_never_opened(tmp_path, monkeypatch, how):
    folder = tmp_path / "index"
    with Index.create(folder, dim=24) as index:
        index.add(named(800), blobs(800))
        index.optimize(approximate=True)
    (path,) = folder.glob("*.usearch")
    if how == "altered":
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    elif how == "missing":
        path.unlink()
    elif how == "of another index":
        with Index.create(tmp_path / "second", dim=24) as second:
            second.add(named(800), blobs(800, seed=9))
            second.optimize(approximate=True)
        path.write_bytes(next((tmp_path / "second").glob("*.usearch")).read_bytes())
        manifest = json.loads((folder / "index.json").read_text())
        record = second.store.manifest["graph"]
        (folder / "index.json").write_text(json.dumps({**manifest, "graph": {**record, "file": path.name}}))
    else:
        monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "another"))
    opened = Index.open(folder)
    with warns_code("exact_search"):
        result = opened.find(blobs(5, seed=2), 3)
    assert opened._graph is None and np.array_equal(result.rows, opened.find(blobs(5, seed=2), 3, exact=True).rows)
    opened.find(blobs(5, seed=2), 3)  # warns only once
    with opened:
        opened.optimize(approximate=True)
    assert Index.open(folder)._view()[1] is not None


def test_without_usearch(monkeypatch):
    monkeypatch.setattr("firth.index.graph.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("firth.index.index.GRAPH_VALUES", 10)
    index = Index.create(dim=24)
    index.add(named(20), blobs(20))
    with warns_code("missing_package") as warned:
        index.optimize()
    assert "20 rows" in str(warned[0]) and how_to_install("scale") in str(warned[0])
    with refuses("missing_package", how=how_to_install("scale")):
        index.optimize(approximate=True)


# ---- words ----


TEXTS = ["the cat sat on the mat", "a dog", "the dog and the cat", "Mats, mats!", None]


def test_bm25_of_a_worked_example():
    """dog: 2 of 5 rows, idf ln(1 + 3.5/2.5); average length (6 + 2 + 5 + 2 + 0)/5 = 3."""
    index = Index.create(dim=1)
    index.add(named(5), np.ones((5, 1)), {"text": TEXTS})
    idf = math.log(1 + 3.5 / 2.5)
    expected = {length: idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / 3)) for length in (2, 5)}
    hits = index.search("DOG", mode="words")
    assert [(hit.key, hit.score) for hit in hits] == [
        ("k1", near(expected[2], rel=1e-6)),
        ("k2", near(expected[5], rel=1e-6)),
    ]
    assert index.search("nothing of this", mode="words") == []


def test_word_search_does_not_depend_on_how_rows_were_added(tmp_path):
    """Rows are added at once, or in many small parts that are merged, after other rows were deleted."""
    texts = list(World(seed=1).sentences(300))
    matrix = np.ones((300, 1))
    whole, parts = Index.create(dim=1), Index.create(tmp_path / "index", dim=1)
    whole.add(named(300), matrix, {"text": texts})
    for first in range(0, 300, 20):
        parts.add(named(300)[first : first + 20], matrix[:20], {"text": texts[first : first + 20]})
    parts.add(["x"], [[1]], {"text": ["king river"]})
    parts.delete(["x"])
    parts.optimize()
    for query in (texts[7], " ".join(texts[i].split()[0] for i in (3, 30, 300 - 1))):
        a, b = (index.search(query, 20, mode="words") for index in (whole, parts))
        assert [(hit.key, round(hit.score, 4)) for hit in a] == [(hit.key, round(hit.score, 4)) for hit in b] and a


def test_deleted_rows_do_not_count_in_bm25():
    """They count neither for the document frequency nor for the average length, before and after `optimize`."""
    index = Index.create(dim=1)
    index.add(named(5), np.ones((5, 1)), {"text": TEXTS})
    index.add(named(5, "gone"), np.ones((5, 1)), {"text": ["dog dog dog and many words more"] * 5})
    index.update(["k0"], [[1]], {"text": [TEXTS[0]]})
    index.delete(named(5, "gone"))
    whole = Index.create(dim=1)
    whole.add(named(5), np.ones((5, 1)), {"text": TEXTS})
    right = {hit.key: pytest.approx(hit.score, rel=1e-6) for hit in whole.search("the dog", mode="words")}
    assert {hit.key: hit.score for hit in index.search("the dog", mode="words")} == right
    assert len(right) == 3


def test_rank_fusion_of_a_worked_example():
    assert reciprocal_rank_fusion([[7, 8, 9], [8, 5]], 3) == [(8, 1 / 62 + 1 / 61), (7, 1 / 61), (5, 1 / 62)]
    assert reciprocal_rank_fusion([[], []], 3) == []


def test_out_of_vocabulary_words_match_in_the_mode_both():
    """A word without a vector cannot match by similarity; in the mode "both", the text with it comes first."""
    texts = [*World(seed=2).sentences(2000)]
    model = firth.SkipGram(dim=20, epochs=1).fit(texts, firth.Run(threads=1))
    index = Index.create(dim=20, model=model)
    documents = [*texts[:200], texts[5] + " zzyzx"]
    index.add(named(201), model.embed(documents), {"text": documents})
    query = texts[100] + " zzyzx"
    assert index.search(query, 1, mode="both")[0].key in ("k200", "k100")
    assert [hit.key for hit in index.search("zzyzx", 1, mode="both")] == ["k200"]
    with refuses("zero_vector", number=1):
        index.search("zzyzx", 1)
    batch = index.search([query, "zzyzx"], 2, mode="both")
    assert len(batch) == 2 and batch[1][0].key == "k200"


@pytest.mark.parametrize("metric", METRICS)
def test_a_query_of_out_of_vocabulary_words_is_refused(metric):
    """Its vector is zero: for dot all rows would be equally near, for euclidean the shortest would be the nearest."""
    texts = [*World(seed=2).sentences(500)]
    model = firth.SkipGram(dim=5, epochs=1).fit(texts, firth.Run(threads=1))
    index = Index.create(dim=5, model=model, metric=metric)
    documents = [*texts[:20], texts[5] + " zzyzx"]
    index.add(named(21), model.embed(documents), {"text": documents})
    assert [hit.key for hit in index.search("zzyzx", 5, mode="both")] == ["k20"]
    with refuses("zero_vector", number=2):
        index.search([texts[0], "zzyzx"], 5)


def test_contributions_of_words_add_up_to_the_cosine():
    texts = list(World(seed=2).sentences(2000))
    for method in (firth.SkipGram(dim=20, epochs=1), firth.FastText(dim=20, epochs=1, buckets=1000)):
        model = method.fit(texts, firth.Run(threads=1))
        shares = explain(model, texts[3], texts[8], k=10_000)
        cosine = firth.similarity(*model.embed([texts[3], texts[8]]))
        assert sum(share.share for share in shares) == pytest.approx(cosine, abs=1e-5)
        assert explain(model, texts[3], texts[3], k=3)[0].share > 0
        assert explain(model, "", texts[3]) == []
    with refuses("unsupported_model", method="lsa"):
        explain(firth.LSA(dim=5).fit(texts, firth.Run(threads=1)), texts[3], texts[8])


def test_snippets():
    text = "word " * 40 + "needle " + "word " * 40
    assert snippet("short\n text") == "short text" and snippet(None) == ""
    assert snippet(text).startswith("word") and snippet(text).endswith("…")
    assert "needle" in snippet(text, ["needle"]) and snippet(text, ["needle"]).startswith("…")


# ---- refusals ----


def small_index() -> Index:
    index = Index.create(dim=3)
    index.add(["a", "b"], np.eye(3)[:2], {"year": [1, 2]})
    return index


NOT_A_TABLE = "cannot mix list and non-list, non-null values"  # Arrow's words
BAD_ROWS: dict[str, Any] = {
    "wrong dimension": ((["c"], [[1, 2]], {"year": [1]}), "shape_mismatch", {"dim": 3, "shape": "1 × 2"}),
    "one vector": ((["c"], [1, 2, 3], {"year": [1]}), "shape_mismatch", {"dim": 3, "shape": "3"}),
    "NaN": ((["c", "d"], [[1, 2, 3], [1, np.nan, 3]], {"year": [1, 2]}), "non_finite", {"key": "d", "row": 2}),
    "infinity": ((["c"], [[1, np.inf, 3]], {"year": [1]}), "non_finite", {"key": "c", "row": 1}),
    "too few keys": ((["c"], np.ones((2, 3)), {"year": [1, 2]}), "shape_mismatch", {"n_keys": 1, "n_rows": 2}),
    "a key twice": ((["c", "c"], np.ones((2, 3)), {"year": [1, 2]}), "duplicate_name", {"key": "c", "count": 2}),
    "a key again": ((["a"], np.ones((1, 3)), {"year": [1]}), "duplicate_name", {"examples": "'a'", "count": 1}),
    "one key": (("c", np.ones((1, 3)), {"year": [1]}), "invalid_type", {"got": "str"}),
    "a number as key": (([3], np.ones((1, 3)), {"year": [1]}), "invalid_type", {"got": 3, "row_type": "int"}),
    "no attributes": ((["c"], np.ones((1, 3))), "shape_mismatch", {"expected": "year", "got": "none"}),
    "other attributes": (
        (["c"], np.ones((1, 3)), {"month": [1]}),
        "shape_mismatch",
        {"expected": "year", "got": "month"},
    ),
    "attributes of another type": (
        (["c"], np.ones((1, 3)), {"year": ["x"]}),
        "invalid_type",
        {"name": "year", "expected": "int64", "got": "string"},
    ),
    "too many attributes": ((["c"], np.ones((1, 3)), {"year": [1, 2]}), "shape_mismatch", {"n_values": 2, "n_keys": 1}),
    "an attribute named key": (
        (["c"], np.ones((1, 3)), {"year": [1], "key": [1]}),
        "duplicate_name",
        {"key": "key", "got": "year, key"},
    ),
    "no table": ((["c"], np.ones((1, 3)), {"year": [[1], 2]}), "shape_mismatch", {"reason": NOT_A_TABLE}),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_invalid_rows_are_refused(name):
    arguments, code, values = BAD_ROWS[name]
    index = small_index()
    with refuses(code, **values):
        index.add(*arguments)
    assert len(index) == 2 and index.store.manifest["commit"] == 1


def test_values_too_large_for_half_precision_are_refused():
    index = Index.create(dim=1, dtype="float16")
    with refuses("out_of_range", key="b") as caught:
        index.add(["a", "b"], [[65_504], [65_600]])
    assert "65,504" in caught.value.template


def test_values_too_small_for_half_precision_are_refused():
    index = Index.create(dim=2, dtype="float16")
    with refuses("out_of_range", key="b") as caught:
        index.add(["a", "b"], [[1, 1e-9], [1e-9, 1e-9]])
    assert "3e-8" in caught.value.template


BAD_QUERIES: dict[str, Any] = {
    "wrong dimension": ({"query": [1, 2]}, "shape_mismatch", {"dim": 3, "shape": "1 × 2"}),
    "NaN": ({"query": [1, np.nan, 3]}, "non_finite", {}),
    "too large": ({"query": [1, 1e300, 3]}, "non_finite", {}),
    "rows of two lengths": ({"query": [[1, 2, 3], [1, 2]]}, "invalid_type", {"what": "A query (a text, or 3 values)"}),
    "zero": ({"query": [0, 0, 0]}, "zero_vector", {"number": 1}),
    "zero in a batch": ({"query": [[1, 1, 1], [0, 0, 0]]}, "zero_vector", {"number": 2}),
    "k": ({"query": [1, 2, 3], "k": 0}, "invalid_value", {"option": "k", "got": 0}),
    "mode": (
        {"query": "x", "mode": "magic"},
        "invalid_value",
        {"option": "mode", "choices": "vector, words, both", "got": "magic"},
    ),
    "a vector as words": ({"query": [1, 2, 3], "mode": "words"}, "conflicting_options", {"mode": "words"}),
    "no texts": ({"query": "x", "mode": "words"}, "unknown_column", {"column": "text"}),
    "no model": ({"query": "x"}, "missing_model", {"hint": ""}),
}


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_invalid_queries_are_refused(name):
    arguments, code, values = BAD_QUERIES[name]
    with refuses(code, **values):
        small_index().search(**arguments)


def test_invalid_settings_are_refused():
    for settings, values in (
        ({"dim": 0}, {"option": "Index.dim", "most": 4_194_304, "got": 0}),
        ({"dim": 1 << 40}, {"option": "Index.dim", "most": 4_194_304}),
        ({"dim": 3, "metric": "angle"}, {"option": "Index.metric", "choices": "cosine, dot, euclidean"}),
        ({"dim": 3, "dtype": "int4"}, {"option": "Index.dtype", "choices": "float32, float16, int8"}),
    ):
        with refuses("invalid_value", **values):
            Index.create(**settings)
    with refuses("unknown_key", missing="z", n_missing=1, n_keys=2):
        small_index().delete(["a", "z"])
    with refuses("unknown_key", key="z"):
        small_index()["z"]


def test_another_model_is_refused_and_both_are_named(tmp_path):
    texts = list(World(seed=2).sentences(500))
    one, two = (firth.SkipGram(dim=5, epochs=1).fit(texts, firth.Run(seed=seed, threads=1)) for seed in (1, 2))
    with Index.create(tmp_path / "index", dim=5, model=one, model_path="models/one") as index:
        index.add(named(500), one.embed(texts), {"text": texts})
    assert Index.open(tmp_path / "index", one).search(texts[0], 1)[0].score > 0.99
    names = {"expected_method": "skipgram", "path": ", models/one", "method": "skipgram"}
    with refuses("model_mismatch", where=tmp_path / "index", **names) as caught:
        Index.open(tmp_path / "index", two)
    hashes = [caught.value.values[name] for name in ("expected_fingerprint", "fingerprint")]
    assert hashes[0] != hashes[1] and all(re.fullmatch(r"[0-9a-f]{12}", each) for each in hashes)
    Index.of(one.vectors, tmp_path / "plain")
    with refuses("model_mismatch", where=tmp_path / "plain") as caught:
        Index.open(tmp_path / "plain", one)
    assert "expected_method" not in caught.value.values
