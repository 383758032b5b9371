"""Graphs on the command line: train, query, evaluate, and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

import firth
from firth.data.world import World


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """graph.tsv and labels.txt of a synthetic social network."""
    folder = tmp_path_factory.mktemp("graph")
    edges, communities = World(seed=5).friendships(people=120, communities=3)
    (folder / "graph.tsv").write_text("# friends\n" + "".join(f"p{a}\tp{b}\n" for a, b in edges))
    (folder / "labels.txt").write_text("".join(f"p{i} c{label}\n" for i, label in enumerate(communities)))
    return folder


def test_train_query_and_evaluate(call, files, tmp_path):
    command = ("train", "node2vec", files / "graph.tsv", "-o", tmp_path / "g", "--dim", 16, "--p", 0.5, "--epochs", 4)
    trained = call(*command)
    assert trained.exit_code == 0, trained.output
    assert "nodes" in trained.stdout and "120" in trained.stdout and "steps/s" in trained.stdout
    assert f"firth query neighbors {tmp_path / 'g'} NODE" in trained.stdout
    hits = json.loads(call("query", "neighbors", tmp_path / "g", "p7", "-k", 3, "--json").stdout)
    assert len(hits[0]["neighbors"] if isinstance(hits, list) else hits) and "p" in json.dumps(hits)
    evaluate = ("evaluate", "nodes", tmp_path / "g", files / "labels.txt")
    result = call(*evaluate, "--splits", 2, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[str(tmp_path / "g")]["macro_f1"] > 0.8
    assert "Macro-F1" in call(*evaluate, "--splits", 1).stdout
    assert json.loads(call(*command, "--json").stdout)["status"] == "already finished"
    assert '"nodes": {"rows": 120' in call("info", tmp_path / "g", "--json").stdout


def test_formats_of_graphs(call, refused, tmp_path):
    (tmp_path / "adjacency.txt").write_text("a b c\nb c\nd\n")
    (tmp_path / "calls.csv").write_text("from,to,n\na,b,2\nb,c,1\n")
    (tmp_path / "twice.txt").write_text("a b 1\na b 2\nb c 9\n")
    small = ("--dim", 4, "--walks-per-node", 1, "--json")
    read = call("train", "deepwalk", tmp_path / "adjacency.txt", "--layout", "adjacency", "-o", tmp_path / "1", *small)
    assert json.loads(read.stdout)["nodes"] == 4 and "1 nodes have no edge" in read.stderr
    read = call("train", "deepwalk", tmp_path / "calls.csv", "--columns", "from,to,n", "-o", tmp_path / "2", *small)
    assert json.loads(read.stdout)["edges"] == 2
    one_way = ("train", "deepwalk", tmp_path / "twice.txt", "--directed", "-o", tmp_path / "3", *small)
    assert "1 duplicate edges" in call(*one_way).stderr
    assert firth.load(tmp_path / "3").training["edges"] == 2
    refused("other_run", *one_way[:3], "--unweighted", *one_way[4:])  # another graph is another run


BAD: dict[str, Any] = {
    "empty": ("", (), "too_few", {}),
    "one node": ("a\n", (), "too_few", {}),
    "a self loop alone": ("a a\n", (), "too_few", {}),
    "negative": ("a b 1\nb c -1\n", (), "malformed_data", {"got": -1.0}),
    "NaN": ("a b nan\n", (), "malformed_data", {"got": "nan"}),
    "adjacency": ("a b c d\n", (), "malformed_data", {}),
    "header": ("source\ttarget\n1\t2\n", (), "malformed_data", {}),
    "no such column": ("x,y\n1,2\n", ("--columns", "x,z"), "unknown_column", {"name": "z"}),
    "one column": ("x,y\n1,2\n", ("--columns", "x"), "invalid_value", {}),
    "p": ("a b\n", ("--p", "0"), "invalid_value", {"got": 0.0}),
    "q": ("a b\n", ("--q", "nan"), "invalid_value", {"got": "nan"}),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_graphs(refused, tmp_path, name):
    content, flags, code, values = BAD[name]
    file = tmp_path / ("g.csv" if "--columns" in flags else "g.txt")
    file.write_text(content)
    refused(code, "train", "node2vec", file, "-o", tmp_path / "m", *flags, **values)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_labels_of_unknown_nodes(refused, model, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("nobody-here 1\n")
    refused("too_few", "evaluate", "nodes", model, labels)
    refused("wrong_input", "train", "deepwalk", labels, labels, "-o", tmp_path / "m", detail="graph", got=2)


def test_a_file_of_communities(call, refused, files, tmp_path):
    """The layout of SNAP: all members of a community on one line."""
    model, graph = tmp_path / "g", files / "graph.tsv"
    groups = World(seed=5).friendships(people=120, communities=3).communities
    rows = ["\t".join(f"p{i}" for i, group in enumerate(groups) if group == each) for each in range(3)]
    (tmp_path / "com.cmty.txt").write_text("\n".join(rows) + "\n")
    assert call("train", "deepwalk", graph, "-o", model, "--dim", 16, "--epochs", 4).exit_code == 0
    scores = {}
    for name in (files / "labels.txt", tmp_path / "com.cmty.txt"):
        result = call("evaluate", "nodes", model, name, "--splits", 2, "--json")
        assert result.exit_code == 0, result.output
        assert ("3 communities" in result.stderr) == (name.name == "com.cmty.txt")
        scores[name.name] = json.loads(result.stdout)[str(model)]
    assert scores["com.cmty.txt"]["labels"] == 3 and scores["com.cmty.txt"]["nodes"] == 120
    assert scores["com.cmty.txt"]["macro_f1"] > 0.8
    communities = ("--layout", "communities", "--splits", 1)
    result = call("evaluate", "nodes", model, tmp_path / "com.cmty.txt", *communities)
    assert result.exit_code == 0 and "communities" not in result.stderr
    (tmp_path / "either.txt").write_text("p1 p2\np3 p4\np5 p6\n")
    refused("ambiguous_layout", "evaluate", "nodes", model, tmp_path / "either.txt")
    sweep = ("sweep", "deepwalk", graph, "-o", tmp_path / "s", "--nodes", tmp_path / "com.cmty.txt", "--dim", 8)
    swept = call(*sweep, "--try", "walks_per_node=1,2", "--budget", 20, "--json")
    assert swept.exit_code == 0 and "3 communities" in swept.stderr, swept.output
