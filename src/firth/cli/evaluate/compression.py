"""`firth evaluate compression DATA`: PCA, LSA, autoencoder and VAE compared on one table or corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from firth.cli.common import choose_report, json_flag, print_json
from firth.core.data import split_names
from firth.core.errors import FirthError
from firth.core.remote import as_path

if TYPE_CHECKING:
    from firth.core.run import Run
    from firth.data.table import Table
    from firth.evaluate import Compressed, CompressionResult

MAX_WORDS = 1000  # the most frequent words of a corpus are the columns
TEXT_SUFFIXES = (".txt", ".txt.gz", ".txt.xz")
MIN_ROWS = 50


@click.command()
@click.argument("data")
@click.option("--dim", type=click.IntRange(1), default=8, show_default=True, help="The dimension of the codes.")
@click.option("--label", metavar="NAME", help="The column that a linear model predicts from codes; not compressed.")
@click.option("--columns", metavar="NAMES", help="Only these columns of the table, as in age,zip.")
@click.option("--pixels", is_flag=True, help="The columns are pixels, all on one scale.")
@click.option("--column", metavar="NAME", help="The text column: the rows are then documents with word columns.")
@click.option("--epochs", type=click.IntRange(1), default=100, show_default=True, help="Epochs of the networks.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed of the random numbers.")
@json_flag
def command(data: str, as_json: bool, **settings: Any) -> None:
    """Compress the rows of DATA by PCA, LSA, an autoencoder and a VAE, and measure them on held-out rows.

    lost: the share of variance that is not reconstructed. neighbor overlap: the share of a row's nearest neighbors that
    its code preserves. probe: the accuracy of a linear model that predicts the label from codes. two-sample AUC: how
    well trees distinguish sampled rows from real ones (0.5 is ideal), beside rows with independent columns.
    """
    from firth.core.run import Run

    inputs = open_inputs(data, settings)
    run = Run(seed=settings["seed"], report=choose_report())
    result = compare_compression(inputs.table, inputs.labels, settings["dim"], run, inputs.scaling, settings["epochs"])
    if as_json:
        print_json({"rows": result.rows, "methods": result.to_json()})
        return
    click.echo(f"{result.rows:,} held-out rows\n\n{result}")


class Inputs(NamedTuple):
    """The table to compress, the labels of its rows, and the scaling of numbers in autoencoders."""

    table: Table
    labels: list[str] | None
    scaling: str


def open_inputs(path: str, settings: dict[str, Any]) -> Inputs:
    """Open a table, or a corpus as a table of words, and the labels of its rows."""
    from firth.data.table import Table

    if path.endswith(TEXT_SUFFIXES):
        return Inputs(word_table(as_path(path)), None, "common")
    table = Table(path)
    label, text = settings["label"], settings["column"]
    labels = None
    if label:
        cells = table.categories(label)
        labeled_rows = [row for row, cell in enumerate(cells) if cell is not None]
        if len(labeled_rows) < len(cells):
            choose_report().note(
                f"{len(cells) - len(labeled_rows):,} of {len(cells):,} rows have no {label} and are left out; "
                f"the first is row {cells.index(None) + 1:,}.",
                "missing_label",
            )
            table = select_rows(table, labeled_rows)
        labels = [cell for cell in cells if cell is not None]
    if text:
        return Inputs(word_table([cell or "" for cell in table.categories(text)]), labels, "common")
    names = split_names(settings["columns"]) or table.names
    table = Table(table, columns=[name for name in names if name != label])
    return Inputs(table, labels, "common" if settings["pixels"] else "standardize")


def word_table(texts: Any) -> Table:
    """Return documents as rows of tf-idf weights of their most frequent words."""
    from firth.data.corpus import Corpus
    from firth.data.table import Table
    from firth.documents.tfidf import TfIdf

    corpus = Corpus(texts)
    model = TfIdf(min_count=2).fit(corpus)
    matrix = model.transform([text for _, text in corpus])[:, :MAX_WORDS]  # columns are sorted by frequency
    return Table(dict(zip(model.matrix_keys[1][:MAX_WORDS], matrix.toarray().T, strict=True)))


def compare_compression(
    table: Table, labels: Sequence[str] | None, dim: int, run: Run, scaling: str = "standardize", epochs: int = 100
) -> CompressionResult:
    """Fit each method on four fifths of the rows and measure it on the others."""
    import numpy as np

    from firth.evaluate import compression, independent_rows
    from firth.tables.onehot import OneHot

    if len(table) < MIN_ROWS:
        raise FirthError(
            "too_few",
            "The comparison needs at least {minimum} rows, of which a fifth is held out; got {got}.",
            minimum=MIN_ROWS,
            got=len(table),
        )
    order = np.random.default_rng(run.seed).permutation(len(table))
    parts = np.split(order, [len(order) * 4 // 5])
    train, test = (select_rows(table, np.sort(part)) for part in parts)
    numeric = "standardize" if scaling == "standardize" else "keep"
    encoder = OneHot(numeric=numeric, missing="mean", unseen="missing").fit(train)
    rows = encoder.transform(test)
    codes = dict(linear_codes(encoder, train, rows, dim)) | dict(
        network_codes(encoder, train, test, dim, scaling, epochs, run)
    )
    test_labels = [labels[row] for row in np.sort(parts[1])] if labels is not None else None
    result = compression(rows, codes, test_labels, seed=run.seed)
    independent = encoder.transform(independent_rows(train.to_dict(), len(rows), seed=run.seed))
    return with_baselines(result, rows, independent, test_labels, run.seed)


def select_rows(table: Table, rows: Any) -> Table:
    """Return the rows of a table at these positions."""
    from firth.data.table import Table

    return Table(table.arrow().take(rows))


def linear_codes(encoder: Any, train: Any, rows: Any, dim: int) -> Iterator[tuple[str, Compressed]]:
    """Yield the codes of PCA, and of LSA's decomposition, which does not center the rows."""
    import numpy as np

    from firth.evaluate import Compressed

    matrix = encoder.transform(train)
    k = min(dim, *matrix.shape)
    for name, mean in (("PCA", matrix.mean(axis=0)), ("LSA", np.zeros(matrix.shape[1]))):
        began = time.perf_counter()
        directions = np.linalg.svd(matrix - mean, full_matrices=False)[2][:k]
        seconds = time.perf_counter() - began
        codes = (rows - mean) @ directions.T
        # Categories are rounded to the most probable one of each column.
        rounded = encoder.transform(encoder.inverse(codes @ directions + mean))
        yield (
            name,
            Compressed(codes, np.nan_to_num(rounded), None, seconds, directions.size + mean.size * (name == "PCA")),
        )


def network_codes(
    encoder: Any, train: Any, test: Any, dim: int, scaling: str, epochs: int, run: Run
) -> Iterator[tuple[str, Compressed]]:
    """Yield the codes of an autoencoder and of a VAE."""
    from firth.core.model import Samples
    from firth.evaluate import Compressed
    from firth.tables.autoencoder import Autoencoder
    from firth.tables.vae import VAE

    for method in (Autoencoder, VAE):
        model = method(dim=dim, numeric=scaling, epochs=epochs).fit(train, run)
        seconds = model.training["seconds"]  # without the time to import torch
        rebuilt = encoder.transform(model.reconstruct(test))
        sampled = encoder.transform(model.sample(len(test), seed=run.seed)) if isinstance(model, Samples) else None
        yield (
            method.__name__,
            Compressed(model.transform(test), rebuilt, sampled, seconds, model.training["parameters"]),
        )


def with_baselines(result: CompressionResult, rows: Any, independent: Any, labels: Any, seed: int) -> CompressionResult:
    """Add two baselines: the uncompressed rows, and rows whose columns are drawn independently."""
    from firth.evaluate import Compressed, CompressionResult, compression, two_sample

    uncompressed = compression(rows, {"original rows": Compressed(rows)}, labels, k=result.k, seed=seed)
    empty = next(iter(uncompressed.scores.values()))._replace(dim=0, neighbors=float("nan"), probe=float("nan"))
    drawn = empty._replace(two_sample_auc=two_sample(rows, independent, seed=seed))
    return CompressionResult(
        {**uncompressed.scores, **result.scores, "independent columns": drawn}, result.rows, result.k
    )
