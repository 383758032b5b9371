"""`firth demo`: the whole road on text that every machine has, the documentation inside its Python packages."""

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
from firth.core.report import Report

if TYPE_CHECKING:
    from firth.core.vectors import Vectors
    from firth.data.corpus import Document
    from firth.evaluate.tables import NeighborTable
    from firth.words.word_model import WordModel

Echo = Callable[..., None]  # prints a line, or nothing with --json
FREQUENT = 5000  # neighbours are taken from so many words: rare names of variables would crowd the tables
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
# Docstrings are a small text: more passes than on a large one, and words met three times count. A dozen settings gave
# searches of the same quality; these are among the quickest.
SETTINGS = {"dim": 100, "min_count": 3, "epochs": 10, "subsample": 1e-4}
# Rare words say what a text is about: with them weighing more, more of two dozen queries found what they were after.
SMOOTHING = 1e-3


@click.command()
@click.argument("queries", nargs=-1, metavar="[QUERY]…")
@click.option("--folder", default="firth-demo", show_default=True, help="Where corpus and models go.")
@json_flag
def command(queries: tuple[str, ...], folder: str, as_json: bool) -> None:
    """Learn from the documentation of the installed Python packages, show neighbours, and search it for QUERIES.

    Run it again with other QUERIES, in quotes: the models are kept.
    """
    place = Path(folder)
    if as_json:
        print_json(shown(place, queries or QUERIES, lambda text="": None))
        return
    shown(place, queries or QUERIES, click.echo)
    heading("Next", click.echo)
    show_next(place)


def shown(place: Path, queries: Sequence[str], echo: Echo) -> dict[str, Any]:
    """The steps of the demo, each told as it is done; what they found."""
    report, found = choose_report(), dict[str, Any]()
    corpus, held_out = place / "python.jsonl", place / "held-out.jsonl"
    heading("1. A corpus: the docstrings of the installed Python packages", echo)
    documents = read_corpus(corpus, held_out, report, echo)
    found["documents"] = len(documents)
    heading("2. Skip-gram and CBOW learn from it", echo)
    models = {name: learn(name, corpus, place / name, report, echo) for name in ("skipgram", "cbow")}
    found["models"] = {name: str(place / name) for name in models}
    heading(f"3. Words that keep the same company (of the {FREQUENT:,} most frequent)", echo)
    neighbors = neighbors_of({name: model.vectors for name, model in models.items()})
    found["neighbors"] = neighbors.to_json()
    echo(str(neighbors))
    heading("4. Search by meaning: a query and a docstring are means of their words' vectors", echo)
    found["search"] = search(models["skipgram"], documents, queries, echo)
    heading("5. Which model is best for these texts? Asked about the docstrings that were held out", echo)
    found["comparison"] = show_comparison(models, place, held_out, echo)
    return found


def heading(text: str, echo: Echo) -> None:
    echo(f"\n{click.style(text, bold=True)}\n")


def read_corpus(path: Path, held_out: Path, report: Report, echo: Echo) -> list[Document]:
    """The documents of both files, one to learn from and one to be asked about; they are made at the first use."""
    from firth.data.corpus import Corpus
    from firth.data.docstrings import python_docstrings

    if not (path.exists() and held_out.exists()):
        found = list(python_docstrings(report=report))
        write_documents(str(held_out), iter(found[::HELD_OUT]))
        write_documents(str(path), (document for place, document in enumerate(found) if place % HELD_OUT))
    documents = [document for file in (path, held_out) for document in Corpus(file, column="text", key="key")]
    packages = {document.key.partition(".")[0] for document in documents}
    echo(f"  {len(documents):,} docstrings of {len(packages):,} packages and modules, in {path}")
    echo(f"  one in {HELD_OUT} of them is held out, in {held_out}")
    return documents


def learn(name: str, corpus: Path, folder: Path, report: Report, echo: Echo) -> WordModel:
    from firth.core import registry
    from firth.core.options import build_settings
    from firth.core.report import human
    from firth.core.run import Run
    from firth.core.train import train
    from firth.data.corpus import Corpus

    method = build_settings(registry.method(name), SETTINGS)
    model: Any = train(method, Corpus(corpus, column="text"), folder, run=Run(report=report)).model
    figures = model.training
    speed, loss = human(figures["words_per_second"]), figures["loss"]
    echo(
        f"  {name:<8}  {figures['tokens']:,} words × {SETTINGS['epochs']} in {figures['seconds']:.1f} s "
        f"({speed} words/s), vocabulary {figures['vocabulary']:,}, loss {loss:.3f}"
    )
    found: WordModel = model
    return found


def neighbors_of(tables: dict[str, Vectors]) -> NeighborTable:
    from firth.evaluate.tables import neighbor_table

    words = [word for word in WORDS if all(word in table for table in tables.values())]
    return neighbor_table(tables, words, k=5, restrict=FREQUENT)


def search(
    model: WordModel, documents: Sequence[Document], queries: Sequence[str], echo: Echo
) -> dict[str, list[dict[str, Any]]]:
    from firth.core.vectors import Vectors

    public = [(key, text) for key, text in documents if not re.search(r"(^|\.)_", key)]
    summaries = [first_paragraph(text) for _, text in public]
    texts = [f"{spoken(key)} {summary}" for (key, _), summary in zip(public, summaries, strict=True)]
    vectors, found = Vectors([key for key, _ in public], model.pool(texts, SMOOTHING).matrix), dict[str, Any]()
    for query, vector in zip(queries, model.pool(queries, SMOOTHING).matrix, strict=True):
        echo(f"  “{query}”")
        if not vector.any():
            echo("    no word of it is known")
        hits = vectors.neighbors(vector, k=5) if vector.any() else ()
        found[query] = [{**hit._asdict(), "summary": summaries[vectors.row(hit.key)]} for hit in hits]
        for hit in found[query]:
            echo(f"    {hit['score']:.2f}  {hit['key']:<34}  {shortened(hit['summary'], 70)}")
        echo()
    return found


def show_comparison(models: dict[str, WordModel], place: Path, held_out: Path, echo: Echo) -> dict[str, Any]:
    from firth.studies import compare

    found = compare(models, held_out, column="text", name="key")
    echo(str(found))
    paths = " ".join(str(place / name) for name in models)
    echo("\nThe same with pictures, in one page:\n")
    echo(f"  {program()} compare {paths} --data {held_out} --column text --name key -o report.html")
    return found.to_json()


def spoken(key: str) -> str:
    """numpy.linalg.eigh -> linalg eigh: the words of a name without its package."""
    inside = key.partition(".")[2] or key
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[._]", " ", inside)


def first_paragraph(text: str) -> str:
    """What an object is, in a sentence or two; a signature that C functions put before it is left out."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip(), maxsplit=2)]
    says = [paragraph for paragraph in paragraphs[:2] if not re.fullmatch(r"[\w.]+\(.*\)( ?->.*)?", paragraph)]
    return (says or paragraphs)[0]


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def show_next(place: Path) -> None:
    model, firth = place / "skipgram", program()
    asked = {
        f"{firth} neighbors {model} matrix python": "ask other words",
        f'{firth} demo --folder {place} "read a text file"': "search for something else",
        f"{firth} plot map {model} -o map.png": "draw the words",
    }
    width = max(map(len, asked))
    for line, meaning in asked.items():
        click.echo(f"  {line:<{width}}   {meaning}")
    click.echo("\nWith a text of your own (one document a line; also jsonl, csv, Parquet, and .gz of these):\n")
    click.echo(f"  {firth} train skipgram TEXT -o MODEL")
    click.echo(f"  {firth} neighbors MODEL WORD")
    click.echo(f"  {firth} embed MODEL TEXT --smoothing {SMOOTHING:g} -o vectors.npy")
    click.echo("\nBoth models on the workbench, at the address that this prints:\n")
    click.echo(f"  {firth} studio {place / 'skipgram'} {place / 'cbow'} --root {place}")


def program() -> str:
    """How this program can be called again: by its name where the shell finds it, else by its path."""
    return sys.argv[0] if Path(sys.argv[0]).name == "firth" and not shutil.which("firth") else "firth"
