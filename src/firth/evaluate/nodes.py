"""Node classification: how much of the nodes' labels a linear probe reads from their vectors.

The protocol of DeepWalk and node2vec (Perozzi et al. 2014, section 5.2; Grover & Leskovec 2016, section 4.3): for each
label a logistic regression with an L2 penalty is trained on a share of the nodes; of the others, the number k of labels
is taken as known, and the k likeliest labels are the answer. Told are Macro-F1 (the mean over the labels) and Micro-F1
(over all answers), averaged over several random splits.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.extras import missing_package
from firth.core.vectors import Vectors
from firth.evaluate.layout import text_table
from firth.evaluate.words import check_finite, numbered_lines

LAYOUTS = ("auto", "labels", "communities")
NO_NODES, MOST_NODES = 0.1, 0.5  # shares of names: fewer are nodes by chance; so many are meant to be

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


class Line(NamedTuple):
    """A line of a file of labels or communities, cut into its fields."""

    number: int
    text: str
    fields: list[str]


def read_labels(
    path: str | os.PathLike[str], nodes: Container[str] | None = None, *, layout: str = "auto"
) -> dict[str, list[str]]:
    """The labels of each node, from a file whose fields stand between tabs, commas or blanks.

    `layout` "labels": a line is a node and its labels; a node may stand on several lines. "communities": a line is a
    community and its fields are the members, as in SNAP's com-*.cmty.txt; a node's labels are the numbers of its
    communities, from 1. "auto" tells them apart by `nodes`, the names that are nodes for certain, such as those with a
    vector: communities are said in a `FirthWarning`, and what may be either is refused.
    """
    if layout not in LAYOUTS:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="layout",
            choices=", ".join(LAYOUTS),
            got=layout,
        )
    lines = [line for line in map(cut, numbered_lines(path)) if not line.text.startswith("#")]
    if layout == "auto":
        layout = told_layout(path, lines, nodes)
        if layout == "communities":
            text = f"{path} is read as {len(lines):,} communities, one a line: most of its fields are nodes."
            warnings.warn(FirthWarning(text, "communities"), stacklevel=2)
    labels: dict[str, list[str]] = {}
    for place, line in enumerate(lines, 1):
        alone = len(line.fields) < 2 and layout == "labels"
        if alone or not all(line.fields):
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a line is {expected}; got {got!r}.",
                path=path,
                number=line.number,
                expected="a node and its labels" if layout == "labels" else "the members of a community",
                got=line.text[:60],
            )
        of_nodes = layout == "labels"
        for node in line.fields[:1] if of_nodes else line.fields:
            found = line.fields[1:] if of_nodes else [str(place)]
            labels[node] = list(dict.fromkeys([*labels.get(node, ()), *found]))  # one that stands twice counts once
    return labels


def cut(numbered: tuple[int, str]) -> Line:
    number, text = numbered
    sign = next((sign for sign in ("\t", ",") if sign in text), None)
    return Line(number, text, [field.strip() for field in text.split(sign)])


def told_layout(path: str | os.PathLike[str], lines: Sequence[Line], nodes: Container[str] | None) -> str:
    """Labels are shared: there are at most half as many as nodes. Members of communities are not: there are at least
    twice as many others as first ones, and most of both are nodes. In between only names that no node has are labels.
    """
    firsts, others = {line.fields[0] for line in lines}, {field for line in lines for field in line.fields[1:]}
    if 2 * len(others) <= len(firsts):
        return "labels"
    many = len(others) >= 2 * len(firsts)
    if nodes is None:
        if not many:
            return "labels"
        known = "which of them are nodes is not known"
    else:
        shares = [sum(name in nodes for name in names) / len(names) for names in (others, firsts)]
        if shares[0] < NO_NODES:
            return "labels"
        if many and min(shares) >= MOST_NODES:
            return "communities"
        known = f"{shares[0]:.0%} of these are nodes"
    raise FirthError(
        "ambiguous_layout",
        "{path} may hold the labels of nodes or the members of communities: {nodes:,} different names come first on a "
        "line and {labels:,} behind them; {known}. Say which it is: layout='labels' or 'communities' (--node-layout).",
        path=path,
        nodes=len(firsts),
        labels=len(others),
        known=known,
    )


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
