"""`Examples`: texts, or pairs of texts, with a label or a number, and maybe other columns; for fine-tuning."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.report import Report
from firth.data.table import Table

IMBALANCE = 10  # times as many of one label as of another: worth a word


class Examples:
    """Rows of a table that a text stands in.

        Examples("reviews.csv", text="review", label="stars")
        Examples("pairs.tsv", text="question1", other="question2", label="same", dev="dev.tsv")
        Examples("ads.parquet", text="title", label="sold", columns=["price", "colour"])

    `source` is whatever a `Table` is made of: csv, tsv, jsonl, Parquet, data frames, dictionaries of columns. `other`
    is the column of the second texts of pairs; `columns` are others that stand beside the text. `dev` (another source
    with the same columns) is what to choose and stop by. Read once and never changed: threads can share it.
    """

    def __init__(
        self,
        source: Any,
        *,
        text: str = "text",
        other: str | None = None,
        label: str = "label",
        columns: Sequence[str] = (),
        dev: Any = None,
    ) -> None:
        if isinstance(columns, str):
            raise FirthError(
                "invalid_type", "columns takes a list of names; got {got!r}. Put it in a list.", got=columns
            )
        texts = [name for name in (text, other) if name is not None]
        names = [*texts, label, *columns]
        if len(set(names)) < len(names):
            raise FirthError(
                "duplicate_name",
                "Text, other text, label and columns must be different columns; got {got}.",
                got=", ".join(names),
            )
        self.text, self.other, self.label, self.columns = text, other, label, tuple(columns)
        self.table = Table(source, columns=names, categories=texts)
        is_ready = isinstance(dev, Examples) or dev is None
        self.dev: Examples | None = (
            dev if is_ready else Examples(dev, text=text, other=other, label=label, columns=columns)
        )
        if self.dev is not None and (self.dev.other is None) != (other is None):
            raise FirthError(
                "conflicting_options",
                "The dev data must be of pairs where the examples are, and of single texts where not.",
            )

    def __len__(self) -> int:
        return len(self.table)

    def texts(self) -> list[Any]:
        """A text a row, or a pair of them; a missing one is empty."""
        first, *second = (
            [text or "" for text in self.table.categories(name)] for name in (self.text, self.other) if name
        )
        return list(zip(first, second[0], strict=True)) if second else first

    def labels(self) -> list[str | None]:
        """None where it is missing; numbers are written as short as they can be."""
        return self.table.categories(self.label)

    def numbers(self) -> NDArray[np.float64]:
        """The labels as numbers, NaN where missing."""
        return self.table.numbers(self.label)

    def fingerprint(self) -> str:
        own = self.table.fingerprint()
        return own if self.dev is None else hashlib.sha256((own + self.dev.fingerprint()).encode()).hexdigest()


def labeled_rows(examples: Examples, report: Report, numbers: bool = False) -> tuple[list[Any], list[Any], list[int]]:
    """Texts, their labels, and the rows they stand in; those without a label or without a text are left out, which is
    said."""
    texts = examples.texts()
    labels: list[Any] = examples.numbers().tolist() if numbers else list(examples.labels())
    empty_texts = [row for row, text in enumerate(texts) if not any([text] if isinstance(text, str) else text)]
    unlabeled = [row for row, label in enumerate(labels) if label is None or (numbers and math.isnan(label))]
    for rows, what in ((unlabeled, f"no {examples.label}"), (empty_texts, "no text")):
        if rows:
            first = examples.table.row_number(rows[0])
            report.note(f"{len(rows):,} of {len(texts):,} rows have {what} and are left out; the first is row {first}.")
    if numbers and any(math.isinf(label) for label in labels):
        raise FirthError(
            "non_finite", "Column {label!r} must hold finite numbers; it has an infinite one.", label=examples.label
        )
    selected_rows = sorted(set(range(len(texts))) - set(unlabeled) - set(empty_texts))
    if not selected_rows:
        raise FirthError(
            "empty_data",
            "There is nothing to learn from: none of {n_texts:,} rows has text and {label}.",
            n_texts=len(texts),
            label=examples.label,
        )
    return [texts[row] for row in selected_rows], [labels[row] for row in selected_rows], selected_rows


def report_duplicates(texts: Sequence[Any], labels: Sequence[Any], report: Report) -> None:
    """Duplicates, and texts whose labels contradict each other."""
    rows, distinct = Counter(zip(texts, labels, strict=True)), Counter(texts)
    duplicate_rows = len(texts) - len(rows)
    if duplicate_rows:
        report.note(f"{duplicate_rows:,} of {len(texts):,} rows say again what another says, and count again.")
    conflicting_texts = len(rows) - len(distinct)
    if conflicting_texts:
        report.note(f"{conflicting_texts:,} texts stand there with more than one label.")


def report_label_balance(labels: Sequence[str], weighted: bool, report: Report) -> list[str]:
    """The distinct labels in order; refuses a single one, and says when some are much rarer than others."""
    counts = Counter(labels)
    if len(counts) < 2:
        (only,) = counts
        raise FirthError(
            "no_variation",
            "All {n_labels:,} texts have the label {only!r}: there is nothing to tell apart.",
            n_labels=len(labels),
            only=only,
        )
    (most, many), (least, few) = counts.most_common(1)[0], counts.most_common()[-1]
    if many >= IMBALANCE * few and not weighted:
        report.note(
            f"{most!r} stands {many:,} times, {least!r} {few:,}: class_weights=balanced makes rare labels weigh more."
        )
    return sorted(counts, key=label_order)


def label_order(label: str) -> tuple[float, str]:
    """Numbers by size, before words by letters."""
    try:
        return float(label), label
    except ValueError:
        return math.inf, label


def split_rows(rows: int, held_out_share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from and rows held out, drawn."""
    order = np.random.default_rng(seed).permutation(rows)
    n_held_out = min(rows - 1, round(rows * held_out_share))
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
