"""DeepWalk and Node2Vec: communities are recovered, and runs can be repeated, resumed and continued."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses

import firth
from firth.data.world import World
from firth.graphs import walk_training as walks

SEED = 77  # of a synthetic graph that no setting was tuned on
PEOPLE = 400


@pytest.fixture(scope="module")
def friends():
    return World(seed=SEED).friendships(people=PEOPLE, communities=6)


@pytest.fixture(scope="module")
def graph(friends) -> firth.Graph:
    return firth.Graph(friends.edges)


def purity(vectors: firth.Vectors, communities: np.ndarray, k: int = 10) -> float:
    """The share of each node's k nearest neighbors that are in its community."""
    labels = communities[[int(key) for key in vectors.keys]]
    neighbors = np.argsort(-(vectors.unit @ vectors.unit.T), axis=1)[:, 1 : k + 1]
    return float((labels[neighbors] == labels[:, None]).mean())


METHODS = {
    "DeepWalk": firth.DeepWalk(dim=32, walks_per_node=5, walk_length=40),
    "DeepWalk, hierarchical softmax": firth.DeepWalk(dim=32, walks_per_node=5, walk_length=40, loss="hierarchical"),
    "Node2Vec, near": firth.Node2Vec(dim=32, walks_per_node=5, walk_length=40, p=0.25, q=4),
    "Node2Vec, far": firth.Node2Vec(dim=32, walks_per_node=5, walk_length=40, p=4, q=0.5),
}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_communities_are_recovered(name, deterministic, graph, friends):
    model = METHODS[name].fit(graph, firth.Run(deterministic=deterministic))
    random = np.random.default_rng(0).normal(size=model.vectors.matrix.shape)
    degrees = np.diff(graph.starts)[:, None] - np.diff(graph.starts).mean()
    assert purity(model.vectors, friends.communities) > 0.8
    for baseline in (random, degrees):  # neither uses which nodes are linked
        assert purity(firth.Vectors(graph.keys, baseline), friends.communities) < 0.3


def test_edge_weights_and_directions_are_used(friends):
    """All pairs of people are linked, and only the weights distinguish friends from others."""
    few = World(seed=SEED).friendships(people=60, communities=3)
    friend_pairs = {tuple(pair) for pair in few.edges.tolist()}
    edges = [(a, b, 20.0 if (a, b) in friend_pairs else 0.05) for a in range(60) for b in range(a + 1, 60)]
    method = firth.DeepWalk(dim=16, walk_length=40, epochs=3)
    assert purity(method.fit(firth.Graph(edges)).vectors, few.communities, 5) > 0.7
    assert purity(method.fit(firth.Graph(edges, weighted=False)).vectors, few.communities, 5) < 0.6
    both_directions = [(b, a, weight) for a, b, weight in edges] + edges
    assert purity(method.fit(firth.Graph(both_directions, directed=True)).vectors, few.communities, 5) > 0.7


def test_the_karate_club_is_split_into_its_two_factions():
    club = networkx.karate_club_graph()
    model = firth.Node2Vec(dim=16, epochs=3, window=4, walk_length=20).fit(club, firth.Run(deterministic=True))
    sides = np.array([club.nodes[int(key)]["club"] == "Officer" for key in model.vectors.keys])
    officer, teacher = model.vectors.unit_of(["33", "0"])
    predicted = model.vectors.unit @ officer > model.vectors.unit @ teacher
    assert (predicted == sides).mean() >= 30 / 34


def test_a_graph_of_two_nodes():
    model = firth.DeepWalk(dim=4, walks_per_node=500).fit([("a", "b")])
    assert model.vectors.keys == ["a", "b"] and np.isfinite(model.vectors.matrix).all()
    assert 0 < model.training["loss"] < 2 * np.log(2)


def test_disconnected_components_are_separated():
    cliques = [(f"{name}{a}", f"{name}{b}") for name in "xyz" for a in range(8) for b in range(a)]
    vectors = firth.Node2Vec(dim=16, epochs=4).fit(cliques).vectors
    for key in vectors.keys:
        assert {hit.key[0] for hit in vectors.neighbors(key, 7)} == {key[0]}


def test_isolated_nodes_have_zero_vectors():
    notes = Notes()
    run = firth.Run(report=notes)
    model = firth.DeepWalk(dim=8).fit([("a", "b"), ("c",), ("b", "d"), ("a", "b")], run)
    assert not model.vectors["c"].any() and model.vectors["d"].any()
    assert notes.codes == ["duplicate_edges", "isolated_nodes"]
    assert [note.split()[0] for note in notes.notes] == ["1", "1"]  # one duplicate edge, one isolated node
    assert model.training["isolated"] == 1 and model.training["nodes"] == 4


def test_directed_walks_stop_at_dead_ends():
    """All edges lead into a sink: no walk leaves it, but it gets a vector."""
    graph = firth.Graph([(f"s{i}", "sink") for i in range(20)], directed=True)
    model = firth.Node2Vec(dim=8, p=0.5, q=2).fit(graph)
    assert model.vectors["sink"].any() and model.training["epochs"][0]["pairs"] == 2 * 20 * 10  # walks of two nodes


@pytest.mark.parametrize("method", [METHODS["Node2Vec, near"], METHODS["DeepWalk, hierarchical softmax"]])
def test_a_resumed_run_equals_an_uninterrupted_one(method, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(walks, "CHUNK_STEPS", 5000)
    monkeypatch.setattr(walks, "NODES_PER_STREAM", 100)
    uninterrupted = method.fit(graph, firth.Run(threads=1, deterministic=True))
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 0.001)
    notes = Notes()
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=notes)
    break_off(lambda: method.fit(graph, run), 3)
    resumed = method.fit(graph, run)
    assert notes.codes[-1] == "resumed"
    assert resumed.vectors.matrix.tobytes() == uninterrupted.vectors.matrix.tobytes()
    assert resumed.outputs.tobytes() == uninterrupted.outputs.tobytes()
    assert resumed.training["epochs"] == uninterrupted.training["epochs"]
    with refuses("other_run"):
        method.fit(firth.Graph([("a", "b")]), run)


def test_each_walk_is_made_once_for_any_chunk_size(graph, monkeypatch):
    walks_by_chunk = {}
    for chunk in (80, 1000, 10**9):
        monkeypatch.setattr(walks, "CHUNK_STEPS", chunk)
        training = walks.Training(METHODS["DeepWalk"], graph, firth.Run(), None)
        chunks = -(-training.walks_per_node // training.chunk)
        starts = [
            np.concatenate(part) for part in zip(*(training.chunk_starts(c, 9) for c in range(chunks)), strict=True)
        ]
        made = walks_by_chunk[chunk] = np.stack(starts)
        assert len(set(map(tuple, made.T))) == len(graph) * 5 == made.shape[1]
    for chunk in (1000, 10**9):
        assert np.array_equal(walks_by_chunk[80], walks_by_chunk[chunk])


def test_continuing_with_new_edges(graph):
    method = firth.DeepWalk(dim=16, walks_per_node=2)
    first = method.fit(graph)
    new = firth.Graph([("0", "new"), ("new", "other"), ("other", "0")])
    second = method.fit(new, start=first)
    assert second.vectors.keys[:3] == ["0", "new", "other"] and len(second.vectors) == len(first.vectors) + 2
    assert np.array_equal(second.vectors["17"], first.vectors["17"])  # not in the new graph, so not updated
    assert np.linalg.norm(second.vectors["0"] - first.vectors["0"]) > 0
    with refuses("incompatible_start", dim=8, got=first):
        firth.DeepWalk(dim=8).fit(new, start=first)


def test_saved_and_loaded(graph, tmp_path: Path):
    model = firth.Node2Vec(dim=8, walks_per_node=1).fit(graph)
    loaded = firth.load(model.save(tmp_path / "g"), firth.Node2Vec)
    assert list(loaded.tables) == ["nodes", "contexts"] and loaded.vectors.keys == graph.keys
    assert repr(loaded) == f"Node2Vec model: {PEOPLE} nodes × 8"
    with refuses("unknown_key", key="nobody"):
        loaded.vectors["nobody"]


def test_a_budget_stops_in_time(graph, monkeypatch):
    monkeypatch.setattr(walks, "CHUNK_STEPS", 20_000)
    notes = Notes()
    run = firth.Run(budget=0.3, deterministic=True, report=notes)
    model = firth.DeepWalk(dim=16, epochs=100_000).fit(graph, run)
    assert model.training["finished_epochs"] < 100_000 and 0.3 <= model.training["seconds"] < 5
    assert "nondeterministic_budget" in notes.codes


def test_invalid_input_is_refused():
    for edges in ([], [("a",)], [("a",), ("b",)], [("a", "a")], [("a", "b", 0)]):
        with refuses("too_few", method="DeepWalk"):
            firth.DeepWalk().fit(edges)
    with refuses("unsupported_device", method="Node2Vec", option="loss=hierarchical"):
        firth.Node2Vec(loss="hierarchical").fit([("a", "b")], firth.Run(device="cuda"))
    with refuses("invalid_value", method="Node2Vec", name="p", got=0):
        firth.Node2Vec(p=0)
    with refuses("diverged", epoch=1):
        firth.DeepWalk(learning_rate=100, walks_per_node=100, dim=64).fit(networkx.complete_graph(30))
