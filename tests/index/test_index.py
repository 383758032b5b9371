"""`Index`: definitions by hand, every way of storing against the plain formula, changes, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

import firth
from firth import FirthError, FirthWarning
from firth.core.extras import how_to_install
from firth.data.world import World
from firth.index import Index, fused, snippet
from firth.index.explain import explain
from firth.index.snapshot import Snapshot

METRICS = ("cosine", "dot", "euclidean")
NUMBERS = ("float32", "float16", "int8")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))


def blobs(rows: int, dim: int = 24, seed: int = 0) -> np.ndarray:
    """Vectors in clusters, as embeddings are."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(20, dim))[rng.integers(20, size=rows)] + rng.normal(size=(rows, dim)) / 2).astype(
        np.float32
    )


def named(rows: int, prefix: str = "k") -> list[str]:
    return [f"{prefix}{i}" for i in range(rows)]


def by_hand(matrix: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """The textbook's scores of all rows, in doubles."""
    rows, asked = matrix.astype(np.float64), query.astype(np.float64)
    if metric == "dot":
        return rows @ asked
    if metric == "euclidean":
        return np.sqrt(((rows - asked) ** 2).sum(axis=1))
    return rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))


# ---- definitions ----


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # (4, 3)·(3, 4) = 24, both of length 5; (−3, 4): 16; (6, 8) points as (3, 4) and lies 5 away.
        ("cosine", [("same", 1.0), ("twice", 1.0), ("near", 24 / 25), ("left", 7 / 25)]),
        ("dot", [("twice", 50.0), ("same", 25.0), ("near", 24.0), ("left", 7.0)]),
        ("euclidean", [("same", 0.0), ("near", math.sqrt(2)), ("twice", 5.0), ("left", 6.0)]),
    ],
)
def test_definitions_by_hand(metric, expected, numbers):
    index = Index.create(dim=2, metric=metric, numbers=numbers)
    index.add(["same", "near", "left", "twice"], [[3, 4], [4, 3], [-3, 4], [6, 8]])
    hits = index.search([3, 4], 4)
    assert [hit.key for hit in hits] == [key for key, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_equals_the_formula_over_all_rows(metric, numbers):
    matrix, keys = blobs(1500), named(1500)
    index = Index.create(dim=24, metric=metric, numbers=numbers)
    for first in range(0, 1500, 500):  # several segments
        index.add(keys[first : first + 500], matrix[first : first + 500])
    queries = blobs(40, seed=1)
    found = index.find(queries, 10)
    for query, rows, scores in zip(queries, found.rows, found.scores, strict=True):
        true = by_hand(matrix, query, metric)
        ranks = np.argsort(true if metric == "euclidean" else -true)[:10]
        accuracy = 2e-3 if numbers == "float16" else 1e-5
        np.testing.assert_allclose(scores, true[rows], rtol=accuracy, atol=accuracy)
        assert len(set(ranks) & set(rows)) >= (10 if numbers == "float32" else 9)


def test_far_from_the_origin_euclidean_stays_exact():
    """|x|² − 2x·q + |q|² would lose everything here: the rows differ in the sixth digit."""
    rng = np.random.default_rng(3)
    matrix = (1000 + rng.normal(size=(300, 8)) / 100).astype(np.float32)
    index = Index.create(dim=8, metric="euclidean")
    index.add(named(300), matrix)
    true = by_hand(matrix, matrix[7], "euclidean")
    assert index.find(matrix[7:8], 20).rows[0].tolist() == np.argsort(true, kind="stable")[:20].tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_bytes_rule_out_only_what_is_not_near(metric):
    """float32 keeps bytes from 64 numbers a row on; the answers are those of the rows without them."""
    matrix, queries = blobs(20_000, 64), blobs(9, 64, seed=2)
    index = Index.create(dim=64, metric=metric)
    index.add(named(20_000), matrix)
    segment = index.store.state.segments[0]
    assert segment.sketch is not None
    found = index.find(queries, 10)
    blind = replace(segment, arrays={**segment.arrays, "errors": np.full(20_000, np.inf, np.float32)})
    index.store.state = Snapshot([blind], index.store.state.deleted, index.store.manifest)
    assert all(np.array_equal(a, b) for a, b in zip(found, index.find(queries, 10), strict=True))
    narrow = Index.of(firth.Vectors(named(9), blobs(9, 63))).store.state.segments[0]
    assert narrow.sketch is None


def test_segments_of_earlier_versions_have_bytes_without_errors():
    """They are searched without bytes, and become one segment with others."""
    matrix = blobs(20_000, 64)
    index = Index.create(dim=64, numbers="int8")
    index.add(named(10_000), matrix[:10_000])
    old = index.store.state.segments[0]
    kept = {name: array for name, array in old.arrays.items() if name not in ("errors", "norms")}
    index.store.state = Snapshot([replace(old, arrays=kept)], index.store.state.deleted, index.store.manifest)
    index.add(named(10_000, "new"), matrix[10_000:])
    for _ in range(2):
        assert index.find(matrix[[3, 19_000]], 1).rows[:, 0].tolist() == [3, 19_000]
        index.optimize()
    assert len(index.store.state.segments) == 1 and index.store.state.segments[0].sketch is None


def test_of_vectors_equals_their_neighbors():
    vectors = firth.Vectors(named(500), blobs(500))
    for metric in METRICS:
        index = Index.of(vectors, metric=metric)
        hits = index.search(vectors["k3"], 11)
        near = vectors.neighbors(vectors["k3"], 11, metric=metric)
        assert [hit.key for hit in hits] == [hit.key for hit in near]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in near], abs=1e-4)


# ---- changes ----


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_random_changes_equal_a_dictionary(tmp_path, numbers, on_disk):
    """Whatever is added, updated, deleted and tidied up: a search finds what a look at the dictionary finds."""
    rng = np.random.default_rng(7)
    index = Index.create(tmp_path / "index" if on_disk else None, dim=6, metric="dot", numbers=numbers)
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
            matrix = rng.normal(size=(len(keys), 6)).astype(np.float16).astype(np.float32)  # any store holds these
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


def test_more_asked_than_there_is_and_nothing_there():
    index = Index.create(dim=3)
    assert index.search([1, 2, 3], 5) == [] and index.search(np.ones((2, 3))) == [[], []]
    index.add(["a", "b"], np.eye(3)[:2])
    assert [hit.key for hit in index.search([1, 2, 3], 50)] == ["b", "a"]
    assert index.find(np.ones((1, 3)), 50).rows.shape == (1, 2)
    index.delete(["a", "b"])
    assert index.search([1, 2, 3]) == [] and len(index) == 0
    index.optimize()
    assert index.search([1, 2, 3]) == [] and index.store.state.rows == 0


def test_nothing_added_changes_nothing():
    index = Index.create(dim=3)
    index.add([], np.zeros((0, 3)))
    index.update([], np.zeros((0, 3)), {"year": []})
    index.delete([])
    assert len(index) == 0 and index.search([1, 2, 3]) == []
    index.add(["a"], np.ones((1, 3)), {"text": ["words"]})
    assert len(index) == 1 and list(index.columns) == ["text"]


def test_rows_do_not_change_with_the_array_they_came_from():
    matrix = np.eye(3, dtype=np.float32)
    index = Index.create(dim=3)
    index.add(["a", "b", "c"], matrix)
    matrix[:] = 7
    assert index["b"].tolist() == [0, 1, 0]


def test_odd_keys():
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
            with pytest.raises(FirthError, match="No space left on device"):
                index.add(["b"], np.ones((1, 3)))
        assert "b" not in index and len(Index.open(tmp_path / "index")) == 1
    index.add(["b"], np.ones((1, 3)))
    assert len(Index.open(tmp_path / "index")) == 2
    names = {path.name for path in (tmp_path / "index").iterdir()}
    assert names == {"index.json", "lock", *(f"segment-{n}.{s}" for n in (1, 2) for s in ("arrow", "safetensors"))}


def test_attributes_of_any_source():
    index = Index.create(dim=1, metric="dot")
    index.add(["a"], [[1]], {"year": [2020], "name": ["x"]})
    index.add(["b"], [[2]], pandas.DataFrame({"name": ["y"], "year": [2021]}))  # any order
    index.add(["c"], [[3]], pyarrow.table({"year": pyarrow.array([22], pyarrow.int8()), "name": [None]}))
    assert [hit.attributes for hit in index.search([1])] == [
        {"year": 22, "name": None},
        {"year": 2021, "name": "y"},
        {"year": 2020, "name": "x"},
    ]


def test_zero_rows_under_cosine_are_kept_and_never_near():
    index = Index.create(dim=2, numbers="int8")
    with pytest.warns(FirthWarning, match=r"1 vectors are zero \('none', …\): without a direction"):
        index.add(["none", "a"], [[0, 0], [-1, 0]], {"text": ["only words", "other"]})
    assert [hit.key for hit in index.search([1, 0], 5)] == ["a"] and "none" in index
    assert [hit.key for hit in index.search("words", mode="words")] == ["none"]
    plain = Index.create(dim=2, metric="dot")
    plain.add(["none", "a"], [[0, 0], [-1, 0]])
    assert [hit.key for hit in plain.search([1, 0], 5)] == ["none", "a"]


# ---- approximate ----


@pytest.mark.parametrize(("metric", "dim"), [*((metric, 24) for metric in METRICS), ("cosine", 65)])  # 65: by bytes
def test_graph_finds_what_a_scan_finds(tmp_path, metric, dim):
    matrix, queries = np.split(blobs(6100, dim), [6000])
    index = Index.create(tmp_path / "index", dim=dim, metric=metric)
    index.add(named(6000), matrix, {"n": np.arange(6000)})
    index.optimize(approximate=True)
    assert index._view()[1] is not None

    def recall(opened: Index, **options: Any) -> float:
        near, exact = (opened.find(queries, 10, exact=exact, **options).rows for exact in (False, True))
        return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(near, exact, strict=True)]))

    assert recall(index) >= 0.98
    index.add(named(500, "later"), blobs(500, dim, seed=5), {"n": np.arange(6000, 6500)})  # scanned
    index.delete(named(300))
    assert recall(index) >= 0.98
    assert not {int(row) for row in index.find(queries, 10).rows.ravel()} & set(range(300))
    assert recall(index, where="n > 3000") >= 0.97  # threads build a graph a little otherwise each time
    assert recall(index, where="n in (400, 401, 402, 6100)") == 1.0  # too few for the graph: scanned
    index.close()
    opened = Index.open(tmp_path / "index")
    assert np.array_equal(opened.find(queries, 10).rows, index.find(queries, 10).rows)
    with opened:
        opened.optimize(approximate=True)  # drops rows: built anew
        assert opened._view()[1].rows == 6200 and recall(opened) >= 0.98


def test_graph_grows_with_the_index(tmp_path):
    index = Index.create(tmp_path / "index", dim=24)
    index.add(named(1000), blobs(1000))
    index.optimize(approximate=True)
    index.add(named(500, "later"), blobs(500, seed=5))
    assert index._view()[1].rows == 1000
    index.optimize(approximate=True)
    assert index._view()[1].rows == index._view()[1].index.size == 1500
    assert len(list((tmp_path / "index").glob("*.usearch"))) == 1


@pytest.mark.parametrize("how", ["altered", "missing", "another user's", "of another index"])
def test_a_graph_from_elsewhere_is_never_opened(tmp_path, monkeypatch, how):
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
        theirs = second.store.manifest["graph"]
        (folder / "index.json").write_text(json.dumps({**manifest, "graph": {**theirs, "file": path.name}}))
    else:
        monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "another"))
    opened = Index.open(folder)
    with pytest.warns(FirthWarning, match="not used. Search is exact until"):
        found = opened.find(blobs(5, seed=2), 3)
    assert opened._graph is None and np.array_equal(found.rows, opened.find(blobs(5, seed=2), 3, exact=True).rows)
    opened.find(blobs(5, seed=2), 3)  # told once
    with opened:
        opened.optimize(approximate=True)
    assert Index.open(folder)._view()[1] is not None


def test_without_usearch(monkeypatch):
    monkeypatch.setattr("firth.index.graph.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("firth.index.index.EXACT_NUMBERS", 10)
    index = Index.create(dim=24)
    index.add(named(20), blobs(20))
    with pytest.warns(FirthWarning, match="20 rows are searched exactly") as warned:
        index.optimize()
    assert how_to_install("scale") in str(warned[0].message)
    with pytest.raises(FirthError) as caught:
        index.optimize(approximate=True)
    assert (caught.value.code, caught.value.values["how"]) == ("missing_package", how_to_install("scale"))


# ---- words ----


TEXTS = ["the cat sat on the mat", "a dog", "the dog and the cat", "Mats, mats!", None]


def test_bm25_by_hand():
    """dog: 2 of 5 rows, idf ln(1 + 3.5/2.5); average length (6 + 2 + 5 + 2 + 0)/5 = 3."""
    index = Index.create(dim=1)
    index.add(named(5), np.ones((5, 1)), {"text": TEXTS})
    idf = math.log(1 + 3.5 / 2.5)
    expected = {length: idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / 3)) for length in (2, 5)}
    hits = index.search("DOG", mode="words")
    assert [(hit.key, hit.score) for hit in hits] == [
        ("k1", pytest.approx(expected[2], rel=1e-6)),
        ("k2", pytest.approx(expected[5], rel=1e-6)),
    ]
    assert index.search("nothing of this", mode="words") == []


def test_words_are_the_same_however_rows_came(tmp_path):
    """In one go, in many small parts that were merged, and after deletions of others."""
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


def test_deleted_rows_do_not_count_among_the_words():
    """Neither how many rows have a word nor how long rows are: a search is the same before `optimize` and after."""
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


def test_fusion_by_hand():
    assert fused([[7, 8, 9], [8, 5]], 3) == [(8, 1 / 62 + 1 / 61), (7, 1 / 61), (5, 1 / 62)]
    assert fused([[], []], 3) == []


def test_exact_words_are_found_where_vectors_do_not():
    """A name that the model never met has no vector: by nearness a text with it is lost, by both it comes first."""
    texts = [*World(seed=2).sentences(2000)]
    model = firth.SkipGram(dim=20, epochs=1).fit(texts, firth.Run(threads=1))
    index = Index.create(dim=20, model=model)
    documents = [*texts[:200], texts[5] + " zzyzx"]
    index.add(named(201), model.embed(documents), {"text": documents})
    query = texts[100] + " zzyzx"
    assert index.search(query, 1, mode="both")[0].key in ("k200", "k100")
    assert [hit.key for hit in index.search("zzyzx", 1, mode="both")] == ["k200"]
    with pytest.raises(FirthError, match="no word of it may be known"):
        index.search("zzyzx", 1)
    batch = index.search([query, "zzyzx"], 2, mode="both")
    assert len(batch) == 2 and batch[1][0].key == "k200"


@pytest.mark.parametrize("metric", METRICS)
def test_a_text_of_unknown_words_is_near_to_nothing(metric):
    """Its vector is zero: under dot every row would be as near, under euclidean the shortest the nearest."""
    texts = [*World(seed=2).sentences(500)]
    model = firth.SkipGram(dim=5, epochs=1).fit(texts, firth.Run(threads=1))
    index = Index.create(dim=5, model=model, metric=metric)
    documents = [*texts[:20], texts[5] + " zzyzx"]
    index.add(named(21), model.embed(documents), {"text": documents})
    assert [hit.key for hit in index.search("zzyzx", 5, mode="both")] == ["k20"]
    with pytest.raises(FirthError, match=r"The query \(number 2\) .* no word of it may be known"):
        index.search([texts[0], "zzyzx"], 5)


def test_shares_of_words_add_up_to_the_cosine():
    texts = list(World(seed=2).sentences(2000))
    for method in (firth.SkipGram(dim=20, epochs=1), firth.FastText(dim=20, epochs=1, buckets=1000)):
        model = method.fit(texts, firth.Run(threads=1))
        shares = explain(model, texts[3], texts[8], k=10_000)
        cosine = firth.similarity(*model.embed([texts[3], texts[8]]))
        assert sum(share.share for share in shares) == pytest.approx(cosine, abs=1e-5)
        assert explain(model, texts[3], texts[3], k=3)[0].share > 0
        assert explain(model, "", texts[3]) == []
    with pytest.raises(FirthError, match="lsa makes texts into vectors otherwise"):
        explain(firth.LSA(dim=5).fit(texts, firth.Run(threads=1)), texts[3], texts[8])


def test_snippets():
    text = "word " * 40 + "needle " + "word " * 40
    assert snippet("short\n text") == "short text" and snippet(None) == ""
    assert snippet(text).startswith("word") and snippet(text).endswith("…")
    assert "needle" in snippet(text, ["needle"]) and snippet(text, ["needle"]).startswith("…")


# ---- what is refused ----


def made() -> Index:
    index = Index.create(dim=3)
    index.add(["a", "b"], np.eye(3)[:2], {"year": [1, 2]})
    return index


BAD_ROWS = {
    "wrong dimension": ((["c"], [[1, 2]], {"year": [1]}), "vectors of 3 numbers; got a matrix of 1 × 2"),
    "one vector": ((["c"], [1, 2, 3], {"year": [1]}), "vectors of 3 numbers; got a matrix of 3"),
    "NaN": ((["c", "d"], [[1, 2, 3], [1, np.nan, 3]], {"year": [1, 2]}), r"vector of 'd' \(row 2\) holds NaN"),
    "infinity": ((["c"], [[1, np.inf, 3]], {"year": [1]}), "holds NaN or infinity"),
    "too few keys": ((["c"], np.ones((2, 3)), {"year": [1, 2]}), "1 keys for 2 rows"),
    "a key twice": ((["c", "c"], np.ones((2, 3)), {"year": [1, 2]}), "'c' stands 2 times"),
    "a key again": ((["a"], np.ones((1, 3)), {"year": [1]}), r"1 keys are in the index already \('a'\); update"),
    "one key": (("c", np.ones((1, 3)), {"year": [1]}), "got one key"),
    "a number as key": (([3], np.ones((1, 3)), {"year": [1]}), r"Keys are texts; got 3 \(int\)"),
    "no attributes": ((["c"], np.ones((1, 3))), "it has year; got none"),
    "other attributes": ((["c"], np.ones((1, 3)), {"month": [1]}), "it has year; got month"),
    "attributes of another kind": ((["c"], np.ones((1, 3)), {"year": ["x"]}), "year holds int64 in the index"),
    "too many attributes": ((["c"], np.ones((1, 3)), {"year": [1, 2]}), "one value a row; got 2 for 1"),
    "an attribute named key": ((["c"], np.ones((1, 3)), {"year": [1], "key": [1]}), "none of them 'key'"),
    "no table": ((["c"], np.ones((1, 3)), {"year": [[1], 2]}), "lists by name, one value for each row"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_are_refused(name):
    arguments, rule = BAD_ROWS[name]
    index = made()
    with pytest.raises(FirthError, match=rule):
        index.add(*arguments)
    assert len(index) == 2 and index.store.manifest["commit"] == 1


def test_numbers_too_large_for_half_precision():
    index = Index.create(dim=1, numbers="float16")
    with pytest.raises(FirthError, match="'b' has numbers beyond 65,504"):
        index.add(["a", "b"], [[65_504], [65_600]])


def test_numbers_too_small_for_half_precision():
    index = Index.create(dim=2, numbers="float16")
    with pytest.raises(FirthError, match="'b' has numbers below 3e-8 only"):
        index.add(["a", "b"], [[1, 1e-9], [1e-9, 1e-9]])


BAD_QUERIES = {
    "wrong dimension": ({"query": [1, 2]}, "vectors of 3 numbers; the query has the shape 1 × 2"),
    "NaN": ({"query": [1, np.nan, 3]}, "The query holds NaN"),
    "too large": ({"query": [1, 1e300, 3]}, "numbers beyond what 32 bits hold"),
    "rows of two lengths": (
        {"query": [[1, 2, 3], [1, 2]]},
        "A query .a text, or 3 numbers. must be real numbers in rows of equal length",
    ),
    "zero": ({"query": [0, 0, 0]}, "zero vector, which has no direction"),
    "zero in a batch": ({"query": [[1, 1, 1], [0, 0, 0]]}, r"The query \(number 2\) is a zero vector"),
    "k": ({"query": [1, 2, 3], "k": 0}, "k must be at least 1; got 0"),
    "mode": ({"query": "x", "mode": "magic"}, "mode must be one of vector, words, both; got 'magic'"),
    "a vector as words": ({"query": [1, 2, 3], "mode": "words"}, "give a text, not a vector"),
    "no texts": ({"query": "x", "mode": "words"}, "no column 'text' to search for words"),
    "no model": ({"query": "x"}, "with the model that made the vectors"),
}


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_queries_that_are_refused(name):
    arguments, rule = BAD_QUERIES[name]
    with pytest.raises(FirthError, match=rule):
        made().search(**arguments)


def test_settings_that_are_refused():
    for settings, rule in (
        ({"dim": 0}, r"dim must be a whole number from 1 to 4,194,304; got 0"),
        ({"dim": 1 << 40}, r"dim must be a whole number from 1 to 4,194,304"),
        ({"dim": 3, "metric": "angle"}, "metric must be one of cosine, dot, euclidean"),
        ({"dim": 3, "numbers": "int4"}, "numbers must be one of float32, float16, int8"),
    ):
        with pytest.raises(FirthError, match=rule):
            Index.create(**settings)
    with pytest.raises(FirthError, match="no key 'z' \\(1 of 2 are missing\\)"):
        made().delete(["a", "z"])
    with pytest.raises(FirthError, match="no key 'z'"):
        made()["z"]


def test_another_model_is_refused_and_both_are_named(tmp_path):
    texts = list(World(seed=2).sentences(500))
    one, two = (firth.SkipGram(dim=5, epochs=1).fit(texts, firth.Run(seed=seed, threads=1)) for seed in (1, 2))
    with Index.create(tmp_path / "index", dim=5, model=one, model_path="models/one") as index:
        index.add(named(500), one.embed(texts), {"text": texts})
    assert Index.open(tmp_path / "index", one).search(texts[0], 1)[0].score > 0.99
    pattern = r"another model \(skipgram [0-9a-f]{12}…, models/one\) than this one \(skipgram [0-9a-f]{12}…\)"
    with pytest.raises(FirthError, match=pattern):
        Index.open(tmp_path / "index", two)
    Index.of(one.vectors, tmp_path / "plain")
    with pytest.raises(FirthError, match="does not say what model made its vectors"):
        Index.open(tmp_path / "plain", one)
