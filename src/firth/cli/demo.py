"""`firth demo`: train, query, search and compare on the docstrings of the installed Python packages."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import choose_report, json_flag, print_json
from firth.cli.corpus import write_documents
from firth.core.errors import FirthError
from firth.core.remote import refuse_url
from firth.core.report import Report

if TYPE_CHECKING:
    from firth.core.vectors import Vectors
    from firth.data.corpus import Document
    from firth.evaluate.tables import NeighborTable
    from firth.words.word_model import WordModel

Echo = Callable[..., None]  # prints a line, or nothing with --json
FREQUENT = 5000  # neighbors come from the most frequent words; rare variable names would fill the tables
WORDS = ("median", "file", "random", "raises", "matrix")
QUERIES = (
    "median of an array",
    "inverse of a matrix",
    "shuffle a list",
    "delete a directory tree",
    "compress bytes",
    "eigenvalues of a symmetric matrix",
)
HELD_OUT = 20
# Docstrings are a small corpus: more epochs and a lower min_count than usual. A dozen settings gave the same search
# quality; these are among the fastest.
SETTINGS = {"dim": 100, "min_count": 3, "epochs": 10, "subsample": 1e-4}
# Rare words carry the topic of a text: with a higher weight for them, more of two dozen queries had the right result.
SMOOTHING = 1e-3


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]…")
@click.option(
    "-o",
    "--output",
    "folder",
    default="firth-demo",
    show_default=True,
    metavar="FOLDER",
    help="The folder of the corpus and the models.",
)
@json_flag
def command(queries: tuple[str, ...], folder: str, as_json: bool) -> None:
    """Train on the documentation of the installed Python packages, show neighbors, and search it for QUERIES.

    Run it again with other quoted QUERIES: the models are kept.
    """
    from firth.core.storage import check_writable, saying_where

    path = Path(folder)
    refuse_url(path)
    with saying_where(path):
        check_writable(path)  # before all docstrings are read
    if path.exists() and not path.is_dir():
        raise FirthError("unsafe_output", "{folder} is a file. Choose another folder for the demo.", folder=path)
    if as_json:
        print_json(run_demo(path, queries or QUERIES, lambda text="": None))
        return
    run_demo(path, queries or QUERIES, click.echo)
    heading("Next", click.echo)
    show_next(path)


def run_demo(folder: Path, queries: Sequence[str], echo: Echo) -> dict[str, Any]:
    """Run the steps of the demo, print each of them, and return the results."""
    report, results = choose_report(), dict[str, Any]()
    corpus, held_out = folder / "python.jsonl", folder / "held-out.jsonl"
    heading("1. A corpus: the docstrings of the installed Python packages", echo)
    documents = read_corpus(corpus, held_out, report, echo)
    results["documents"] = len(documents)
    heading("2. Train skip-gram and CBOW on it", echo)
    models = {name: train_model(name, corpus, folder / name, report, echo) for name in ("skipgram", "cbow")}
    results["models"] = {name: str(folder / name) for name in models}
    heading(f"3. Nearest neighbors (among the {FREQUENT:,} most frequent words)", echo)
    neighbors = neighbors_of({name: model.vectors for name, model in models.items()})
    results["neighbors"] = neighbors.to_json()
    echo(str(neighbors))
    heading("4. Search by meaning: queries and docstrings are means of word vectors", echo)
    results["search"] = search(models["skipgram"], documents, queries, echo)
    heading("5. Which model is better for these texts? Measured on held-out docstrings", echo)
    results["comparison"] = show_comparison(models, folder, held_out, echo)
    return results


def heading(text: str, echo: Echo) -> None:
    """Print the heading of a step."""
    echo(f"\n{click.style(text, bold=True)}\n")


def read_corpus(path: Path, held_out: Path, report: Report, echo: Echo) -> list[Document]:
    """Return the documents of the training file and the held-out file, which are written on first use."""
    from firth.data.corpus import Corpus
    from firth.data.docstrings import python_docstrings

    if not (path.exists() and held_out.exists()):
        docstrings = list(python_docstrings(report=report))
        write_documents(str(held_out), iter(docstrings[::HELD_OUT]))
        write_documents(str(path), (document for row, document in enumerate(docstrings) if row % HELD_OUT))
    documents = [document for file in (path, held_out) for document in Corpus(file, column="text", key="key")]
    packages = {document.key.partition(".")[0] for document in documents}
    echo(f"  {len(documents):,} docstrings of {len(packages):,} packages and modules, in {path}")
    echo(f"  one in {HELD_OUT} is held out, in {held_out}")
    return documents


def train_model(name: str, corpus: Path, folder: Path, report: Report, echo: Echo) -> WordModel:
    """Train a word model, or open it if it is finished."""
    from firth.core import registry
    from firth.core.options import build_settings
    from firth.core.report import human
    from firth.core.run import Run
    from firth.core.train import train
    from firth.data.corpus import Corpus
    from firth.words.word_model import WordModel

    method = build_settings(registry.method(name), SETTINGS)
    model = train(method, Corpus(corpus, column="text"), folder, run=Run(report=report)).model
    metrics = model.training
    speed, loss = human(metrics["words_per_second"]), metrics["loss"]
    echo(
        f"  {name:<8}  {metrics['tokens']:,} words × {SETTINGS['epochs']} in {metrics['seconds']:.1f} s "
        f"({speed} words/s), vocabulary {metrics['vocabulary']:,}, loss {loss:.3f}"
    )
    assert isinstance(model, WordModel)
    return model


def neighbors_of(tables: dict[str, Vectors]) -> NeighborTable:
    """Return the neighbors of a few words in each model."""
    from firth.evaluate.tables import neighbor_table

    words = [word for word in WORDS if all(word in table for table in tables.values())]
    return neighbor_table(tables, words, k=5, restrict=FREQUENT)


def search(
    model: WordModel, documents: Sequence[Document], queries: Sequence[str], echo: Echo
) -> dict[str, list[dict[str, Any]]]:
    """Print and return the public docstrings nearest to each query."""
    from firth.core.vectors import Vectors

    public = [(key, text) for key, text in documents if not re.search(r"(^|\.)_", key)]
    summaries = [first_paragraph(text) for _, text in public]
    texts = [f"{spoken(key)} {summary}" for (key, _), summary in zip(public, summaries, strict=True)]
    vectors, results = (
        Vectors([key for key, _ in public], model.embed(texts, smoothing=SMOOTHING)),
        dict[str, Any](),
    )
    for query, vector in zip(queries, model.embed(queries, smoothing=SMOOTHING), strict=True):
        echo(f"  “{query}”")
        if not vector.any():
            echo("    none of its words is in the vocabulary")
        hits = vectors.neighbors(vector, k=5) if vector.any() else ()
        results[query] = [{**hit._asdict(), "summary": summaries[vectors.row(hit.key)]} for hit in hits]
        for hit in results[query]:
            echo(f"    {hit['score']:.2f}  {hit['key']:<34}  {shortened(hit['summary'], 70)}")
        echo()
    return results


def show_comparison(models: dict[str, WordModel], folder: Path, held_out: Path, echo: Echo) -> dict[str, Any]:
    """Print and return the comparison of the models on the held-out docstrings."""
    from firth.studies import compare

    comparison = compare(models, held_out, column="text", name="key")
    echo(str(comparison))
    paths = " ".join(str(folder / name) for name in models)
    echo("\nThe same as a page with pictures:\n")
    echo(f"  {program()} compare models {paths} --data {held_out} --column text --name key -o report.html")
    return comparison.to_json()


def spoken(key: str) -> str:
    """Return the words of a name without its package: numpy.linalg.eigh -> linalg eigh."""
    inside = key.partition(".")[2] or key
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[._]", " ", inside)


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring, without the signature that C functions put before it."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip(), maxsplit=2)]
    without_signature = [
        paragraph for paragraph in paragraphs[:2] if not re.fullmatch(r"[\w.]+\(.*\)( ?->.*)?", paragraph)
    ]
    return (without_signature or paragraphs)[0]


def shortened(text: str, length: int) -> str:
    """Return the text, shortened to a length."""
    return text if len(text) <= length else text[: length - 1] + "…"


def show_next(folder: Path) -> None:
    """Print commands to try next."""
    model, firth = folder / "skipgram", program()
    commands = {
        f"{firth} query neighbors {model} matrix python": "neighbors of other words",
        f'{firth} demo -o {folder} "read a text file"': "another search",
        f"{firth} plot map {model} -o map.png": "a map of the words",
    }
    width = max(map(len, commands))
    for line, meaning in commands.items():
        click.echo(f"  {line:<{width}}   {meaning}")
    click.echo("\nWith your own text (one document per line; also jsonl, csv, Parquet, and .gz of these):\n")
    click.echo(f"  {firth} train skipgram TEXT -o MODEL")
    click.echo(f"  {firth} query neighbors MODEL WORD")
    click.echo(f"  {firth} embed MODEL TEXT --smoothing {SMOOTHING:g} -o vectors.npy")
    click.echo("\nBoth models in the workbench, at the address that this prints:\n")
    click.echo(f"  {firth} studio {folder / 'skipgram'} {folder / 'cbow'} --root {folder}")


def program() -> str:
    """Return how to call this program: by its name if the shell finds it, otherwise by its path."""
    return sys.argv[0] if Path(sys.argv[0]).name == "firth" and not shutil.which("firth") else "firth"
