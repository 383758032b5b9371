"""Dynamic batching: inputs of many requests are computed together, in the order of arrival.

While one batch is computed, further requests queue: the busier the server, the fuller the batches, and no request waits
for a batch to fill up. A request with more tokens than a batch is split, and its parts queue behind other requests, so
it cannot block them. If too many tokens are queued, a request is refused with 429 and Retry-After.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from firth.core.vectors import Matrix
from firth.server.errors import RequestError
from firth.server.reading import ReadInputs

SMOOTHING = 0.05  # weight of the newest batch in the moving average of the speed


class ComputesRows(Protocol):
    """What the batcher needs of a reader."""

    def rows(self, items: list[Any]) -> Matrix:
        """Return one row per item."""


class Job:
    """The inputs of a request, of which the first `done` are computed."""

    def __init__(self, reader: ComputesRows, reading: ReadInputs) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Matrix] = self.loop.create_future()
        self.reader, self.items, self.tokens = reader, reading.items, reading.tokens
        self.done, self.started = 0, time.monotonic()
        self.parts: list[Matrix] = []

    def next_part(self, room: int) -> int:
        """Return how many of the next inputs fit into `room` tokens."""
        count = 0
        for tokens in self.tokens[self.done :]:
            room -= tokens
            if room < 0:
                break
            count += 1
        return count

    def deliver(self, rows: Matrix) -> None:
        """Store computed rows, and resolve the request if they were the last."""
        self.parts.append(rows)
        self.done += len(rows)
        if self.done == len(self.items):
            matrix = rows if len(self.parts) == 1 else np.concatenate(self.parts)
            self.loop.call_soon_threadsafe(resolve, self.future, matrix)

    def fail(self, error: Exception) -> None:
        """Resolve the request with an error."""
        self.loop.call_soon_threadsafe(resolve, self.future, error)


def resolve(future: asyncio.Future[Matrix], result: Matrix | Exception) -> None:
    """Set the result or the error of a future, if it is still awaited."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


class Batcher:
    """A thread that computes the batches of one model. `on_batch` gets the requests, tokens and seconds of each
    batch."""

    def __init__(self, batch_tokens: int, queue_tokens: int, on_batch: Callable[[int, int, float], None]) -> None:
        self.batch_tokens, self.queue_tokens, self.on_batch = batch_tokens, queue_tokens, on_batch
        self.waiting: deque[Job] = deque()
        self.tokens = 0  # queued or being computed
        self.tokens_per_second = 0.0
        self.changed = threading.Condition()
        self.ended = False
        self.thread = threading.Thread(target=self.work, daemon=True, name="firth-batches")
        self.thread.start()

    async def rows(self, reader: ComputesRows, reading: ReadInputs) -> Matrix:
        """Return one row per input."""
        total = sum(reading.tokens)
        if self.tokens and self.tokens + total > self.queue_tokens:
            raise self.busy()
        job = Job(reader, reading)
        with self.changed:
            self.tokens += total
            self.waiting.append(job)
            self.changed.notify()
        try:
            return await job.future
        finally:  # answered, or the client has disconnected: then the worker skips it
            self.tokens -= total

    def busy(self) -> RequestError:
        """Return the error for a full queue, with an estimate of when it will be shorter."""
        seconds = min(60, math.ceil(self.tokens / self.tokens_per_second)) if self.tokens_per_second else 1
        return RequestError(
            429,
            f"The queue is full ({self.tokens:,} tokens); try again in {seconds} s.",
            kind="overloaded",
            code="overloaded",
            headers={"retry-after": str(max(1, seconds))},
        )

    def close(self) -> None:
        """End the thread once the queue is empty."""
        with self.changed:
            self.ended = True
            self.changed.notify()

    # ---- the thread ----

    def work(self) -> None:
        """Compute batches until the batcher is closed."""
        while True:
            with self.changed:
                while not self.waiting and not self.ended:
                    self.changed.wait()
                if not self.waiting:
                    return
                batch = self.take()
            if batch:
                self.compute(batch)

    def take(self) -> list[tuple[Job, int]]:
        """Return the next requests of one reader that fill a batch, each with its number of inputs."""
        batch, room = list[tuple[Job, int]](), self.batch_tokens
        unfinished = list[Job]()
        while self.waiting and room > 0:
            job = self.waiting[0]
            if job.future.done():
                self.waiting.popleft()
                continue
            if batch and job.reader is not batch[0][0].reader:
                break  # the model was replaced
            count = job.next_part(room)
            if not count:
                if batch:
                    break
                count = 1  # a single input that exceeds a batch
            self.waiting.popleft()
            batch.append((job, count))
            room -= sum(job.tokens[job.done : job.done + count])
            if job.done + count < len(job.items):
                unfinished.append(job)
                break
        self.waiting.extend(unfinished)
        return batch

    def compute(self, batch: list[tuple[Job, int]]) -> None:
        """Compute a batch. If it fails, compute its requests one by one, so that only the faulty one fails."""
        started = time.monotonic()
        items: list[Any] = [item for job, count in batch for item in job.items[job.done : job.done + count]]
        tokens = sum(sum(job.tokens[job.done : job.done + count]) for job, count in batch)
        try:
            rows = batch[0][0].reader.rows(items)
        except Exception as error:
            if len(batch) == 1:
                self.drop(batch[0][0], error)
            else:
                for single in batch:
                    self.compute([single])
            return
        seconds = time.monotonic() - started
        batch_speed = tokens / max(seconds, 1e-9)
        self.tokens_per_second = (
            batch_speed
            if not self.tokens_per_second
            else (1 - SMOOTHING) * self.tokens_per_second + SMOOTHING * batch_speed
        )
        first = 0
        for job, count in batch:
            job.deliver(rows[first : first + count])
            first += count
        self.on_batch(len(batch), tokens, seconds)

    def drop(self, job: Job, error: Exception) -> None:
        """Remove a failed request from the queue."""
        with self.changed:
            if job in self.waiting:
                self.waiting.remove(job)
        job.fail(error)
