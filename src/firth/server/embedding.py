"""Embedding of inputs for all APIs: the model of a name, its reader and its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from starlette.concurrency import run_in_threadpool

from firth.core.errors import FirthError
from firth.core.shortening import check_shorter
from firth.core.vectors import Matrix, unit_rows
from firth.server.batching import Batcher
from firth.server.errors import RequestError
from firth.server.metrics import Metrics
from firth.server.models import Models, Served
from firth.server.reading import Inputs, TextReader, make_reader
from firth.server.settings import Settings

INLINE_LENGTH = 4000  # characters or tokens that are tokenized in the event loop, not in a thread


class Embedded(NamedTuple):
    """The vectors of a request's inputs."""

    matrix: Matrix
    tokens: int
    truncated: int  # number of truncated inputs


class Embedding:
    """Embeds inputs with any of the served models, in batches."""

    def __init__(self, models: Models, settings: Settings, metrics: Metrics) -> None:
        self.models, self.settings, self.metrics = models, settings, metrics
        self.readers: dict[str, tuple[Any, TextReader]] = {}
        self.batchers: dict[str, Batcher] = {}
        metrics.gauges["firth_waiting_tokens"] = lambda: sum(each.tokens for each in list(self.batchers.values()))

    async def __call__(
        self,
        name: str,
        inputs: Inputs,
        *,
        truncate: bool | None = None,
        dimensions: int | None = None,
        normalize: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
    ) -> Embedded:
        """Embed inputs. `truncate` overrides the server's setting for long inputs.

        `prompt` is put before each text, or the model's prompt of that name; by default the server's or the model's.
        """
        reader = await self.reader(name)
        self.check(inputs, reader, dimensions)
        long = self.settings.on_long(truncate)
        text = reader.prompt(prompt_name, prompt, self.settings.prompt)
        if sum(map(len, inputs)) <= INLINE_LENGTH:
            reading = reader.read(inputs, long, text)
        else:
            reading = await run_in_threadpool(reader.read, inputs, long, text)
        if name not in self.batchers:
            self.batchers[name] = self.batcher(name)
        rows = await self.batchers[name].rows(reader, reading)
        is_shortened = dimensions is not None and dimensions < reader.dim
        if is_shortened:
            rows = rows[:, :dimensions]
        if normalize or is_shortened:
            rows = unit_rows(rows)
        return Embedded(rows, sum(reading.tokens), reading.truncated)

    async def reader(self, name: str) -> TextReader:
        """Return the reader of a model; load the model in a thread if necessary."""
        model = self.models.ready(name)
        cached = self.readers.get(name)
        if model is None or cached is None or cached[0] is not model:
            return await run_in_threadpool(self.open, name)
        return cached[1]

    def open(self, name: str) -> TextReader:
        """Load a model if necessary, and return its reader."""
        return self.reader_for(name, self.models.get(name))

    def reader_for(self, name: str, model: Served) -> TextReader:
        """Return the cached reader of a model."""
        cached = self.readers.get(name)
        if cached is not None and cached[0] is model:
            return cached[1]
        reader = make_reader(model, self.settings.precision)
        self.readers[name] = model, reader
        return reader

    def check(self, inputs: Inputs, reader: TextReader, dimensions: int | None) -> None:
        """Check the number of inputs, the size of the response and the requested dimensions."""
        check_count(inputs, self.settings.inputs)
        if not all(inputs):
            raise RequestError(400, "An input is empty; each must have at least one token.", field="input")
        max_values = self.settings.answer_numbers
        if len(inputs) * reader.dim > max_values:
            raise RequestError(
                413,
                f"{len(inputs):,} vectors of dimension {reader.dim:,} exceed the size of a response; "
                f"send at most {max(1, max_values // reader.dim):,} inputs.",
                kind="too_large",
                field="input",
            )
        if dimensions is not None:
            try:
                check_shorter(reader.model, dimensions, reader.dim, "dimensions")
            except FirthError as error:
                raise RequestError(400, str(error), field="dimensions", code=error.code) from None

    def batcher(self, name: str) -> Batcher:
        """Return a new batcher for a model."""

        def on_batch(requests: int, tokens: int, seconds: float) -> None:
            self.metrics.count_batch(name, requests, tokens)

        return Batcher(self.settings.batch_tokens, self.settings.queue_tokens, on_batch)

    def close(self) -> None:
        """Stop the threads that compute batches."""
        for each in self.batchers.values():
            each.close()


def check_count(inputs: Sequence[Any], most: int) -> None:
    """Check that a request has between 1 and `most` inputs."""
    if not inputs:
        raise RequestError(400, "There are no inputs. Send a text, or a list of texts.", field="input")
    if len(inputs) > most:
        raise RequestError(
            413, f"A request can have at most {most:,} inputs; got {len(inputs):,}.", kind="too_large", field="input"
        )


def finite_lists(matrix: Matrix) -> list[list[float]]:
    """Return a matrix as lists for JSON, which has no NaN."""
    if not np.isfinite(matrix).all():
        raise RequestError(500, "The model returned NaN or infinity.", kind="fault")
    rows: list[list[float]] = matrix.tolist()
    return rows
