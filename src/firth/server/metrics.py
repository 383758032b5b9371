"""Metrics of the server in Prometheus's format. Labels are routes and models, never parts of a request."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
Labels = tuple[tuple[str, str], ...]

router = APIRouter()


class Histogram:
    """A Prometheus histogram: counts of values by upper bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        """Yield the lines of the histogram in the text format."""
        cumulative = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            cumulative += count
            yield line(f"{name}_bucket", (*labels, ("le", bound)), cumulative)
        yield line(f"{name}_sum", labels, self.total)
        yield line(f"{name}_count", labels, cumulative)


class Metrics:
    """The counters of the server. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: Counter[Labels] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.tokens: Counter[str] = Counter()
        self.batches: dict[str, Histogram] = {}
        self.gauges: dict[str, Callable[[], float]] = {}
        self.labels: Labels = ()  # of all samples
        self.others: Callable[[], Awaitable[list[str]]] | None = None  # the metrics of the other replicas

    def count_response(self, route: str, status: int, seconds: float) -> None:
        """Count a response and its duration."""
        with self.lock:
            self.requests[(("route", route), ("status", str(status)))] += 1
            self.seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def count_batch(self, model: str, requests: int, tokens: int) -> None:
        """Count a batch of requests and its tokens."""
        with self.lock:
            self.tokens[model] += tokens
            self.batches.setdefault(model, Histogram(SIZES)).add(requests)

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        with self.lock:
            lines = [
                *family("firth_requests_total", "counter", "Responses by route and status."),
                *(
                    line("firth_requests_total", (*self.labels, *labels), count)
                    for labels, count in sorted(self.requests.items())
                ),
                *family(
                    "firth_request_seconds", "histogram", "Time from the request's headers to the end of the response."
                ),
                *self._histograms("firth_request_seconds", "route", self.seconds),
                *family("firth_tokens_total", "counter", "Tokens computed."),
                *(
                    line("firth_tokens_total", (*self.labels, ("model", name)), count)
                    for name, count in sorted(self.tokens.items())
                ),
                *family("firth_batch_requests", "histogram", "Requests per batch."),
                *self._histograms("firth_batch_requests", "model", self.batches),
            ]
        for name, value in self.gauges.items():
            lines += [*family(name, "gauge", name.replace("_", " ")), line(name, self.labels, value())]
        return "\n".join(lines) + "\n"

    def _histograms(self, name: str, label: str, histograms: Mapping[str, Histogram]) -> Iterator[str]:
        for value, histogram in sorted(histograms.items()):
            yield from histogram.lines(name, (*self.labels, (label, value)))


def family(name: str, kind: str, help: str) -> Iterator[str]:
    """Yield the header lines of a metric."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def line(name: str, labels: Labels, value: float) -> str:
    """Return one sample of a metric."""
    inside = ",".join(f'{label}="{escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def merged(texts: Sequence[str]) -> str:
    """Join the metrics of replicas: the samples of a metric follow each other, below one header."""
    families: dict[str, list[str]] = {}
    for text in texts:
        name = ""
        for each in text.splitlines():
            if each.startswith("# HELP "):
                name = each.split(" ")[2]
            family_lines = families.setdefault(name, [])
            if not (each.startswith("#") and each in family_lines):
                family_lines.append(each)
    return "\n".join(each for family_lines in families.values() for each in family_lines) + "\n"


def escaped(text: str) -> str:
    """Return a label's value with backslashes, quotes and line breaks escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> float:
    """Return the memory of this process; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        return 0


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return counters and histograms for Prometheus."""
    store: Metrics = request.app.state.metrics
    texts = [store.text(), *(await store.others() if store.others else [])]
    return Response(merged(texts), media_type="text/plain; version=0.0.4; charset=utf-8")
