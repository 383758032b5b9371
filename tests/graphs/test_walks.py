"""DeepWalk and Node2Vec as a user meets them: communities are recovered, runs can be repeated and resumed."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest
from breaking import Notes, break_off

import firth
from firth.data.world import World
from firth.graphs import walk_training as walks

SEED = 77  # a world nothing was tuned on
PEOPLE = 400


@pytest.fixture(scope="module")
def friends():
    return World(seed=SEED).friendships(people=PEOPLE, communities=6)


@pytest.fixture(scope="module")
def graph(friends) -> firth.Graph:
    return firth.Graph(friends.edges)


def purity(vectors: firth.Vectors, communities: np.ndarray, k: int = 10) -> float:
    """The share of a node's nearest that are of its community."""
    own = communities[[int(key) for key in vectors.keys]]
    near = np.argsort(-(vectors.unit @ vectors.unit.T), axis=1)[:, 1 : k + 1]
    return float((own[near] == own[:, None]).mean())


METHODS = {
    "DeepWalk": firth.DeepWalk(dim=32, walks_per_node=5, walk_length=40),
    "DeepWalk, Huffman tree": firth.DeepWalk(dim=32, walks_per_node=5, walk_length=40, loss="hierarchical"),
    "Node2Vec, near": firth.Node2Vec(dim=32, walks_per_node=5, walk_length=40, p=0.25, q=4),
    "Node2Vec, far": firth.Node2Vec(dim=32, walks_per_node=5, walk_length=40, p=4, q=0.5),
}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_the_worlds_communities_are_recovered(name, deterministic, graph, friends):
    model = METHODS[name].fit(graph, firth.Run(deterministic=deterministic))
    random = np.random.default_rng(0).normal(size=model.vectors.matrix.shape)
    degrees = np.diff(graph.starts)[:, None] - np.diff(graph.starts).mean()
    assert purity(model.vectors, friends.communities) > 0.8
    for baseline in (random, degrees):  # what knows nothing of the links
        assert purity(firth.Vectors(graph.keys, baseline), friends.communities) < 0.3


def test_weights_and_directions_tell(friends):
    """All pairs of people are linked, and only the weights tell friends from others."""
    few = World(seed=SEED).friendships(people=60, communities=3)
    close = {tuple(pair) for pair in few.edges.tolist()}
    edges = [(a, b, 20.0 if (a, b) in close else 0.05) for a in range(60) for b in range(a + 1, 60)]
    method = firth.DeepWalk(dim=16, walk_length=40, epochs=3)
    assert purity(method.fit(firth.Graph(edges)).vectors, few.communities, 5) > 0.7
    assert purity(method.fit(firth.Graph(edges, weighted=False)).vectors, few.communities, 5) < 0.6
    both = [(b, a, weight) for a, b, weight in edges] + edges
    assert purity(method.fit(firth.Graph(both, directed=True)).vectors, few.communities, 5) > 0.7


def test_the_karate_club_splits_as_it_did():
    club = networkx.karate_club_graph()
    model = firth.Node2Vec(dim=16, epochs=3, window=4, walk_length=20).fit(club, firth.Run(deterministic=True))
    sides = np.array([club.nodes[int(key)]["club"] == "Officer" for key in model.vectors.keys])
    officer, teacher = model.vectors.unit_of(["33", "0"])
    told = model.vectors.unit @ officer > model.vectors.unit @ teacher
    assert (told == sides).mean() >= 30 / 34


def test_two_nodes_and_what_they_learn():
    model = firth.DeepWalk(dim=4, walks_per_node=500).fit([("a", "b")])
    assert model.vectors.keys == ["a", "b"] and np.isfinite(model.vectors.matrix).all()
    assert 0 < model.training["loss"] < 2 * np.log(2)


def test_disconnected_parts_are_told_apart():
    cliques = [(f"{name}{a}", f"{name}{b}") for name in "xyz" for a in range(8) for b in range(a)]
    vectors = firth.Node2Vec(dim=16, epochs=4).fit(cliques).vectors
    for key in vectors.keys:
        assert {hit.key[0] for hit in vectors.neighbors(key, 7)} == {key[0]}


def test_isolated_nodes_have_a_vector_of_zeros():
    run = firth.Run(report=Notes())
    model = firth.DeepWalk(dim=8).fit([("a", "b"), ("c",), ("b", "d"), ("a", "b")], run)
    assert not model.vectors["c"].any() and model.vectors["d"].any()
    assert run.report.notes == [
        "1 duplicate edges; the weights of each were added.",
        "1 nodes have no edge; their vectors are zero.",
    ]
    assert model.training["isolated"] == 1 and model.training["nodes"] == 4


def test_directed_walks_stop_at_dead_ends():
    """Spokes lead into a sink: no walk leaves it, and it has a vector all the same."""
    graph = firth.Graph([(f"s{i}", "sink") for i in range(20)], directed=True)
    model = firth.Node2Vec(dim=8, p=0.5, q=2).fit(graph)
    assert model.vectors["sink"].any() and model.training["epochs"][0]["pairs"] == 2 * 20 * 10  # walks of two nodes


@pytest.mark.parametrize("method", [METHODS["Node2Vec, near"], METHODS["DeepWalk, Huffman tree"]])
def test_a_resumed_run_equals_an_unbroken_one(method, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(walks, "CHUNK", 5000)
    monkeypatch.setattr(walks, "NODES_A_STREAM", 100)
    whole = method.fit(graph, firth.Run(threads=1, deterministic=True))
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 0.001)
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=Notes())
    break_off(lambda: method.fit(graph, run), 3)
    resumed = method.fit(graph, run)
    assert "Going on from a checkpoint" in run.report.notes[-1]
    assert resumed.vectors.matrix.tobytes() == whole.vectors.matrix.tobytes()
    assert resumed.outputs.tobytes() == whole.outputs.tobytes()
    assert resumed.training["epochs"] == whole.training["epochs"]
    with pytest.raises(firth.FirthError, match="the data differ"):
        method.fit(firth.Graph([("a", "b")]), run)


def test_every_walk_is_walked_once_whatever_the_chunks(graph, monkeypatch):
    seen = {}
    for chunk in (80, 1000, 10**9):
        monkeypatch.setattr(walks, "CHUNK", chunk)
        training = walks.Training(METHODS["DeepWalk"], graph, firth.Run(), None)
        chunks = -(-training.walks_per_node // training.chunk)
        starts = [
            np.concatenate(part) for part in zip(*(training.chunk_starts(c, 9) for c in range(chunks)), strict=True)
        ]
        seen[chunk] = np.stack(starts)
        assert len(set(map(tuple, seen[chunk].T))) == len(graph) * 5 == seen[chunk].shape[1]
    assert np.array_equal(seen[80], seen[1000]) and np.array_equal(seen[80], seen[10**9])


def test_more_edges_later(graph):
    method = firth.DeepWalk(dim=16, walks_per_node=2)
    first = method.fit(graph)
    new = firth.Graph([("0", "new"), ("new", "other"), ("other", "0")])
    second = method.fit(new, start=first)
    assert second.vectors.keys[:3] == ["0", "new", "other"] and len(second.vectors) == len(first.vectors) + 2
    assert np.array_equal(second.vectors["17"], first.vectors["17"])  # not met, not moved
    assert np.linalg.norm(second.vectors["0"] - first.vectors["0"]) > 0
    with pytest.raises(firth.FirthError, match="start must be a model of nodes with dim=8"):
        firth.DeepWalk(dim=8).fit(new, start=first)


def test_saved_and_loaded(graph, tmp_path: Path):
    model = firth.Node2Vec(dim=8, walks_per_node=1).fit(graph)
    loaded = firth.load(model.save(tmp_path / "g"))
    assert list(loaded.tables) == ["nodes", "contexts"] and loaded.vectors.keys == graph.keys
    assert repr(loaded) == f"Node2Vec model: {PEOPLE} nodes × 8"
    with pytest.raises(firth.FirthError, match="the graph did not have this node"):
        loaded.vectors["nobody"]


def test_a_budget_stops_in_time(graph, monkeypatch):
    monkeypatch.setattr(walks, "CHUNK", 20_000)
    run = firth.Run(budget=0.3, deterministic=True, report=Notes())
    model = firth.DeepWalk(dim=16, epochs=100_000).fit(graph, run)
    assert model.training["finished_epochs"] < 100_000 and 0.3 <= model.training["seconds"] < 5
    assert any("can't be deterministic" in note for note in run.report.notes)


def test_what_cannot_be_learned_is_said():
    for edges in ([], [("a",)], [("a",), ("b",)], [("a", "a")], [("a", "b", 0)]):
        with pytest.raises(firth.FirthError, match="at least two nodes with an edge"):
            firth.DeepWalk().fit(edges)
    with pytest.raises(firth.FirthError, match="device must be auto or cpu"):
        firth.Node2Vec(loss="hierarchical").fit([("a", "b")], firth.Run(device="cuda"))
    with pytest.raises(firth.FirthError, match=r"Node2Vec.p must be at least 1e-06; got 0"):
        firth.Node2Vec(p=0)
    with pytest.raises(firth.FirthError, match="learning_rate=100 is too high"):
        firth.DeepWalk(learning_rate=100, walks_per_node=100, dim=64).fit(networkx.complete_graph(30))
