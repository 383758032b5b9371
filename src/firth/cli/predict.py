"""`firth predict MODEL DATA…`: the labels of texts, or their numbers, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import data_options, one_file, open_model, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Model, Predicts
    from firth.data.table import Table

BATCH = 1024


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option("-k", type=int, default=1, show_default=True, help="How many labels a text, the most probable ones.")
@click.option("--threshold", type=float, default=0.0, help="Only labels with at least this probability.")
@click.option("--other", metavar="NAME", help="The column of the second texts, of pairs.")
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per text; errors and notes are JSON too.")
def command(
    path: str,
    data: tuple[str, ...],
    k: int,
    threshold: float,
    other: str | None,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """The most probable label of each text and its probability, a line a text: label, tab, probability, and so on.

    MODEL is the folder of a classifier or a .bin or .ftz file of fastText; DATA are files, globs in quotes, or - for
    standard input. A text in which the model knows nothing gives an empty line. A model of numbers gives a number a
    line; a model of tags gives a word and its tag a line, and an empty line behind each text. Pairs of texts, and
    models that read other columns too, need one table (csv, tsv, jsonl, Parquet).
    """
    from firth.core.model import TagsWords

    model = open_model(path)
    beside: tuple[str, ...] = getattr(model, "columns", ())
    if other or beside:
        rows = rows_of(model, one_file(data, "table"), column, other)
        answers: Iterator[tuple[str | None, Any]] = zip(
            map(str, range(1, len(rows) + 1)), answered(model, rows, k, threshold), strict=True
        )
    else:
        answers = texts_answered(model, path, data, k, threshold, unit=unit, column=column, key=key)
    for name, found in answers:
        if isinstance(model, TagsWords):
            show_tags(name, found, as_json)
        elif isinstance(found, float):
            print_json({"key": name, "number": found}) if as_json else click.echo(f"{found:.4f}")
        elif as_json:
            labels = [{"label": label, "probability": probability} for label, probability in found]
            print_json({"key": name, "labels": labels})
        else:
            click.echo("\t".join(f"{label}\t{probability:.4f}" for label, probability in found))


def texts_answered(
    model: Any, path: str, data: tuple[str, ...], k: int, threshold: float, **settings: Any
) -> Iterator[tuple[str | None, Any]]:
    """Each text's key, and its labels or its number."""
    from firth.core.model import Estimates, TagsWords
    from firth.data.corpus import Corpus

    documents = iter(Corpus(*data, **settings))
    while batch := list(islice(documents, BATCH)):
        texts = [text for _, text in batch]
        found: Any
        if isinstance(model, Estimates):
            found = model.estimate(texts).tolist()
        elif isinstance(model, TagsWords):
            found = model.tag(texts)
        else:
            found = classifier(model, path).predict(texts, k, threshold)
        yield from zip((name for name, _ in batch), found, strict=True)


def show_tags(name: str | None, words: Any, as_json: bool) -> None:
    if as_json:
        print_json({"key": name, "words": [word._asdict() for word in words]})
    else:
        click.echo("".join(f"{word.word}\t{word.tag}\n" for word in words))


@dataclass(frozen=True)
class Rows:
    """A table's rows for a model: texts or pairs, and the columns that it reads beside them."""

    model: Any
    table: Table
    texts: list[Any]
    label: str

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def beside(self) -> Table | None:
        from firth.data.table import Table

        return Table(self.table, columns=self.model.columns) if self.model.columns else None

    def predict(self, k: int = 1, threshold: float = 0.0) -> Any:
        return self.model.predict(self.texts, k, threshold, columns=self.beside)

    def estimate(self) -> Any:
        return self.model.estimate(self.texts, columns=self.beside)


def answered(model: Any, rows: Rows, k: int, threshold: float) -> Any:
    from firth.core.model import Estimates

    return rows.estimate().tolist() if isinstance(model, Estimates) else rows.predict(k, threshold)


def rows_of(model: Any, file: str, column: str | None, other: str | None, label: str = "") -> Rows:
    """What a file holds for a model that was fine-tuned."""
    from firth.data.table import Table

    if not hasattr(model, "columns"):
        raise FirthError(
            "unsupported_model",
            "{method} reads single texts; pairs are for `firth finetune pairs`.",
            method=type(model.method).method_name(),
        )
    names = [column or "text", *([other] if other else [])]
    wanted = dict.fromkeys([*names, *model.columns, *([label] if label else [])])
    table = Table(file, columns=list(wanted), categories=names)
    sides = [[text or "" for text in table.categories(name)] for name in names]
    return Rows(model, table, list(zip(*sides, strict=True)) if other else sides[0], label)


def classifier(model: Model, path: str) -> Predicts:
    from firth.core.model import Predicts

    if not isinstance(model, Predicts):
        method = type(model.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{path} ({method}) does not predict labels. Train a classifier with firth train fasttext-classifier or "
            "firth finetune text-classifier.",
            path=path,
            method=method,
        )
    return model
