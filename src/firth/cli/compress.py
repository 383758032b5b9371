"""`firth compress DATA`: PCA, LSA, autoencoder and VAE side by side on one table or corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import choose_report, json_flag, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.run import Run
    from firth.data.table import Table
    from firth.evaluate import Compressed, CompressionResult

WORDS = 1000  # of a corpus: the most frequent ones are its columns
TEXTS = (".txt", ".txt.gz", ".txt.xz")


@click.command()
@click.argument("data")
@click.option("--dim", type=click.IntRange(1), default=8, show_default=True, help="Numbers that a row is squeezed to.")
@click.option("--label", metavar="NAME", help="The column that a probe is asked for; it is not squeezed.")
@click.option("--columns", metavar="NAMES", help="Only these columns of the table, as in age,zip.")
@click.option("--pixels", is_flag=True, help="Columns are pixels: all on one scale.")
@click.option(
    "--column", "--text", "text", metavar="NAME", help="The text's column: rows are then documents by their words."
)
@click.option("--epochs", type=click.IntRange(1), default=100, show_default=True, help="Of autoencoder and VAE.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@json_flag
def command(data: str, as_json: bool, **settings: Any) -> None:
    """Squeeze the rows of DATA by PCA, LSA, an autoencoder and a VAE, and tell what is left of those that they did not
    learn from.

    lost: the share of variance that is not reconstructed. neighbor overlap: the share of a row's nearest rows that are
    also nearest by their codes. probe: the accuracy of a linear model that predicts the label from the codes.
    two-sample AUC: how well trees distinguish generated rows from real ones (0.5: not at all), compared with rows whose
    columns are drawn independently.
    """
    from firth.core.run import Run

    given = open_labelled(data, settings)
    run = Run(seed=settings["seed"], report=choose_report())
    result = compared(given.table, given.labels, settings["dim"], run, given.numeric, settings["epochs"])
    if as_json:
        print_json({"rows": result.rows, "methods": result.to_json()})
        return
    click.echo(f"{result.rows:,} rows that nothing was learned from\n\n{result}")


class Given(NamedTuple):
    table: Table
    labels: list[str] | None
    numeric: str  # as autoencoders have it


def open_labelled(path: str, settings: dict[str, Any]) -> Given:
    """A table, or a corpus as a table of words, and the labels of its rows."""
    from firth.data.table import Table

    if path.endswith(TEXTS):
        return Given(words_of(Path(path)), None, "common")
    whole = Table(path)
    label, text = settings["label"], settings["text"]
    labels = None
    if label:
        found = whole.categories(label)
        known = [row for row, each in enumerate(found) if each is not None]
        if len(known) < len(found):
            lost = f"{len(found) - len(known):,} of {len(found):,} rows have no {label} and are left out"
            choose_report().note(f"{lost}; the first is row {found.index(None) + 1:,}.")
            whole = rows_of(whole, known)
        labels = [each for each in found if each is not None]
    if text:
        return Given(words_of([each or "" for each in whole.categories(text)]), labels, "common")
    wanted = settings["columns"].split(",") if settings["columns"] else whole.names
    table = Table(whole, columns=[name for name in wanted if name != label])
    return Given(table, labels, "common" if settings["pixels"] else "standardize")


def words_of(texts: Any) -> Table:
    """Documents by their most frequent words, weighed by tf-idf."""
    from firth.data.corpus import Corpus
    from firth.data.table import Table
    from firth.documents.tfidf import TfIdf

    corpus = Corpus(texts)
    model = TfIdf(min_count=2).fit(corpus)
    matrix = model.transform([text for _, text in corpus])[:, :WORDS]  # words stand by frequency
    return Table(dict(zip(model.matrix_keys[1][:WORDS], matrix.toarray().T, strict=True)))


def compared(
    table: Table, labels: Sequence[str] | None, dim: int, run: Run, numeric: str = "standardize", epochs: int = 100
) -> CompressionResult:
    """Each method learns from four fifths of the rows and is judged on the others."""
    import numpy as np

    from firth.evaluate import compression, independent_rows
    from firth.tables.onehot import OneHot

    if len(table) < 50:
        raise FirthError(
            "too_few",
            "A comparison needs at least 50 rows, a fifth of them to be judged on; got {got}.",
            got=len(table),
        )
    order = np.random.default_rng(run.seed).permutation(len(table))
    parts = np.split(order, [len(order) * 4 // 5])
    learned, judged = (rows_of(table, np.sort(part)) for part in parts)
    scale = "standardize" if numeric == "standardize" else "keep"
    encoder = OneHot(numeric=scale, missing="mean", unseen="missing").fit(learned)
    rows = encoder.transform(judged)
    squeezed = dict(linear(encoder, learned, rows, dim)) | dict(
        networks(encoder, learned, judged, dim, numeric, epochs, run)
    )
    known = [labels[row] for row in np.sort(parts[1])] if labels is not None else None
    result = compression(rows, squeezed, known, seed=run.seed)
    alone = encoder.transform(independent_rows(learned.to_dict(), len(rows), seed=run.seed))
    return with_baseline(result, rows, alone, known, run.seed)


def rows_of(table: Table, rows: Any) -> Table:
    from firth.data.table import Table

    return Table(table.arrow().take(rows))


def linear(encoder: Any, learned: Any, rows: Any, dim: int) -> Iterator[tuple[str, Compressed]]:
    """PCA, and LSA's decomposition, which does not take the mean away first."""
    import numpy as np

    from firth.evaluate import Compressed

    known = encoder.transform(learned)
    k = min(dim, *known.shape)
    for name, mean in (("PCA", known.mean(axis=0)), ("LSA", np.zeros(known.shape[1]))):
        began = time.perf_counter()
        directions = np.linalg.svd(known - mean, full_matrices=False)[2][:k]
        seconds = time.perf_counter() - began
        codes = (rows - mean) @ directions.T
        snapped = encoder.transform(encoder.inverse(codes @ directions + mean))  # the likeliest category of each column
        yield (
            name,
            Compressed(codes, np.nan_to_num(snapped), None, seconds, directions.size + mean.size * (name == "PCA")),
        )


def networks(
    encoder: Any, learned: Any, judged: Any, dim: int, numeric: str, epochs: int, run: Run
) -> Iterator[tuple[str, Compressed]]:
    from firth.evaluate import Compressed
    from firth.tables.autoencoder import Autoencoder
    from firth.tables.vae import VAE

    for method in (Autoencoder, VAE):
        model = method(dim=dim, numeric=numeric, epochs=epochs).fit(learned, run)
        seconds = model.training["seconds"]  # without what torch takes to load
        rebuilt = encoder.transform(model.reconstruct(judged))
        made_up = encoder.transform(model.sample(len(judged), seed=run.seed)) if method is VAE else None
        yield (
            method.__name__,
            Compressed(model.transform(judged), rebuilt, made_up, seconds, model.training["parameters"]),
        )


def with_baseline(result: CompressionResult, rows: Any, alone: Any, labels: Any, seed: int) -> CompressionResult:
    """The same with two rows to hold it against: the rows as they are, and columns drawn independently."""
    from firth.evaluate import Compressed, CompressionResult, compression, two_sample

    whole = compression(rows, {"the rows themselves": Compressed(rows)}, labels, k=result.k, seed=seed)
    nothing = next(iter(whole.scores.values()))._replace(dim=0, neighbors=float("nan"), probe=float("nan"))
    drawn = nothing._replace(two_sample_auc=two_sample(rows, alone, seed=seed))
    return CompressionResult({**whole.scores, **result.scores, "columns drawn alone": drawn}, result.rows, result.k)
