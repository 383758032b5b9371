"""Tasks of GLUE with their official metrics, beside a majority and a bag-of-words baseline.

    python benchmarks/glue.py DATA WEIGHTS [--task cola …] [--rows N] [--seeds 3]

DATA holds sentences/cola, sst2 and mrpc, and, where they are available, sentences/rte, qnli and wnli: train.tsv and
dev.tsv as GLUE has them, also compressed by xz. A task whose files are missing is named and left out.

WEIGHTS is a folder of an encoder, such as all-MiniLM-L6-v2, whose vectors logistic regression reads; of a pair both
vectors, their product and the absolute difference. The bag of words is logistic regression on tf-idf of words and word
pairs; of a text pair on both texts, and on the words that they share. `--rows` takes so many training rows at random.
Metrics are those of dev: Matthews correlation (CoLA), F1 and accuracy (MRPC), accuracy (others). Result:
docs/results/glue.md.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import firth
from firth.core import scores
from firth.evaluate.layout import markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "glue.md"


class Task(NamedTuple):
    """Columns of the label and the texts in a file of a task, and its metrics."""

    label: int
    texts: tuple[int, ...]
    metrics: tuple[str, ...] = ("accuracy",)
    header: bool = True


TASKS = {
    "cola": Task(1, (3,), ("matthews",), header=False),
    "sst2": Task(1, (0,)),
    "mrpc": Task(0, (3, 4), ("f1", "accuracy")),
    "rte": Task(3, (1, 2)),
    "qnli": Task(3, (1, 2)),
    "wnli": Task(3, (1, 2)),
}
Rows = tuple[list[list[str]], list[str]]  # texts of each row, and labels


def read_rows(folder: Path, part: str, task: Task) -> Rows | None:
    """Return the rows of a part; None if there is no file. Quotes have no meaning."""
    found = [path for name in (part, f"{part}_cleaned") for path in sorted(folder.glob(f"{name}.tsv*"))]
    if not found:
        return None
    opened = lzma.open if found[0].suffix == ".xz" else open
    with opened(found[0], "rt", encoding="utf-8-sig") as file:
        lines = [line for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if line]
    lines = [line for line in lines[1 if task.header else 0 :] if len(line) > max(task.label, *task.texts)]
    return [[line[column] for column in task.texts] for line in lines], [line[task.label] for line in lines]


def measured(task: Task, truth: Sequence[str], predicted: Sequence[str]) -> list[float]:
    """Return the official metrics, in percent; F1 is that of the second label in alphabetical order."""
    names = sorted({*truth, *predicted})
    a, b = (np.array([names.index(label) for label in labels]) for labels in (truth, predicted))
    ways: dict[str, Callable[[], float]] = {
        "matthews": lambda: scores.matthews(a, b),
        "accuracy": lambda: scores.accuracy(a, b),
        "f1": lambda: scores.f1(a, b, 2),
    }
    return [100 * ways[name]() for name in task.metrics]


def bag_of_words(train: Rows, dev: Rows) -> list[str]:
    parts: list[Any] = [
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"[^\W_]+").fit([t[i] for t in train[0]])
        for i in range(len(train[0][0]))
    ]

    def features(rows: list[list[str]]) -> Any:
        columns = [part.transform([texts[i] for texts in rows]) for i, part in enumerate(parts)]
        if len(parts) == 2:
            both = [" ".join(set(a.lower().split()) & set(b.lower().split())) for a, b in rows]
            shares = [[len(one.split()) / max(1, len(set(a.lower().split()) | set(b.lower().split())))]
                      for one, (a, b) in zip(both, rows, strict=True)]  # fmt: skip
            columns += [parts[0].transform(both), np.array(shares)]
        return hstack(columns).tocsr()

    model = LogisticRegression(max_iter=1000, C=3.0).fit(features(train[0]), train[1])
    return list(model.predict(features(dev[0])))


def linear(encoder: Any, train: Rows, dev: Rows) -> list[str]:
    def features(rows: list[list[str]]) -> Any:
        sides = [encoder.embed([texts[i] for texts in rows], normalize=True) for i in range(len(rows[0]))]
        if len(sides) == 1:
            return sides[0]
        return np.hstack([*sides, sides[0] * sides[1], np.abs(sides[0] - sides[1])])

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, C=0.03))
    return list(model.fit(features(train[0]), train[1]).predict(features(dev[0])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3, help="samples of --rows training rows")
    given = parser.parse_args()
    encoder, lines, missing = firth.load(given.weights), [], []
    for name in given.task or TASKS:
        task = TASKS[name]
        train, dev = (read_rows(given.data / "sentences" / name, part, task) for part in ("train", "dev"))
        if train is None or dev is None:
            missing.append(name)
            continue
        rows: dict[str, list[list[float]]] = {}
        sampled = 0 < given.rows < len(train[1])
        for seed in range(1, (given.seeds if sampled else 1) + 1):
            chosen = np.random.default_rng(seed).permutation(len(train[1]))[: given.rows or None]
            part = [train[0][row] for row in chosen], [train[1][row] for row in chosen]
            majority = max(sorted(set(part[1])), key=part[1].count)
            for way, predicted in (
                ("majority", [majority] * len(dev[1])),
                ("bag of words", bag_of_words(part, dev)),
                ("vectors", linear(encoder, part, dev)),
            ):
                rows.setdefault(way, []).append(measured(task, dev[1], predicted))
            print(name, seed, rows, file=sys.stderr, flush=True)
        for number, metric in enumerate(task.metrics):
            cells = [f"{statistics.mean(each[number] for each in found):.1f}" for found in rows.values()]
            lines.append([name, metric, f"{len(part[1]):,}", f"{len(dev[1]):,}", *cells])
    header = ["task", "metric", "training rows", "dev rows", "majority", "bag of words", "linear on vectors"]
    page = [
        f"`python benchmarks/glue.py DATA {given.weights.name}`, GLUE dev sets"
        + (f"; mean of {given.seeds} samples of the training rows where not all are used" if given.rows else "")
        + ".",
        *([f"Not available, and not measured: {', '.join(missing)}."] if missing else []),
        "",
        markdown_table(header, lines, numbers=range(2, len(header))),
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
