"""Node classification: how much of the nodes' labels a linear probe reads from their vectors.

The protocol of DeepWalk and node2vec (Perozzi et al. 2014, section 5.2; Grover & Leskovec 2016, section 4.3): for each
label a logistic regression with an L2 penalty is trained on a share of the nodes; of the others, the number k of labels
is taken as known, and the k likeliest labels are the answer. Told are Macro-F1 (the mean over the labels) and Micro-F1
(over all answers), averaged over several random splits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.vectors import Vectors
from firth.evaluate.layout import text_table
from firth.evaluate.words import check_finite, numbered_lines

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class NodeResult:
    """F1 of each split, and how many nodes took part."""

    share: float
    macro: tuple[float, ...]  # one a split
    micro: tuple[float, ...]
    nodes: int
    labels: int
    missing: int  # labelled nodes that have no vector

    @property
    def macro_f1(self) -> float:
        return float(np.mean(self.macro))

    @property
    def micro_f1(self) -> float:
        return float(np.mean(self.micro))

    def to_json(self) -> dict[str, Any]:
        counts = {"splits": len(self.macro), "nodes": self.nodes, "labels": self.labels, "missing": self.missing}
        return {"macro_f1": self.macro_f1, "micro_f1": self.micro_f1, "share": self.share, **counts}

    def __str__(self) -> str:
        row = [f"{self.share:.0%}", f"{self.macro_f1:.4f}", f"{self.micro_f1:.4f}", f"{np.std(self.macro):.4f}"]
        counts = [f"{self.nodes:,}", f"{self.labels:,}", f"{self.missing:,}", str(len(self.macro))]
        header = ("labelled", "Macro-F1", "Micro-F1", "± of Macro", "nodes", "labels", "missing", "splits")
        return text_table(header, [[*row, *counts]], numbers=range(8))


def read_labels(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """A line a node: its name and its labels, by tabs, commas or blanks. A node may stand on several lines."""
    labels: dict[str, list[str]] = {}
    for number, line in numbered_lines(path):
        if line.startswith("#"):
            continue
        sign = next((sign for sign in ("\t", ",") if sign in line), None)
        node, *found = (field.strip() for field in line.split(sign))
        if not found or not all(found) or not node:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a line is a node and its labels; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
        here = labels.setdefault(node, [])
        here += [label for label in found if label not in here]
    return labels


def node_classification(
    vectors: Vectors,
    labels: Mapping[str, Sequence[str]],
    *,
    share: float = 0.5,
    splits: int = 10,
    seed: int = 0,
) -> NodeResult:
    """Trains the probe on `share` of the labelled nodes and asks it for the others, `splits` times."""
    if not 0 < share < 1 or splits < 1:
        raise FirthError(
            "invalid_value",
            "{option} must be between 0 and 1, splits at least 1; got {got} and {splits}.",
            option="share",
            got=share,
            splits=splits,
        )
    nodes = [node for node, found in labels.items() if node in vectors and found]
    names = sorted({label for node in nodes for label in labels[node]})
    if len(nodes) < 2 or len(names) < 2:
        raise FirthError(
            "too_few",
            "Classification needs two nodes and two labels; of {n_labels:,} labelled nodes {n_nodes:,} have a "
            "vector, with {n_available} labels.",
            n_labels=len(labels),
            n_nodes=len(nodes),
            n_available=len(names),
        )
    check_finite(vectors, None)
    matrix = vectors.matrix[[vectors.rows[node] for node in nodes]].astype(np.float64)
    columns = {name: column for column, name in enumerate(names)}
    truth = np.zeros((len(nodes), len(names)), dtype=bool)
    for row, node in enumerate(nodes):
        truth[row, [columns[label] for label in labels[node]]] = True
    macro, micro = [], []
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(len(nodes))
        train, test = np.split(order, [min(len(nodes) - 1, max(1, round(share * len(nodes))))])
        scores = label_scores(matrix[train], truth[train], matrix[test])
        found = f1_scores(truth[test], likeliest(scores, truth[test].sum(axis=1)))
        macro.append(found[0])
        micro.append(found[1])
    missing = sum(node not in vectors for node in labels)
    return NodeResult(share, tuple(macro), tuple(micro), len(nodes), len(names), missing)


def label_scores(inputs: Floats, truth: Bools, asked: Floats) -> Floats:
    """One logistic regression a label, C = 1, by liblinear as in DeepWalk's own program: how far `asked` speak for each
    label. A label that no node trained on has is never an answer, one that all have always is."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise missing_package("Classifying nodes needs", "scikit-learn", "sklearn") from None
    scores = np.full((len(asked), truth.shape[1]), -np.inf)
    for column, here in enumerate(truth.T):
        if here.all():
            scores[:, column] = np.inf
        elif here.any():
            model = LogisticRegression(solver="liblinear", max_iter=1000)
            scores[:, column] = model.fit(inputs, here).decision_function(asked)
    return scores


def likeliest(scores: Floats, counts: NDArray[np.int64]) -> Bools:
    """For each row its `counts` highest scores."""
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    chosen: Bools = ranks < counts[:, None]
    return chosen


def f1_scores(truth: Bools, answers: Bools) -> tuple[float, float]:
    """Macro-F1 and Micro-F1; a label that is neither true nor answered anywhere scores 0, as in scikit-learn."""
    right = (truth & answers).sum(axis=0)
    asked = truth.sum(axis=0) + answers.sum(axis=0)
    by_label = 2 * right / np.maximum(asked, 1)
    return float(by_label.mean()), float(2 * right.sum() / max(1, asked.sum()))
