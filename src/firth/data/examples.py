"""`Examples`: texts or text pairs with a label or a number, and optional other columns, for fine-tuning."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.report import Report
from firth.data.shared_options import DEV_OPTION
from firth.data.table import Table

MAX_NUMBER = 1e30  # to predict: estimates are float32
IMBALANCE = 10  # ratio of the largest to the smallest class that is reported


class Examples(Data):
    """Rows of a table with a text column and a label column.

        Examples("reviews.csv", text="review", label="stars")
        Examples("pairs.tsv", text="question1", other="question2", label="same", dev="dev.tsv")
        Examples("ads.parquet", text="title", label="sold", columns=["price", "colour"])

    `source` is any source of a `Table`: csv, tsv, jsonl, Parquet, a data frame, a dictionary of columns. `other` is the
    column of the second text of a pair. `columns` are further input columns. `dev` is another source with the same
    columns, used for model selection and early stopping. Immutable, so threads can share it.
    """

    noun = "set of examples"
    file_options = (
        FileOption("text", "The text column.", flag="column"),
        FileOption("other", "The column of the second text, for text pairs."),
        FileOption("label", "The column to predict."),
        FileOption("columns", "Further input columns beside the text, as in price,colour.", "columns"),
        DEV_OPTION,
    )
    has_texts = has_labels = True

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
                "invalid_type", "{option} must be a list of names; got {got!r}.", option="columns", got=columns
            )
        texts = [name for name in (text, other) if name is not None]
        names = [*texts, label, *columns]
        if len(set(names)) < len(names):
            raise FirthError(
                "duplicate_name",
                "text, other, label and columns must name different columns; got {got}.",
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
                "The examples are {data} and the dev data are {dev}; both must be the same.",
                data="single texts" if other is None else "pairs",
                dev="pairs" if other is None else "single texts",
            )

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        pairs = "" if self.other is None else " of pairs"
        dev = "" if self.dev is None else f", {len(self.dev):,} dev examples"
        return f"Examples({len(self):,} examples{pairs}, label {self.label!r}{dev})"

    def _rows_shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return self.table._rows_shown()

    def texts(self) -> list[Any]:
        """Return one text or pair of texts per row; a missing text is empty."""
        first, *second = (
            [text or "" for text in self.table.categories(name)] for name in (self.text, self.other) if name
        )
        return list(zip(first, second[0], strict=True)) if second else first

    def labels(self) -> list[str | None]:
        """Return the label of each row as text, None if it is missing; 1.0 is written as 1."""
        return self.table.categories(self.label)

    def numbers(self) -> NDArray[np.float64]:
        """Return the labels as numbers, NaN if missing."""
        return self.table.numbers(self.label)

    def fingerprint(self) -> str:
        """Return a hash of the rows and the dev data."""
        own = self.table.fingerprint()
        return own if self.dev is None else hashlib.sha256((own + self.dev.fingerprint()).encode()).hexdigest()


def labeled_rows(examples: Examples, report: Report, numbers: bool = False) -> tuple[list[Any], list[Any], list[int]]:
    """Return the texts, their labels and their row numbers; a note counts rows that lack a label or text."""
    texts = examples.texts()
    labels: list[Any] = examples.numbers().tolist() if numbers else list(examples.labels())
    empty_texts = [row for row, text in enumerate(texts) if not any([text] if isinstance(text, str) else text)]
    unlabeled = [row for row, label in enumerate(labels) if label is None or (numbers and math.isnan(label))]
    for rows, what in ((unlabeled, f"no {examples.label}"), (empty_texts, "no text")):
        if rows:
            first = examples.table.row_number(rows[0])
            text = f"{len(rows):,} of {len(texts):,} rows have {what} and are left out; the first is row {first}."
            report.note(text, "rows_left_out")
    if numbers:
        check_numbers(labels, examples.label)
    selected_rows = sorted(set(range(len(texts))) - set(unlabeled) - set(empty_texts))
    if not selected_rows:
        raise FirthError(
            "empty_data",
            "No training examples: none of the {rows:,} rows has both a text and a value in column {column!r}.",
            rows=len(texts),
            column=examples.label,
        )
    return [texts[row] for row in selected_rows], [labels[row] for row in selected_rows], selected_rows


def report_duplicates(texts: Sequence[Any], labels: Sequence[Any], report: Report) -> None:
    """Report duplicate rows, and texts that have several labels."""
    rows, distinct = Counter(zip(texts, labels, strict=True)), Counter(texts)
    duplicate_rows = len(texts) - len(rows)
    if duplicate_rows:
        text = f"{duplicate_rows:,} of {len(texts):,} rows are duplicates of another row; they are all used."
        report.note(text, "duplicate_rows")
    conflicting_texts = len(rows) - len(distinct)
    if conflicting_texts:
        report.note(f"{conflicting_texts:,} texts have more than one label.", "conflicting_labels")


def report_label_balance(labels: Sequence[str], weighted: bool, report: Report) -> list[str]:
    """Return the distinct labels in order; refuse a single label, and report a strong class imbalance."""
    counts = Counter(labels)
    if len(counts) < 2:
        (only,) = counts
        raise FirthError(
            "no_variation",
            "All {texts:,} texts have the label {label!r}. A classifier needs at least two different labels.",
            texts=len(labels),
            label=only,
        )
    (most, many), (least, few) = counts.most_common(1)[0], counts.most_common()[-1]
    if many >= IMBALANCE * few and not weighted:
        report.note(
            f"The label {most!r} occurs {many:,} times, {least!r} {few:,} times. class_weights=balanced gives rare "
            "labels a larger weight.",
            "class_imbalance",
        )
    return sorted(counts, key=label_order)


def check_numbers(values: Iterable[float], column: str) -> None:
    """Refuse numbers to predict that are infinite, or larger than a float32 estimate can be."""
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    if math.isinf(largest):
        raise FirthError("non_finite", "Column {column!r} must have finite numbers; found infinity.", column=column)
    if largest > MAX_NUMBER:
        raise FirthError(
            "out_of_range",
            "Column {column!r} must have numbers up to {limit:g}; got {got:g}. Scale it.",
            column=column,
            limit=MAX_NUMBER,
            got=largest,
        )


def label_order(label: str) -> tuple[float, str]:
    """Return a sort key that puts numbers, in numeric order, before other labels in alphabetical order."""
    try:
        return float(label), label
    except ValueError:
        return math.inf, label


def split_rows(rows: int, held_out_share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the row numbers randomly into training rows and held-out rows."""
    order = np.random.default_rng(seed).permutation(rows)
    n_held_out = min(rows - 1, round(rows * held_out_share))
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
