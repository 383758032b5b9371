"""Node classification: a linear probe predicts the labels of nodes from their vectors.

The protocol is that of DeepWalk and node2vec (Perozzi et al. 2014, section 5.2; Grover & Leskovec 2016, section 4.3).
For each label a logistic regression with an L2 penalty is trained on a share of the nodes. For each other node, the
number k of its labels is given, and the k most probable labels are predicted. The results are Macro-F1 (the mean over
labels) and Micro-F1 (over all predictions), averaged over several random splits.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError, FirthWarning
from firth.core.extras import missing_package
from firth.core.notebook import html_table
from firth.core.vectors import Vectors
from firth.evaluate.layout import text_table
from firth.evaluate.words import check_finite, numbered_lines

LAYOUTS = ("auto", "labels", "communities")
#: Shares of names that are nodes: below the first they coincide by chance, from the second on they are members.
CHANCE_SHARE, MEMBER_SHARE = 0.1, 0.5

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class NodeResult:
    """F1 of each split, and the numbers of nodes and labels."""

    share: float
    macro: tuple[float, ...]  # one value per split
    micro: tuple[float, ...]
    nodes: int
    labels: int
    missing: int  # labeled nodes without a vector

    @property
    def macro_f1(self) -> float:
        """Macro-F1, averaged over splits."""
        return float(np.mean(self.macro))

    @property
    def micro_f1(self) -> float:
        """Micro-F1, averaged over splits."""
        return float(np.mean(self.micro))

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        counts = {"splits": len(self.macro), "nodes": self.nodes, "labels": self.labels, "missing": self.missing}
        return {"macro_f1": self.macro_f1, "micro_f1": self.micro_f1, "share": self.share, **counts}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        row = [f"{self.share:.0%}", f"{self.macro_f1:.4f}", f"{self.micro_f1:.4f}", f"{np.std(self.macro):.4f}"]
        counts = [f"{self.nodes:,}", f"{self.labels:,}", f"{self.missing:,}", str(len(self.macro))]
        header = ["labeled", "Macro-F1", "Micro-F1", "± of Macro", "nodes", "labels", "missing", "splits"]
        return header, [[*row, *counts]]

    def __str__(self) -> str:
        return text_table(*self._table(), numbers=range(8))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=range(8))


class Line(NamedTuple):
    """A line of a file of labels or communities, split into fields."""

    number: int
    text: str
    fields: list[str]


def read_labels(
    path: str | os.PathLike[str], nodes: Container[str] | None = None, *, layout: str = "auto"
) -> dict[str, list[str]]:
    """Read the labels of each node from a file whose fields are separated by tabs, commas or spaces.

    With `layout` "labels", a line has a node and its labels; a node may have several lines. With "communities", a line
    has the members of a community, as in SNAP's com-*.cmty.txt, and a node's labels are the numbers of its communities,
    from 1. "auto" detects the layout with the help of `nodes`, the names of known nodes such as those with a vector. It
    issues a `FirthWarning` for communities and refuses ambiguous files.
    """
    check_choice("layout", layout, LAYOUTS)
    lines = [line for line in map(split_fields, numbered_lines(path)) if not line.text.startswith("#")]
    if layout == "auto":
        layout = detect_layout(path, lines, nodes)
        if layout == "communities":
            text = f"{path} is read as {len(lines):,} communities, one per line, because most of its fields are nodes."
            warnings.warn(FirthWarning(text, "communities"), stacklevel=2)
    labels: dict[str, list[str]] = {}
    for community, line in enumerate(lines, 1):
        without_label = len(line.fields) < 2 and layout == "labels"
        if without_label or not all(line.fields):
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: expected {expected}; got {got!r}.",
                path=path,
                number=line.number,
                expected="a node and its labels" if layout == "labels" else "the members of a community",
                got=line.text[:60],
            )
        by_node = layout == "labels"
        for node in line.fields[:1] if by_node else line.fields:
            new_labels = line.fields[1:] if by_node else [str(community)]
            labels[node] = list(dict.fromkeys([*labels.get(node, ()), *new_labels]))  # without duplicates
    return labels


def split_fields(numbered: tuple[int, str]) -> Line:
    """Split a numbered line at tabs, else at commas, else at whitespace."""
    number, text = numbered
    separator = next((separator for separator in ("\t", ",") if separator in text), None)
    return Line(number, text, [field.strip() for field in text.split(separator)])


def detect_layout(path: str | os.PathLike[str], lines: Sequence[Line], nodes: Container[str] | None) -> str:
    """Return "labels" or "communities"; refuse a file that may be either.

    Labels are shared by nodes, so there are at most half as many different labels as nodes. In a file of communities
    there are at least twice as many different names behind the first field as in it, and most of them are nodes. In
    between, the names are labels only if they are not names of nodes.
    """
    firsts, others = {line.fields[0] for line in lines}, {field for line in lines for field in line.fields[1:]}
    if 2 * len(others) <= len(firsts):
        return "labels"
    many = len(others) >= 2 * len(firsts)
    if nodes is None:
        if not many:
            return "labels"
        detail = "it is not known which of them are nodes"
    else:
        shares = [sum(name in nodes for name in names) / len(names) for names in (others, firsts)]
        if shares[0] < CHANCE_SHARE:
            return "labels"
        if many and min(shares) >= MEMBER_SHARE:
            return "communities"
        detail = f"{shares[0]:.0%} of the latter are nodes"
    raise FirthError(
        "ambiguous_layout",
        "{path} may hold labels of nodes or members of communities: {nodes:,} different names are first on a line and "
        "{labels:,} come after them; {detail}. Pass layout='labels' or layout='communities' (--layout; firth sweep: "
        "--node-layout).",
        path=path,
        nodes=len(firsts),
        labels=len(others),
        detail=detail,
    )


def node_classification(
    vectors: Vectors,
    labels: Mapping[str, Sequence[str]],
    *,
    share: float = 0.5,
    splits: int = 10,
    seed: int = 0,
) -> NodeResult:
    """Train the probe on `share` of the labeled nodes and evaluate it on the others, `splits` times."""
    if not 0 < share < 1:
        raise FirthError("invalid_value", "{option} must be between 0 and 1; got {got}.", option="share", got=share)
    if splits < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="splits", got=splits)
    nodes = [node for node, node_labels in labels.items() if node in vectors and node_labels]
    names = sorted({label for node in nodes for label in labels[node]})
    if len(nodes) < 2 or len(names) < 2:
        raise FirthError(
            "too_few",
            "Node classification needs at least 2 nodes and 2 labels; {n_nodes:,} of {n_labeled:,} labeled nodes have "
            "a vector, with {n_labels} labels.",
            n_nodes=len(nodes),
            n_labeled=len(labels),
            n_labels=len(names),
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
        macro_f1, micro_f1 = f1_scores(truth[test], likeliest(scores, truth[test].sum(axis=1)))
        macro.append(macro_f1)
        micro.append(micro_f1)
    missing = sum(node not in vectors for node in labels)
    return NodeResult(share, tuple(macro), tuple(micro), len(nodes), len(names), missing)


def label_scores(inputs: Floats, truth: Bools, queries: Floats) -> Floats:
    """Return the scores of each label for `queries`, (queries, labels), from one logistic regression per label.

    C is 1 and the solver liblinear, as in DeepWalk's own program. A label that no training node has is never predicted,
    one that all have always is.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise missing_package("Classifying nodes needs", "scikit-learn", "sklearn") from None
    scores = np.full((len(queries), truth.shape[1]), -np.inf)
    for column, has_label in enumerate(truth.T):
        if has_label.all():
            scores[:, column] = np.inf
        elif has_label.any():
            model = LogisticRegression(solver="liblinear", max_iter=1000)
            scores[:, column] = model.fit(inputs, has_label).decision_function(queries)
    return scores


def likeliest(scores: Floats, counts: NDArray[np.int64]) -> Bools:
    """Return a mask of the `counts[i]` highest scores of each row i."""
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    mask: Bools = ranks < counts[:, None]
    return mask


def f1_scores(truth: Bools, predicted: Bools) -> tuple[float, float]:
    """Return Macro-F1 and Micro-F1; a label that neither occurs nor is predicted scores 0, as in scikit-learn."""
    correct = (truth & predicted).sum(axis=0)
    total = truth.sum(axis=0) + predicted.sum(axis=0)
    by_label = 2 * correct / np.maximum(total, 1)
    return float(by_label.mean()), float(2 * correct.sum() / max(1, total.sum()))
