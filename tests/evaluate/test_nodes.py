"""Node classification: F1 equal to scikit-learn's, the protocol by hand, file layouts, invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusing import refuses, warns_code
from sklearn.metrics import f1_score

import firth
from firth.evaluate.nodes import f1_scores, likeliest, node_classification, read_labels


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    truth, answers = rng.random((2, 200, 7)) < 0.3
    truth[:, 5] = answers[:, 5] = answers[:, 6] = False  # one label that never occurs, one that is never predicted
    macro, micro = f1_scores(truth, answers)
    assert macro == pytest.approx(f1_score(truth, answers, average="macro", zero_division=0))
    assert micro == pytest.approx(f1_score(truth, answers, average="micro"))


def test_as_many_labels_are_predicted_as_the_node_has():
    scores = np.array([[3.0, 1, 2], [1, 2, 3], [np.inf, 5, -np.inf]])
    mask = likeliest(scores, np.array([2, 1, 0]))
    assert mask.tolist() == [[True, False, True], [False, False, True], [False, False, False]]


def make(noise: float) -> tuple[firth.Vectors, dict[str, list[str]]]:
    """Return nodes with four labels, some with two, whose vectors are sums of their labels' directions plus noise."""
    rng = np.random.default_rng(3)
    labels = {str(i): sorted({str(i % 4), str(rng.integers(4)) if i % 3 == 0 else str(i % 4)}) for i in range(300)}
    matrix = np.array([np.eye(4)[[int(label) for label in own]].sum(axis=0) for own in labels.values()])
    return firth.Vectors(list(labels), 5 * matrix + rng.normal(0, noise, matrix.shape)), labels


def test_labels_are_predicted_from_informative_vectors_only():
    vectors, labels = make(0.1)
    result = node_classification(vectors, {**labels, "nobody": ["1"]}, splits=3)
    assert result.macro_f1 == result.micro_f1 == 1.0 and result.missing == 1 and result.nodes == 300
    assert result.to_json()["splits"] == 3 and "1.0000" in str(result)
    random = firth.Vectors(vectors.keys, np.random.default_rng(0).normal(size=(300, 4)))
    assert node_classification(random, labels, splits=3).macro_f1 < 0.45
    assert node_classification(*make(3), splits=2) == node_classification(*make(3), splits=2)  # the same splits


def test_labels_that_all_or_no_training_nodes_have():
    vectors = firth.Vectors(list("abcdef"), np.eye(6))
    labels = {node: ["all"] for node in "abcdef"} | {"f": ["all", "rare"]}
    result = node_classification(vectors, labels, splits=20)
    assert 0 < result.macro_f1 < 1 and result.micro_f1 > 0.8


def test_files_of_labels(tmp_path):
    file = tmp_path / "labels.txt"
    file.write_text("# node labels\na 1 2\n\nb\t2\nNew York,3\na 4 1\n")
    assert read_labels(file) == {"a": ["1", "2", "4"], "b": ["2"], "New York": ["3"]}
    file.write_text("a 1\nb\n")
    with refuses("malformed_data", path=file, number=2, expected="a node and its labels", got="b"):
        read_labels(file)


def test_invalid_arguments_are_refused():
    vectors, labels = make(1)
    cases: list[tuple[str, Any]] = [("share", 0), ("share", 1.0), ("splits", 0)]
    for option, value in cases:
        with refuses("invalid_value", option=option, got=value):
            node_classification(vectors, labels, **{option: value})
    with refuses("too_few", n_nodes=0, n_labeled=1, n_labels=0):
        node_classification(vectors, {"nobody": ["1"]})
    broken = firth.Vectors(["a", "b"], [[np.nan], [1.0]])
    with refuses("non_finite", key="a", row=0):
        node_classification(broken, {"a": ["1"], "b": ["2"]})


# ---- communities ----


def write_communities(path, seed=5, count=40, nodes=400):
    """Write a file like SNAP's com-*.cmty.txt: one community per line, members separated by tabs, with overlaps."""
    rng = np.random.default_rng(seed)
    lines = [sorted(rng.choice(nodes, size=rng.integers(3, 30), replace=False).tolist()) for _ in range(count)]
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return [set(map(str, line)) for line in lines]


def test_a_file_of_communities_is_detected(tmp_path):
    file, nodes = tmp_path / "com.cmty.txt", {str(n) for n in range(400)}
    members = write_communities(file)
    with warns_code("communities") as issued:
        labels_of = read_labels(file, nodes)
    assert len(issued) == 1
    expected = {
        node: [str(number) for number, line in enumerate(members, 1) if node in line]
        for node in sorted(nodes, key=int)
        if any(node in line for line in members)
    }
    assert {node: sorted(labels, key=int) for node, labels in labels_of.items()} == expected
    few = {str(n) for n in range(250)}  # not every member has a vector
    with warns_code("communities"):
        assert read_labels(file, few) == labels_of
    file.write_text(file.read_text() + "7\n")  # a community of one
    with warns_code("communities"):
        assert "41" in read_labels(file, nodes)["7"]


def test_labels_that_coincide_with_node_names_stay_labels(tmp_path):
    """The labels are 0 to 39 and the nodes 0 to 999."""
    rng, nodes = np.random.default_rng(3), [str(n) for n in range(1000)]
    file = tmp_path / "labels.txt"
    labels = {node: sorted({str(rng.integers(40)) for _ in range(1 + n % 3)}) for n, node in enumerate(nodes)}
    file.write_text("".join(f"{node} {' '.join(own)}\n" for node, own in labels.items()))
    assert read_labels(file, set(nodes)) == labels
    file.write_text("".join(f"{node} {label}\n" for node, own in labels.items() for label in own))
    assert read_labels(file, set(nodes)) == labels  # one pair per line
    file.write_text("a red\nb blue\nc green\n")  # one label per node, none of which is a node's name
    assert read_labels(file, {"a", "b", "c"}) == {"a": ["red"], "b": ["blue"], "c": ["green"]}


def test_an_ambiguous_file_needs_a_layout(tmp_path):
    file, nodes = tmp_path / "either.txt", {str(n) for n in range(100)}
    file.write_text("".join(f"{n} {n + 50} {(n * 7) % 50 + 50}\n" for n in range(40)))
    others = {n + 50 for n in range(40)} | {(n * 7) % 50 + 50 for n in range(40)}
    with refuses("ambiguous_layout", path=file, labels=len(others), nodes=40):
        read_labels(file, nodes)
    labels = read_labels(file, nodes, layout="labels")
    assert labels["0"] == ["50"] and labels["1"] == ["51", "57"]
    members = read_labels(file, nodes, layout="communities")
    assert members["0"] == ["1"] and "2" in members["51"]
    with refuses("invalid_value", option="layout", got="other"):
        read_labels(file, nodes, layout="other")


def test_without_nodes_a_file_with_more_labels_than_nodes_is_ambiguous(tmp_path):
    file = tmp_path / "com.cmty.txt"
    members = write_communities(file)
    with refuses("ambiguous_layout", path=file):
        read_labels(file)
    assert len(read_labels(file, layout="communities")) == len(set.union(*members))
    file.write_text("a 1\nb 2\n")
    assert read_labels(file) == {"a": ["1"], "b": ["2"]}
