"""Node classification: the F1 of scikit-learn, the protocol by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

import firth
from firth.evaluate.nodes import f1_scores, likeliest, node_classification, read_labels


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    truth, answers = rng.random((2, 200, 7)) < 0.3
    truth[:, 5] = answers[:, 5] = answers[:, 6] = False  # nowhere; never answered
    macro, micro = f1_scores(truth, answers)
    assert macro == pytest.approx(f1_score(truth, answers, average="macro", zero_division=0))
    assert micro == pytest.approx(f1_score(truth, answers, average="micro"))


def test_as_many_answers_as_there_are_labels():
    scores = np.array([[3.0, 1, 2], [1, 2, 3], [np.inf, 5, -np.inf]])
    chosen = likeliest(scores, np.array([2, 1, 0]))
    assert chosen.tolist() == [[True, False, True], [False, False, True], [False, False, False]]


def make(noise: float) -> tuple[firth.Vectors, dict[str, list[str]]]:
    """Nodes of four labels, some of two, whose vectors are sums of their labels' directions."""
    rng = np.random.default_rng(3)
    labels = {str(i): sorted({str(i % 4), str(rng.integers(4)) if i % 3 == 0 else str(i % 4)}) for i in range(300)}
    matrix = np.array([np.eye(4)[[int(label) for label in found]].sum(axis=0) for found in labels.values()])
    return firth.Vectors(list(labels), 5 * matrix + rng.normal(0, noise, matrix.shape)), labels


def test_labels_are_read_from_vectors_that_know_them():
    vectors, labels = make(0.1)
    found = node_classification(vectors, {**labels, "nobody": ["1"]}, splits=3)
    assert found.macro_f1 == found.micro_f1 == 1.0 and found.missing == 1 and found.nodes == 300
    assert found.to_json()["splits"] == 3 and "1.0000" in str(found)
    random = firth.Vectors(vectors.keys, np.random.default_rng(0).normal(size=(300, 4)))
    assert node_classification(random, labels, splits=3).macro_f1 < 0.45
    assert node_classification(*make(3), splits=2) == node_classification(*make(3), splits=2)  # the same splits


def test_labels_that_all_or_none_of_those_trained_on_have():
    vectors = firth.Vectors(list("abcdef"), np.eye(6))
    labels = {node: ["all"] for node in "abcdef"} | {"f": ["all", "rare"]}
    found = node_classification(vectors, labels, splits=20)
    assert 0 < found.macro_f1 < 1 and found.micro_f1 > 0.8


def test_files_of_labels(tmp_path):
    file = tmp_path / "labels.txt"
    file.write_text("# node labels\na 1 2\n\nb\t2\nNew York,3\na 4 1\n")
    assert read_labels(file) == {"a": ["1", "2", "4"], "b": ["2"], "New York": ["3"]}
    file.write_text("a 1\nb\n")
    with pytest.raises(firth.FirthError, match="line 2: a line is a node and its labels; got 'b'"):
        read_labels(file)


def test_what_cannot_be_classified_is_said():
    vectors, labels = make(1)
    for settings in ({"share": 0}, {"share": 1.0}, {"splits": 0}):
        with pytest.raises(firth.FirthError, match="share must be between 0 and 1"):
            node_classification(vectors, labels, **settings)
    with pytest.raises(firth.FirthError, match="of 1 labelled nodes 0 have a vector"):
        node_classification(vectors, {"nobody": ["1"]})
    broken = firth.Vectors(["a", "b"], [[np.nan], [1]])
    with pytest.raises(firth.FirthError, match="must be finite"):
        node_classification(broken, {"a": ["1"], "b": ["2"]})


# ---- communities ----


def write_communities(path, seed=5, count=40, nodes=400):
    """As SNAP's com-*.cmty.txt: the members of a community on a line, by tabs; some nodes are in several."""
    rng = np.random.default_rng(seed)
    lines = [sorted(rng.choice(nodes, size=rng.integers(3, 30), replace=False).tolist()) for _ in range(count)]
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return [set(map(str, line)) for line in lines]


def test_a_file_of_communities_is_told_by_its_fields(tmp_path):
    file, nodes = tmp_path / "com.cmty.txt", {str(n) for n in range(400)}
    members = write_communities(file)
    with pytest.warns(firth.FirthWarning) as said:
        found = read_labels(file, nodes)
    assert [note.message.code for note in said] == ["communities"]
    expected = {
        node: [str(number) for number, line in enumerate(members, 1) if node in line]
        for node in sorted(nodes, key=int)
        if any(node in line for line in members)
    }
    assert {node: sorted(labels, key=int) for node, labels in found.items()} == expected
    few = {str(n) for n in range(250)}  # not every member has a vector
    with pytest.warns(firth.FirthWarning):
        assert read_labels(file, few) == found
    file.write_text(file.read_text() + "7\n")  # a community of one
    with pytest.warns(firth.FirthWarning):
        assert "41" in read_labels(file, nodes)["7"]


def test_labels_that_are_names_of_nodes_stay_labels(tmp_path):
    """Labels 0 to 39 and nodes 0 to 999: numbers that coincide."""
    rng, nodes = np.random.default_rng(3), [str(n) for n in range(1000)]
    file = tmp_path / "labels.txt"
    labels = {node: sorted({str(rng.integers(40)) for _ in range(1 + n % 3)}) for n, node in enumerate(nodes)}
    file.write_text("".join(f"{node} {' '.join(found)}\n" for node, found in labels.items()))
    assert read_labels(file, set(nodes)) == labels
    file.write_text("".join(f"{node} {label}\n" for node, found in labels.items() for label in found))
    assert read_labels(file, set(nodes)) == labels  # a pair a line
    file.write_text("a red\nb blue\nc green\n")  # a label of its own for each, which no node is called
    assert read_labels(file, {"a", "b", "c"}) == {"a": ["red"], "b": ["blue"], "c": ["green"]}


def test_what_may_be_either_is_refused_until_it_is_said(tmp_path):
    file, nodes = tmp_path / "either.txt", {str(n) for n in range(100)}
    file.write_text("".join(f"{n} {n + 50} {(n * 7) % 50 + 50}\n" for n in range(40)))
    with pytest.raises(firth.FirthError) as refused:
        read_labels(file, nodes)
    assert refused.value.code == "ambiguous_layout"
    behind = {n + 50 for n in range(40)} | {(n * 7) % 50 + 50 for n in range(40)}
    assert (refused.value.values["labels"], refused.value.values["nodes"]) == (len(behind), 40)
    labels = read_labels(file, nodes, layout="labels")
    assert labels["0"] == ["50"] and labels["1"] == ["51", "57"]
    members = read_labels(file, nodes, layout="communities")
    assert members["0"] == ["1"] and "2" in members["51"]
    with pytest.raises(firth.FirthError) as refused:
        read_labels(file, nodes, layout="other")
    assert refused.value.code == "invalid_value"


def test_without_nodes_more_labels_than_nodes_are_not_believed(tmp_path):
    file = tmp_path / "com.cmty.txt"
    members = write_communities(file)
    with pytest.raises(firth.FirthError) as refused:
        read_labels(file)
    assert refused.value.code == "ambiguous_layout"
    assert len(read_labels(file, layout="communities")) == len(set.union(*members))
    file.write_text("a 1\nb 2\n")
    assert read_labels(file) == {"a": ["1"], "b": ["2"]}
