"""/api/data: data files, their documents or rows, and their vocabulary."""

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
from firth.core.report import Silence
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

MAX_CELL = 2000  # characters of a text or a cell that are shown
CURVE_POINTS = 240  # of the Zipf plot
MAX_WORDS = 500  # of a vocabulary that are listed

router = APIRouter(prefix="/data")


def workspace_of(request: Request) -> Workspace:
    """Return the workspace of the server."""
    workspace: Workspace = request.app.state.workspace
    return workspace


@router.get("")
def sources(request: Request) -> dict[str, Any]:
    """List the data files below the root, and those made here."""
    workspace = workspace_of(request)
    root = None if workspace.root is None else workspace.root.name
    return {"sources": workspace.sources(), "root": root}


@router.post("/drop")
async def drop(request: Request, name: str) -> dict[str, Any]:
    """Store an uploaded file."""
    return await run_in_threadpool(workspace_of(request).drop, name, await request.body())


class CorpusBody(BaseModel):
    """A corpus to generate."""

    what: Literal["python", "world"]
    packages: list[str] = []
    name: str = ""  # of the file, without its suffix
    sentences: int = Field(40_000, ge=1, le=10_000_000)
    seed: int = Field(1, ge=0)


@router.post("/make")
def make(request: Request, body: CorpusBody) -> dict[str, Any]:
    """Start a job that makes a corpus."""
    workspace = workspace_of(request)
    default_name, suffix = ("python", ".jsonl") if body.what == "python" else (f"world-{body.seed}", ".txt")
    path = workspace.output((body.name or default_name).removesuffix(suffix) + suffix)
    arguments = ["corpus", body.what, "-o", str(path)]
    if body.what == "world":
        arguments += ["--seed", str(body.seed), "--sentences", str(body.sentences)]
    for package in body.packages:
        arguments += ["--package", package]
    title = "Python docstrings" if body.what == "python" else "Synthetic corpus"
    job = workspace.jobs.start(arguments, title, {}, lambda _: {"source": workspace.source_name(path)}, path)
    return job.to_json()


@router.get("/look")
def look(
    request: Request, source: str, unit: str = "line", column: str = "", offset: int = 0, count: int = 50
) -> dict[str, Any]:
    """Return some documents of a text file or rows of a table, and the columns."""
    path = workspace_of(request).source(source)
    with reading(path):
        return preview(path, unit, column, max(0, offset), min(max(1, count), 200))


def preview(path: Path, unit: str, column: str, first: int, count: int) -> dict[str, Any]:
    """Return some rows or documents of a data file."""
    last = first + count
    if format_and_compression(path)[0]:
        records = list(islice(rows(path), first, last + 1))
        names = list(dict.fromkeys(name for row in records for name in row))
        shown = [[cell_text(row.get(name)) for name in names] for row in records[: last - first]]
        text = text_column(path, column)
        return {"columns": names, "rows": shown, "text": text, "offset": first, "more": len(records) > last - first}
    documents = list(islice(Corpus(path, unit=unit), first, last + 1))
    shown = [[document.key, cell_text(document.text)] for document in documents[: last - first]]
    more = len(documents) > last - first
    return {"columns": ["document", "text"], "rows": shown, "text": None, "offset": first, "more": more}


def cell_text(value: Any) -> str:
    """Return a value as a text of limited length."""
    text = (
        "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a table file, with values of any type."""
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
                delimiter = separator_of(form, first)
                yield from csv.DictReader(chain([first], lines), delimiter=delimiter, restkey="(more)")
            except csv.Error as error:
                raise csv_row_error(error, path.name) from None
        else:
            for line in text_lines(stream, path):
                if line.strip():
                    yield json_row(line, path)


def json_row(line: str, path: Path) -> Mapping[str, Any]:
    """Parse a line of a JSON Lines file."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "malformed_data", "{name} has a line that is not JSON ({reason}).", name=path.name, reason=str(error)
        ) from None
    return value if isinstance(value, dict) else {"value": value}


def text_column(path: Path, column: str) -> str | None:
    """Return the text column that a method would use: the given one, or the one called text."""
    names = list(next(iter(rows(path)), {}))
    if column in names:
        return column
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
    """Return counts of documents and words, the most frequent words, and counts by rank."""
    path = workspace_of(request).source(source)
    notes = Notes()
    with reading(path):
        corpus = Corpus(path, unit=unit, column=column or None)
        tokens = read_tokens(corpus, tokenizer=tokenizer, lowercase=lowercase, min_count=1, run=Run(report=notes))
    words, counts = tokens.vocabulary.tokens, tokens.vocabulary.counts
    if not len(words):
        raise FirthError("empty_data", "The data contains no words.")
    ranks = matching_ranks(words, find.strip().lower())
    lengths = np.diff(tokens.starts)
    return {
        "documents": len(tokens),
        "tokens": tokens.raw_tokens,
        "vocabulary": len(words),
        "once": int((counts == 1).sum()),
        "median": float(np.median(lengths)) if len(lengths) else 0.0,
        "words": [{"rank": rank + 1, "word": words[rank], "count": int(counts[rank])} for rank in ranks],
        "curve": zipf(tokens),
        "notes": notes.messages,
    }


def matching_ranks(words: Any, part: str) -> list[int]:
    """Return the ranks of the first words that contain `part`."""
    if not part:
        return list(range(min(len(words), MAX_WORDS)))
    return list(islice((rank for rank, word in enumerate(words) if part in word), MAX_WORDS))


def zipf(tokens: Tokens) -> dict[str, list[float]]:
    """Return counts by rank, at ranks that are evenly spaced on a logarithmic axis."""
    counts = tokens.vocabulary.counts
    ranks = np.unique(np.geomspace(1, len(counts), CURVE_POINTS).round().astype(np.int64))
    return {"rank": ranks.tolist(), "count": counts[ranks - 1].tolist()}


class Notes(Silence):
    """A report that only collects notes."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def note(self, text: str, code: str = "note") -> None:
        self.messages.append(text)
