"""Graphs on the command line: train, ask, evaluate; and what is refused in one line."""

from __future__ import annotations

import json

import pytest

import firth
from firth.data.world import World


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """graph.tsv and labels.txt of a world's friendships."""
    folder = tmp_path_factory.mktemp("graph")
    edges, communities = World(seed=5).friendships(people=120, communities=3)
    (folder / "graph.tsv").write_text("# friends\n" + "".join(f"p{a}\tp{b}\n" for a, b in edges))
    (folder / "labels.txt").write_text("".join(f"p{i} c{label}\n" for i, label in enumerate(communities)))
    return folder


def test_train_ask_and_evaluate(call, files, tmp_path):
    command = ("train", "node2vec", files / "graph.tsv", "-o", tmp_path / "g", "--dim", 16, "--p", 0.5, "--epochs", 4)
    trained = call(*command)
    assert trained.exit_code == 0, trained.output
    assert "nodes" in trained.stdout and "120" in trained.stdout and "steps/s" in trained.stdout
    assert f"firth query neighbors {tmp_path / 'g'} NODE" in trained.stdout
    hits = json.loads(call("query", "neighbors", tmp_path / "g", "p7", "-k", 3, "--json").stdout)
    assert len(hits[0]["neighbors"] if isinstance(hits, list) else hits) and "p" in json.dumps(hits)
    told = call("evaluate", tmp_path / "g", "--nodes", files / "labels.txt", "--splits", 2, "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)[str(tmp_path / "g")][str(files / "labels.txt")]["macro_f1"] > 0.8
    assert "Macro-F1" in call("evaluate", tmp_path / "g", "--nodes", files / "labels.txt", "--splits", 1).stdout
    assert json.loads(call(*command, "--json").stdout)["status"] == "already finished"
    assert '"nodes": {"rows": 120' in call("info", tmp_path / "g", "--json").stdout


def test_kinds_of_files(call, tmp_path):
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
    other = call(*one_way[:3], "--unweighted", *one_way[4:])  # another graph is another run
    assert other.exit_code == 1 and "of other data" in other.stderr


BAD = {
    "empty": ("", (), "at least two nodes with an edge"),
    "one node": ("a\n", (), "at least two nodes with an edge"),
    "a self loop alone": ("a a\n", (), "at least two nodes with an edge"),
    "negative": ("a b 1\nb c -1\n", (), "line 2: weights must be finite and not negative; got -1"),
    "NaN": ("a b nan\n", (), "line 1: weights must be finite"),
    "adjacency": ("a b c d\n", (), "layout=adjacency"),
    "header": ("source\ttarget\n1\t2\n", (), "looks like a header"),
    "no such column": ("x,y\n1,2\n", ("--columns", "x,z"), "no column 'z'"),
    "one column": ("x,y\n1,2\n", ("--columns", "x"), "columns must name"),
    "p": ("a b\n", ("--p", "0"), "Node2Vec.p must be at least 1e-06; got 0"),
    "q": ("a b\n", ("--q", "nan"), "Node2Vec.q must be a finite number"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_graph_is_one_line(call, tmp_path, name):
    content, flags, rule = BAD[name]
    file = tmp_path / ("g.csv" if "--columns" in flags else "g.txt")
    file.write_text(content)
    result = call("train", "node2vec", file, "-o", tmp_path / "m", *flags)
    assert result.exit_code == 1 and result.stdout == "", result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("firth: ") and rule in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_labels_that_fit_no_node_are_one_line(call, model, tmp_path):
    (tmp_path / "labels.txt").write_text("nobody-here 1\n")
    result = call("evaluate", model, "--nodes", tmp_path / "labels.txt")
    assert result.exit_code == 1 and "of 1 labelled nodes 0 have a vector" in result.stderr
    two = call("train", "deepwalk", tmp_path / "labels.txt", tmp_path / "labels.txt", "-o", tmp_path / "m")
    assert two.exit_code == 1 and "A graph is one file; got 2" in two.stderr


def test_a_file_of_communities(call, files, tmp_path):
    """SNAP's layout: all members of a community on one line."""
    model, graph = tmp_path / "g", files / "graph.tsv"
    groups = World(seed=5).friendships(people=120, communities=3).communities
    rows = ["\t".join(f"p{i}" for i, group in enumerate(groups) if group == each) for each in range(3)]
    (tmp_path / "com.cmty.txt").write_text("\n".join(rows) + "\n")
    assert call("train", "deepwalk", graph, "-o", model, "--dim", 16, "--epochs", 4).exit_code == 0
    found = {}
    for name in (files / "labels.txt", tmp_path / "com.cmty.txt"):
        told = call("evaluate", model, "--nodes", name, "--splits", 2, "--json")
        assert told.exit_code == 0, told.output
        assert ("3 communities" in told.stderr) == (name.name == "com.cmty.txt")
        found[name.name] = json.loads(told.stdout)[str(model)][str(name)]
    assert found["com.cmty.txt"]["labels"] == 3 and found["com.cmty.txt"]["nodes"] == 120
    assert found["com.cmty.txt"]["macro_f1"] > 0.8
    said = call("evaluate", model, "--nodes", tmp_path / "com.cmty.txt", "--node-layout", "communities", "--splits", 1)
    assert said.exit_code == 0 and "communities" not in said.stderr
    (tmp_path / "either.txt").write_text("p1 p2\np3 p4\np5 p6\n")
    either = call("evaluate", model, "--nodes", tmp_path / "either.txt", "--json")
    assert either.exit_code == 1 and json.loads(either.stderr)["error"]["code"] == "ambiguous_layout"
    sweep = ("sweep", "deepwalk", graph, "-o", tmp_path / "s", "--nodes", tmp_path / "com.cmty.txt", "--dim", 8)
    swept = call(*sweep, "--try", "walks_per_node=1,2", "--budget", 20, "--json")
    assert swept.exit_code == 0 and "3 communities" in swept.stderr, swept.output
