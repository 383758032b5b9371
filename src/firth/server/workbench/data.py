"""/api/data: files to learn from, their documents and rows, their vocabulary."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.readers import (
    csv_row_error,
    format_and_compression,
    open_decompressed,
    reading_parquet,
    separator_of,
    text_lines,
)
from firth.data.tokens import Tokens, read_tokens
from firth.server.workbench.asking import reading
from firth.server.workspace import Workspace

LONGEST = 2000  # characters of a text or a cell that are shown
RANKS = 240  # points of the Zipf curve
WORDS = 500  # of a vocabulary

router = APIRouter(prefix="/data")


def workspace_of(request: Request) -> Workspace:
    found: Workspace = request.app.state.workspace
    return found


@router.get("")
def sources(request: Request) -> dict[str, Any]:
    workspace = workspace_of(request)
    root = None if workspace.root is None else workspace.root.name
    return {"sources": workspace.sources(), "root": root}


@router.post("/drop")
async def drop(request: Request, name: str) -> dict[str, Any]:
    return await run_in_threadpool(workspace_of(request).drop, name, await request.body())


class Made(BaseModel):
    """A corpus that needs no file."""

    what: Literal["python", "world"]
    packages: list[str] = []
    name: str = ""  # of the file, without its ending
    sentences: int = Field(40_000, ge=1, le=10_000_000)
    seed: int = Field(1, ge=0)


@router.post("/make")
def make(request: Request, made: Made) -> dict[str, Any]:
    workspace = workspace_of(request)
    usual, ending = ("python", ".jsonl") if made.what == "python" else (f"world-{made.seed}", ".txt")
    path = workspace.output((made.name or usual).removesuffix(ending) + ending)
    arguments = ["corpus", made.what, "-o", str(path)]
    if made.what == "world":
        arguments += ["--seed", str(made.seed), "--sentences", str(made.sentences)]
    for package in made.packages:
        arguments += ["--package", package]
    title = "Docstrings of Python" if made.what == "python" else "An invented world"
    job = workspace.jobs.start(arguments, title, {}, lambda _: {"source": workspace.named(path)}, path)
    return job.to_json()


@router.get("/look")
def look(
    request: Request, source: str, unit: str = "line", column: str = "", offset: int = 0, count: int = 50
) -> dict[str, Any]:
    """Some of the documents of a text, or of the rows of a table, and the columns these have."""
    path = workspace_of(request).source(source)
    with reading(path):
        return seen(path, unit, column, max(0, offset), min(max(1, count), 200))


def seen(path: Path, unit: str, column: str, first: int, count: int) -> dict[str, Any]:
    last = first + count
    if format_and_compression(path)[0]:
        found = list(islice(rows(path), first, last + 1))
        names = list(dict.fromkeys(name for row in found for name in row))
        shown = [[cut(row.get(name)) for name in names] for row in found[: last - first]]
        text = text_column(path, column)
        return {"columns": names, "rows": shown, "text": text, "offset": first, "more": len(found) > last - first}
    documents = list(islice(Corpus(path, unit=unit), first, last + 1))
    shown = [[document.key, cut(document.text)] for document in documents[: last - first]]
    more = len(documents) > last - first
    return {"columns": ["document", "text"], "rows": shown, "text": None, "offset": first, "more": more}


def cut(value: Any) -> str:
    text = (
        "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a table's file, one after the other, whatever stands in them."""
    form, _ = format_and_compression(path)
    with open_decompressed(path) as (_, stream):
        if form == ".parquet":
            import pyarrow
            import pyarrow.parquet

            with reading_parquet(Path(path.name)):
                for batch in pyarrow.parquet.ParquetFile(pyarrow.BufferReader(stream.read())).iter_batches(256):
                    yield from batch.to_pylist()
        elif form in (".csv", ".tsv"):
            lines = text_lines(stream, path)
            first = next(lines, "")
            try:
                sign = separator_of(form, first)
                yield from csv.DictReader(chain([first], lines), delimiter=sign, restkey="(more)")
            except csv.Error as error:
                raise csv_row_error(error, path.name) from None
        else:
            for line in text_lines(stream, path):
                if line.strip():
                    yield json_row(line, path)


def json_row(line: str, path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "malformed_data", "{name} has a line that is not JSON ({reason}).", name=path.name, reason=str(error)
        ) from None
    return found if isinstance(found, dict) else {"value": found}


def text_column(path: Path, given: str) -> str | None:
    """What a method would read: as given, or as it is found by itself."""
    names = list(next(iter(rows(path)), {}))
    if given in names:
        return given
    return next((name for name in names if name.lower() == "text"), None)


@router.get("/vocabulary")
def vocabulary(
    request: Request,
    source: str,
    unit: str = "line",
    column: str = "",
    tokenizer: str = "words",
    lowercase: bool = True,
    find: str = "",
) -> dict[str, Any]:
    """How many documents and words there are, the most frequent, and counts by rank."""
    path = workspace_of(request).source(source)
    notes = Notes()
    with reading(path):
        corpus = Corpus(path, unit=unit, column=column or None)
        found = read_tokens(corpus, tokenizer=tokenizer, lowercase=lowercase, min_count=1, run=Run(report=notes))
    words, counts = found.vocabulary.tokens, found.vocabulary.counts
    if not len(words):
        raise FirthError("empty_data", "There are no words in it.")
    places = matching(words, find.strip().lower())
    lengths = np.diff(found.starts)
    return {
        "documents": len(found),
        "tokens": found.raw_tokens,
        "vocabulary": len(words),
        "once": int((counts == 1).sum()),
        "median": float(np.median(lengths)) if len(lengths) else 0.0,
        "words": [{"rank": place + 1, "word": words[place], "count": int(counts[place])} for place in places],
        "curve": zipf(found),
        "notes": notes.said,
    }


def matching(words: Any, part: str) -> list[int]:
    """The first places of words that have `part` in them, or simply the first."""
    if not part:
        return list(range(min(len(words), WORDS)))
    return list(islice((place for place, word in enumerate(words) if part in word), WORDS))


def zipf(tokens: Tokens) -> dict[str, list[float]]:
    """Counts by rank, at ranks that lie evenly on a logarithmic axis."""
    counts = tokens.vocabulary.counts
    ranks = np.unique(np.geomspace(1, len(counts), RANKS).round().astype(np.int64))
    return {"rank": ranks.tolist(), "count": counts[ranks - 1].tolist()}


class Notes:
    """A report of which only the notes are kept."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, task: str, total: float, unit: str) -> None:
        pass

    def step(self, done: float, **figures: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, text: str, code: str = "note") -> None:
        self.said.append(text)
