"""`firth plot`: pictures as PNG or SVG, by the suffix of the output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from firth.cli.common import (
    Function,
    choose_report,
    json_flag,
    metric_option,
    open_model,
    open_table_input,
    open_vectors,
    print_json,
    protect_inputs,
    resolve_keys,
    restrict_option,
    table_option,
    unsupported,
)
from firth.cli.groups import CommandGroup
from firth.core.errors import FirthError
from firth.core.remote import as_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from firth.tables.table_model import TableModel

column_option = click.option("--column", metavar="NAME", help="The text column (jsonl, csv, tsv, Parquet).")


def picture(function: Function) -> Function:
    """Add -o FILE and --json to a command, and print the file name."""

    @click.option("-o", "--output", required=True, metavar="FILE", help="A .png or .svg file.")
    @json_flag
    @wraps(function)
    def command(output: str, as_json: bool, **values: Any) -> None:
        protect_inputs(output)
        function(output=output, **values)
        print_json({"output": output}) if as_json else click.echo(output)

    return cast(Function, command)


@click.group(cls=CommandGroup)
def command() -> None:
    """Draw maps, analogies, losses, confusion matrices, word frequencies, matrices, codes and more."""


@command.command("map")
@click.argument("path", metavar="MODEL")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option("-k", type=int, default=150, show_default=True, help="Without WORDs: the k most frequent words.")
@click.option("--highlight", multiple=True, metavar="WORD", help="Draw this word in another color; repeatable.")
@click.option("--method", type=click.Choice(("pca", "tsne", "umap")), default="pca", show_default=True)
@click.option("--save", is_flag=True, help="Compute the layout of all words and save it in the model folder.")
@restrict_option
@table_option
@click.option("--metric", type=click.Choice(("cosine", "euclidean")), default="cosine", show_default=True)
@click.option(
    "--neighbors", type=int, metavar="N", help="The perplexity of t-SNE  [30], or the neighbors of UMAP  [15]."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed of the random numbers.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Worker threads; 0 = one per core.")
@click.option("-o", "--output", metavar="FILE", help="A .png or .svg file; optional with --save.")
@json_flag
def map_(path: str, output: str | None, as_json: bool, **values: Any) -> None:
    """Draw words in two dimensions by PCA, t-SNE or UMAP, and print the share of neighbors that the map preserves.

    With --save the layout is saved in the model folder, is used by the workbench, and is not computed again. t-SNE and
    UMAP need the extra `maps`.
    """
    from firth.core.run import Run
    from firth.core.vectors import Vectors
    from firth.maps import layout, plot_map, saved_layout
    from firth.maps.drawing import check_suffix
    from firth.maps.layouts import MIN_POINTS

    if output:
        check_suffix(output)  # before the computation
    elif not values["save"]:
        raise click.UsageError("Missing option '-o': the file of the picture, which is optional with --save.")
    vectors = open_vectors(path, values["table"])
    words = resolve_keys(vectors, values["words"])
    words = words or list(vectors.keys[: min(max(0, values["k"]), values["restrict"] or len(vectors))])
    highlighted = resolve_keys(vectors, values["highlight"])
    shown = list(dict.fromkeys([*highlighted, *words]))
    rows = [vectors.row(word) for word in shown]  # unknown words are an error before the computation
    run = Run(seed=values["seed"], threads=values["threads"], report=choose_report())
    settings = {"metric": values["metric"], "neighbors": values["neighbors"], "run": run}
    computed = None
    if values["save"]:
        computed = saved_layout(path, values["method"], table=values["table"], restrict=values["restrict"], **settings)
    elif len(rows) >= MIN_POINTS or values["method"] != "pca":  # two or three words have no neighborhoods to preserve
        computed = layout(Vectors(shown, vectors.matrix[rows]), values["method"], **settings)
    if output:
        plot_map(vectors, shown, output, highlight=highlighted, layout=computed)
    if as_json:
        score = (
            {"method": computed.method, "points": len(computed.keys), **computed.score._asdict()} if computed else {}
        )
        print_json({**score, "saved": values["save"], "output": output})
        return
    if computed:
        click.echo(computed)
    if output:
        click.echo(output)


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("pairs", nargs=-1, required=True, metavar="A:B…")
@picture
def analogies(path: str, pairs: tuple[str, ...], output: str) -> None:
    """Draw a line from A to B for each pair A:B, such as paris:france rome:italy."""
    from firth.maps import plot_analogies

    split = [tuple(pair.split(":")) for pair in pairs]
    if any(len(pair) != 2 or not all(pair) for pair in split):
        raise click.UsageError("Pairs have the form A:B, such as paris:france.")
    vectors = open_vectors(path)
    words = iter(resolve_keys(vectors, [word for pair in split for word in pair]))
    plot_analogies(vectors, list(zip(words, words, strict=True)), output)


@command.command()
@click.argument("path", metavar="MODEL")
@picture
def loss(path: str, output: str) -> None:
    """Draw the loss by epoch of a trained model; for a VAE, the parts of the loss."""
    from firth.maps import plot_loss, plot_parts

    model = open_model(path)
    training = model.training
    if not training.get("epochs") or not isinstance(training["epochs"], list):  # a number in a fastText file
        raise unsupported(model, path, "has no loss by epoch")
    parts = sum("kl" in measured for measured in training.get("held_out", ())) > 1
    (plot_parts if parts else plot_loss)(training, output)


@command.command()
@click.argument("path", metavar="MODEL")
@picture
def curve(path: str, output: str) -> None:
    """Draw the development score of a fine-tuned model during training, one curve per trial."""
    from firth.maps import plot_curve

    plot_curve(open_model(path).training, output)


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--column", metavar="NAME", help="The text column.")
@click.option("--other", metavar="NAME", help="The column of the second text, for text pairs.")
@click.option("--label", metavar="NAME", help="The label column.")
@picture
def confusion(path: str, data: str, column: str | None, other: str | None, label: str | None, output: str) -> None:
    """Draw the confusion matrix of a classifier on labeled texts."""
    from firth.cli.evaluate.classification import score_labels
    from firth.evaluate import LabelResult
    from firth.maps import plot_confusion

    model = open_model(path)
    result = score_labels(model, path, data, column=column, other=other, label=label)
    if not isinstance(result, LabelResult):
        raise unsupported(model, path, "predicts numbers, which have no confusion matrix")
    plot_confusion(result.confusion, output)


@command.command()
@click.argument("path", metavar="MODEL")
@column_option
@picture
def zipf(path: str, column: str | None, output: str) -> None:
    """Draw word frequency by rank, from the vocabulary of a model or from a text file."""
    from firth.maps import plot_zipf

    plot_zipf(word_counts(path, column), output)


@command.command()
@click.argument("path", metavar="MODEL")
@click.option("-k", type=click.IntRange(2, 40), default=16, show_default=True, help="How many frequent words to draw.")
@column_option
@picture
def tree(path: str, k: int, column: str | None, output: str) -> None:
    """Draw the Huffman tree of the most frequent words, from the vocabulary of a model or from a text file."""
    from firth.maps import plot_tree

    plot_tree(word_counts(path, column), k, output)


@command.command()
@click.argument("path", metavar="[MODEL]", required=False)
@click.option("-k", type=click.IntRange(2, 512), default=64, show_default=True, help="How many positions to draw.")
@click.option(
    "--dim", type=click.IntRange(2, 4096), default=64, show_default=True, help="Without MODEL: the dimension."
)
@picture
def positions(path: str | None, k: int, dim: int, output: str) -> None:
    """Draw the position vectors of a BERT or GPT, or without MODEL the sinusoids of the Transformer."""
    from firth.core.model import HasPositions
    from firth.maps import plot_positions
    from firth.training.network_options import networks

    if path is None:
        with networks():
            from firth.nets.positions import sinusoids
        table: NDArray[np.float32] = sinusoids(k, dim).numpy()
    else:
        model = open_model(path)
        if not isinstance(model, HasPositions) or model.position_vectors is None:
            raise unsupported(model, path, "has no position vectors", "bert and gpt models do.")
        table = model.position_vectors
    title = f"Positions of {Path(path).name}" if path else "Sinusoidal positions"
    plot_positions(table[:k], output, title)


def word_counts(path: str, column: str | None) -> Mapping[str, int]:
    """Return the word counts of a model or of a text file."""
    from firth.data.vocabulary import HasVocabulary

    if as_path(path).is_dir():
        if column:
            raise FirthError(
                "unsupported_model",
                "--column applies to a data file, and {path} is a model. Omit it.",
                path=path,
            )
        model = open_model(path)
        if not isinstance(model, HasVocabulary):
            raise unsupported(model, path, "has no word counts", "Give a text file.")
        vocabulary = model.vocabulary
    else:
        from firth.core.run import Run
        from firth.data.corpus import Corpus
        from firth.data.tokens import read_tokens

        vocabulary = read_tokens(Corpus(path, column=column), min_count=1, run=Run(report=choose_report())).vocabulary
    counted = zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    return {word: count for word, count in counted if count > 0}


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("words", nargs=-1, required=True, metavar="WORD…")
@metric_option
@picture
def similarity(path: str, words: tuple[str, ...], metric: str, output: str) -> None:
    """Draw the similarity matrix of the WORDs."""
    from firth.maps import plot_similarity

    vectors = open_vectors(path)
    plot_similarity(vectors, resolve_keys(vectors, words), output, metric)


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("rows", nargs=-1, metavar="[ROW]…")
@click.option(
    "-k",
    type=click.IntRange(1, 60),
    default=12,
    show_default=True,
    help="How many columns: those with the largest sums.",
)
@click.option("--counts", is_flag=True, help="PMI model: raw co-occurrence counts instead of PMI.")
@picture
def heatmap(path: str, rows: tuple[str, ...], k: int, counts: bool, output: str) -> None:
    """Draw a block of a count matrix: PMI of words and contexts, or tf-idf or counts of documents and words.

    ROWs are words of a PMI model, or documents of a tf-idf or counts model; the default is the first twelve.
    """
    import numpy as np

    from firth.core.model import HasMatrix
    from firth.core.vectors import top_rows
    from firth.maps import plot_block
    from firth.words.pmi import PMIModel

    model = open_model(path)
    if not isinstance(model, HasMatrix):
        raise unsupported(model, path, "has no count matrix", "counts, tfidf and pmi models do.")
    names, columns = model.matrix_keys
    positions = {name: position for position, name in enumerate(names)}
    unknown = [row for row in rows if row not in positions]
    if unknown:
        raise FirthError(
            "unknown_key",
            "{path} has no row {unknown!r}. It has {n_available:,} rows, such as {available}.",
            path=path,
            unknown=unknown[0],
            n_available=len(names),
            available=", ".join(names[:3]),
        )
    row_ids = [positions[row] for row in rows] or list(range(min(12, len(names))))
    if counts and not isinstance(model, PMIModel):
        raise unsupported(model, path, "has no co-occurrence counts", "pmi models do.")
    matrix = model.counts if counts and isinstance(model, PMIModel) else model.matrix
    part = matrix[row_ids]
    largest = top_rows(np.asarray(abs(part).sum(axis=0), dtype=np.float32).ravel(), k)
    block = part[:, largest].toarray()
    shown = "Counts" if counts else type(model.method).__name__
    title = f"{shown} of {len(row_ids)} rows and their {len(largest)} largest columns"
    options, caption = model.method.options(), ""
    if "smoothing" in options and not counts:
        smoothing = f"smoothing {options['smoothing']:g}"
        caption = f"variant {options['variant']}, {smoothing}; plain PMI: firth query associations"
    plot_block(block, [names[row] for row in row_ids], [columns[column] for column in largest], output, title, caption)


@command.command()
@click.argument("path", metavar="MODEL")
@picture
def variance(path: str, output: str) -> None:
    """Draw the explained variance of the dimensions of an LSA or PCA model."""
    from firth.core.model import ExplainsVariance
    from firth.maps import plot_variance

    model = open_model(path)
    if not isinstance(model, ExplainsVariance):
        raise unsupported(model, path, "has no explained variance", "lsa and pca models do.")
    plot_variance(model.explained_variance, output)


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("table")
@click.option("--label", metavar="NAME", help="A column of TABLE that colors the points.")
@picture
def codes(path: str, table: str, label: str | None, output: str) -> None:
    """Draw the rows of TABLE by the codes of an autoencoder, VAE or PCA model."""
    from firth.maps import plot_codes

    model = table_model(path)
    rows = open_table_input(table)
    opened = model.open(rows)
    labels = [value or "" for value in opened.categories(label)] if label else None
    name = type(model.method).__name__
    plot_codes(model.embed(opened), labels, output, title=f"{name}: codes of {len(opened):,} rows")


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("table")
@click.option(
    "--shape", required=True, metavar="HxW", help="Height and width of an image, as in 8x8; columns are in row order."
)
@click.option("-k", type=click.IntRange(2, 40), default=12, show_default=True, help="Images per line.")
@picture
def images(path: str, table: str, shape: str, k: int, output: str) -> None:
    """Draw rows of TABLE as images: original, reconstructed, interpolated between the first two, and sampled (VAE)."""
    import numpy as np

    from firth.core.model import Interpolates, Samples
    from firth.maps import plot_images

    size = [int(part) for part in shape.lower().split("x") if part.isdecimal()]
    if len(size) != 2:
        raise click.UsageError("--shape takes height x width, as in 8x8.")
    model = table_model(path)
    rows = model.open(open_table_input(table)).slice(0, k)

    def pixels(images: Any) -> Any:
        return np.stack([images.numbers(name) for name in model.names], axis=1)

    lines = {"original": pixels(rows), "reconstructed": pixels(model.reconstruct(rows))}
    if isinstance(model, Interpolates):
        lines["interpolated"] = pixels(model.interpolate(rows, 0, 1, k))
    if isinstance(model, Samples):
        lines |= {"sampled": pixels(model.sample(k, seed=1, noise=False))}
        lines |= {"": pixels(model.sample(k, seed=2, noise=False))}
    name, dim = type(model.method).__name__, len(model.feature_names)
    plot_images(lines, (size[0], size[1]), output, title=f"{name}: {len(model.names)} pixels, {dim} dimensions")


@command.command()
@click.argument("path", metavar="MODEL")
@click.argument("table")
@click.option("-n", type=click.IntRange(1), default=2000, show_default=True, help="How many rows to sample.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed of the random numbers.")
@picture
def samples(path: str, table: str, n: int, seed: int, output: str) -> None:
    """Draw the distribution of each column in TABLE and in rows sampled from a VAE."""
    from firth.core.model import Samples
    from firth.maps import plot_columns

    model = table_model(path)
    if not isinstance(model, Samples):
        raise unsupported(model, path, "cannot sample rows", "vae models can.")
    plot_columns(table_model(path).open(table).to_dict(), model.sample(n, seed=seed).to_dict(), output)


def table_model(path: str) -> TableModel:
    """Open a model of tables, which reconstructs rows."""
    from firth.tables.table_model import TableModel

    model = open_model(path)
    if not isinstance(model, TableModel):
        raise unsupported(model, path, "is not a table model", "autoencoder, vae and pca models are.")
    return model
