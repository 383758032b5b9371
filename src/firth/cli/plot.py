"""`firth plot`: pictures, PNG or SVG by the suffix of the output."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from firth.cli.common import (
    Function,
    as_keys,
    choose_report,
    json_flag,
    metric_option,
    open_model,
    open_rows,
    open_vectors,
    print_json,
    restrict_option,
    table_option,
)
from firth.core.errors import FirthError

column_option = click.option("--column", metavar="NAME", help="The text's column (jsonl, csv, tsv, Parquet).")


def picture(function: Function) -> Function:
    """-o FILE, where the picture goes, and --json; what was written is told."""

    @click.option("-o", "--output", required=True, metavar="FILE", help="A .png or .svg.")
    @json_flag
    @wraps(function)
    def command(output: str, as_json: bool, **values: Any) -> None:
        function(output=output, **values)
        print_json({"output": output}) if as_json else click.echo(output)

    return cast(Function, command)


@click.group()
def command() -> None:
    """Draw maps, analogies, losses, confusions, word frequencies, trees, matrices, places, codes."""


@command.command("map")
@click.argument("path")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option("-k", type=int, default=150, show_default=True, help="Without WORDs: this many, the most frequent.")
@click.option("--highlight", multiple=True, metavar="WORD", help="Show this word in another colour; may be repeated.")
@click.option("--method", type=click.Choice(("pca", "tsne", "umap")), default="pca", show_default=True)
@click.option("--save", is_flag=True, help="Place all words, not only those named, and keep the map in the model.")
@restrict_option
@table_option
@click.option("--metric", type=click.Choice(("cosine", "euclidean")), default="cosine", show_default=True)
@click.option("--neighbors", type=int, metavar="N", help="How many count: t-SNE's perplexity [30], UMAP's [15].")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--threads", type=click.IntRange(0), default=0, help="0: one for each core.")
@click.option("-o", "--output", metavar="FILE", help="A .png or .svg; may be left out with --save.")
@json_flag
def map_(path: str, output: str | None, as_json: bool, **values: Any) -> None:
    """Words on a plane: their two principal components, t-SNE or UMAP, and how many neighbours that keeps.

    With --save the map is kept in the model's folder, where the workbench finds it; asked again, it is not made again.
    t-SNE and UMAP need the extra `maps`.
    """
    from firth.core.run import Run
    from firth.core.vectors import Vectors
    from firth.maps import layout, plot_map, saved_layout
    from firth.maps.drawing import check_suffix
    from firth.maps.layouts import MIN_POINTS

    if output:
        check_suffix(output)  # before the work, not after it
    elif not values["save"]:
        raise click.UsageError("Missing option '-o': where the picture goes. With --save it may be left out.")
    vectors = open_vectors(path, values["table"])
    named = as_keys(vectors, values["words"])
    named = named or list(vectors.keys[: min(max(0, values["k"]), values["restrict"] or len(vectors))])
    marked = as_keys(vectors, values["highlight"])
    shown = list(dict.fromkeys([*marked, *named]))
    rows = [vectors.row(word) for word in shown]  # unknown words are refused before the work, too
    run = Run(seed=values["seed"], threads=values["threads"], report=choose_report())
    how = {"metric": values["metric"], "neighbors": values["neighbors"], "run": run}
    made = None
    if values["save"]:
        made = saved_layout(path, values["method"], table=values["table"], restrict=values["restrict"], **how)
    elif (
        len(rows) >= MIN_POINTS or values["method"] != "pca"
    ):  # two or three words have components, and no neighbourhoods
        made = layout(Vectors(shown, vectors.matrix[rows]), values["method"], **how)
    if output:
        plot_map(vectors, shown, output, highlight=marked, layout=made)
    if as_json:
        facts = {"method": made.method, "points": len(made.keys), **made.score._asdict()} if made else {}
        print_json({**facts, "saved": values["save"], "output": output})
        return
    if made:
        click.echo(made)
    if output:
        click.echo(output)


@command.command()
@click.argument("path")
@click.argument("pairs", nargs=-1, required=True, metavar="A:B…")
@picture
def analogies(path: str, pairs: tuple[str, ...], output: str) -> None:
    """A line from A to B for each pair A:B, such as paris:france rome:italy."""
    from firth.maps import plot_analogies

    split = [tuple(pair.split(":")) for pair in pairs]
    if any(len(pair) != 2 or not all(pair) for pair in split):
        raise click.UsageError("Pairs are written A:B, such as paris:france.")
    vectors = open_vectors(path)
    words = iter(as_keys(vectors, [word for pair in split for word in pair]))
    plot_analogies(vectors, list(zip(words, words, strict=True)), output)


@command.command()
@click.argument("path")
@picture
def loss(path: str, output: str) -> None:
    """The loss by epoch of a trained model; of a VAE, by its parts."""
    from firth.maps import plot_loss, plot_parts

    model = open_model(path)
    training = model.training
    if not training.get("epochs") or not isinstance(training["epochs"], list):  # of fastText's own file, a number
        method = type(model.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{path} has no loss by epoch ({method}); models that Firth trained in epochs have one.",
            path=path,
            method=method,
        )
    parts = sum("kl" in measured for measured in training.get("held_out", ())) > 1
    (plot_parts if parts else plot_loss)(training, output)


@command.command()
@click.argument("path")
@picture
def curve(path: str, output: str) -> None:
    """The score on dev data while a network learned a task, of each try."""
    from firth.maps import plot_curve

    plot_curve(open_model(path).training, output)


@command.command()
@click.argument("path")
@click.argument("data", metavar="DATA")
@click.option("--column", metavar="NAME", help="The text's column.")
@click.option("--other", metavar="NAME", help="The column of the second texts, of pairs.")
@click.option("--label", metavar="NAME", help="The column of labels.")
@picture
def confusion(path: str, data: str, column: str | None, other: str | None, label: str | None, output: str) -> None:
    """Which labels a classifier takes for which, on labelled texts."""
    from firth.cli.evaluate import judged_labels
    from firth.evaluate import LabelResult
    from firth.maps import plot_confusion

    settings = {"column": column, "other": other, "label": label, "k": 1}
    found = judged_labels(open_model(path), path, data, settings)
    if not isinstance(found, LabelResult):
        raise FirthError("unsupported_model", "{path} predicts numbers; confusion is for labels.", path=path)
    plot_confusion(found.confusion, output)


@command.command()
@click.argument("path")
@column_option
@picture
def zipf(path: str, column: str | None, output: str) -> None:
    """Word frequency by rank, of a model's vocabulary or of a text file."""
    from firth.maps import plot_zipf

    plot_zipf(word_counts(path, column), output)


@command.command()
@click.argument("path")
@click.option("-k", type=click.IntRange(2, 40), default=16, show_default=True, help="The most frequent words.")
@column_option
@picture
def tree(path: str, k: int, column: str | None, output: str) -> None:
    """Huffman's tree of the most frequent words, of a model's vocabulary or of a text file, and what it saves."""
    from firth.maps import plot_tree

    plot_tree(word_counts(path, column), k, output)


@command.command()
@click.argument("path", metavar="[MODEL]", required=False)
@click.option("-n", type=click.IntRange(2, 512), default=64, show_default=True, help="So many places.")
@click.option("--dim", type=click.IntRange(2, 4096), default=64, show_default=True, help="Without MODEL: of the waves.")
@picture
def places(path: str | None, n: int, dim: int, output: str) -> None:
    """The vectors that tell a network where a token stands: those of a BERT or GPT, or the waves of the Transformer."""
    from firth.maps import plot_positions
    from firth.training.network_options import torch_module

    table: Any
    if path is None:
        torch_module("transformers.language_modeling")  # tells how to get torch where it is missing
        from firth.nets.positions import sinusoids

        table = sinusoids(n, dim).numpy()
    else:
        table = getattr(open_model(path), "position_vectors", None)
        if table is None:
            raise FirthError(
                "unsupported_model", "{path} adds no vectors for places; places is for bert and gpt models.", path=path
            )
    title = f"Places of {Path(path).name}" if path else "Places as waves (sinusoids)"
    plot_positions(table[:n], output, title)


def word_counts(path: str, column: str | None) -> Mapping[str, int]:
    if Path(path).is_dir():
        if column:
            raise FirthError(
                "unsupported_model",
                "--column is of a file of texts; {path} is a model, which has its words.",
                path=path,
            )
        vocabulary: Any = getattr(open_model(path), "vocabulary", None)
        if vocabulary is None:
            raise FirthError(
                "unsupported_model", "{path} is a model without counts of words; give a text file.", path=path
            )
    else:
        from firth.cli.common import choose_report
        from firth.core.run import Run
        from firth.data.corpus import Corpus
        from firth.data.tokens import read_tokens

        vocabulary = read_tokens(Corpus(path, column=column), min_count=1, run=Run(report=choose_report())).vocabulary
    counted = zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    return {word: count for word, count in counted if count > 0}


@command.command()
@click.argument("path")
@click.argument("words", nargs=-1, required=True, metavar="WORD…")
@metric_option
@picture
def similarity(path: str, words: tuple[str, ...], metric: str, output: str) -> None:
    """Every WORD with every other, as colour and number."""
    from firth.maps import plot_similarity

    vectors = open_vectors(path)
    plot_similarity(vectors, as_keys(vectors, words), output, metric)


@command.command()
@click.argument("path")
@click.argument("rows", nargs=-1, metavar="[ROW]…")
@click.option(
    "-k", type=click.IntRange(1, 60), default=12, show_default=True, help="Columns: the heaviest of the rows."
)
@click.option("--counts", is_flag=True, help="Of a PMI model: how often words met, not how much that is.")
@picture
def heatmap(path: str, rows: tuple[str, ...], k: int, counts: bool, output: str) -> None:
    """A block of a counted matrix: PMI of words with contexts, tf-idf or counts of documents with words.

    ROWs are words of a PMI model, or documents of a tf-idf or counts model; without them the first twelve.
    """
    import numpy as np

    from firth.core.model import HasMatrix
    from firth.core.vectors import top_rows
    from firth.maps import plot_block

    model = open_model(path)
    if not isinstance(model, HasMatrix):
        raise FirthError(
            "unsupported_model", "{path} keeps no matrix; heatmap is for counts, tfidf and pmi models.", path=path
        )
    names, columns = model.matrix_keys
    places = {name: place for place, name in enumerate(names)}
    unknown = [row for row in rows if row not in places]
    if unknown:
        raise FirthError(
            "unknown_key",
            "{path} has no row {unknown!r}; there are {n_available:,}, such as {available}.",
            path=path,
            unknown=unknown[0],
            n_available=len(names),
            available=", ".join(names[:3]),
        )
    chosen = [places[row] for row in rows] or list(range(min(12, len(names))))
    matrix: Any = getattr(model, "counts", None) if counts else model.matrix
    if matrix is None:
        raise FirthError(
            "unsupported_model",
            "{path} has no counts of words that met ({method}); pmi models do.",
            path=path,
            method=type(model.method).method_name(),
        )
    part = matrix[chosen]
    heaviest = top_rows(np.asarray(abs(part).sum(axis=0), dtype=np.float32).ravel(), k)
    block = part[:, heaviest].toarray()
    shown = "Counts" if counts else type(model.method).__name__
    title = f"{shown} of {len(chosen)} rows and their {len(heaviest)} heaviest columns"
    how, note = model.method.options(), ""
    if "smoothing" in how and not counts:
        note = f"variant {how['variant']}, smoothing {how['smoothing']:g}; plain PMI: firth associations"
    plot_block(block, [names[row] for row in chosen], [columns[column] for column in heaviest], output, title, note)


@command.command()
@click.argument("path")
@picture
def variance(path: str, output: str) -> None:
    """How much of the data the first dimensions of an LSA or PCA model account for."""
    from firth.maps import plot_variance

    shares = getattr(open_model(path), "explained_variance", None)
    if shares is None:
        raise FirthError(
            "unsupported_model",
            "{path} does not say what its dimensions explain; variance is for lsa and pca models.",
            path=path,
        )
    plot_variance(shares, output)


@command.command()
@click.argument("path")
@click.argument("table")
@click.option("--label", metavar="NAME", help="A column of TABLE that colours the points.")
@picture
def codes(path: str, table: str, label: str | None, output: str) -> None:
    """Where the rows of TABLE lie, by the codes of an autoencoder, VAE or PCA."""
    from firth.maps import plot_codes

    model = table_model(path)
    rows = open_rows(table)
    opened = model.open(rows)
    labels = [value or "" for value in opened.categories(label)] if label else None
    name = type(model.method).__name__
    plot_codes(model.embed(opened), labels, output, title=f"{name}: codes of {len(opened):,} rows")


@command.command()
@click.argument("path")
@click.argument("table")
@click.option("--shape", required=True, metavar="HxW", help="Pixels of an image, as in 8x8; the columns are its rows.")
@click.option("-k", type=click.IntRange(2, 40), default=12, show_default=True, help="Images a line.")
@picture
def images(path: str, table: str, shape: str, k: int, output: str) -> None:
    """Rows of TABLE as images: as given, rebuilt, on the way from the first to the second, and (of a VAE) made up."""
    import numpy as np

    from firth.maps import plot_images

    size = [int(part) for part in shape.lower().split("x") if part.isdecimal()]
    if len(size) != 2:
        raise click.UsageError("--shape is height x width, as in 8x8.")
    model = table_model(path)
    rows = model.open(open_rows(table)).slice(0, k)

    def pixels(found: Any) -> Any:
        return np.stack([found.numbers(name) for name in model.names], axis=1)

    lines = {"given": pixels(rows), "rebuilt": pixels(model.reconstruct(rows))}
    if hasattr(model, "interpolate"):
        lines["between"] = pixels(model.interpolate(rows, 0, 1, k))
    if hasattr(model, "sample"):
        lines |= {"made up": pixels(model.sample(k, seed=1, noise=False))}
        lines |= {"": pixels(model.sample(k, seed=2, noise=False))}
    name, dim = type(model.method).__name__, len(model.feature_names)
    plot_images(lines, (size[0], size[1]), output, title=f"{name}: {len(model.names)} pixels through {dim} numbers")


@command.command()
@click.argument("path")
@click.argument("table")
@click.option("-n", type=click.IntRange(1), default=2000, show_default=True, help="How many rows are made up.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@picture
def samples(path: str, table: str, n: int, seed: int, output: str) -> None:
    """The columns of TABLE, and of rows that a VAE makes up: how often each value stands there."""
    from firth.core.model import Samples
    from firth.maps import plot_columns

    model = table_model(path)
    if not isinstance(model, Samples):
        raise FirthError(
            "unsupported_model",
            "{path} can't make up rows ({method}); vae models can.",
            path=path,
            method=type(model.method).method_name(),
        )
    plot_columns(table_model(path).open(table).to_dict(), model.sample(n, seed=seed).to_dict(), output)


def table_model(path: str) -> Any:
    model: Any = open_model(path)
    if model.method.kind != "table" or not hasattr(model, "reconstruct"):
        raise FirthError(
            "unsupported_model",
            "{path} is no model of tables ({method}).",
            path=path,
            method=type(model.method).method_name(),
        )
    return model
