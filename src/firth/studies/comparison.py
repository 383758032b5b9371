"""The result of a comparison: metrics with intervals, models that are not distinguishable, and a recommendation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from firth.core.notebook import html_lines, html_table
from firth.evaluate.layout import number_or_none, percent, text_table
from firth.studies.bootstrap import Floats, distinguishable, interval, resampled, statistic
from firth.studies.training_data import NOT_COMPARED, UNKNOWN_LABELS, TrainingData

SAME_COST = 2.0  # costs within this factor count as equal, because one timing is not exact


@dataclass(frozen=True)
class Score:
    """A metric with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        """Return the score as JSON values."""
        return {name: number_or_none(getattr(self, name)) for name in ("value", "low", "high")}

    def __str__(self) -> str:
        return "–" if math.isnan(self.value) else f"{self.value:.3f} ±{(self.high - self.low) / 2:.3f}"


@dataclass(frozen=True)
class Measure:
    """One metric of all models it applies to, on the same items.

    `indistinguishable` has the pairs of models whose difference is within the interval. The baseline, if there is one,
    uses no vectors. `excluded` models cannot be the best.
    """

    name: str
    what: str
    items: int
    scores: Mapping[str, Score]
    indistinguishable: frozenset[frozenset[str]]
    baseline_name: str = ""
    counted: bool = True  # whether it counts for the recommendation: of two metrics of the same ranks, only one does
    excluded: frozenset[str] = frozenset()  # trained on these labels

    @property
    def models(self) -> list[str]:
        """The names of the models, without the baseline."""
        return [name for name in self.scores if name != self.baseline_name]

    @property
    def eligible(self) -> list[str]:
        """The names of the models that may be the best."""
        return [name for name in self.models if name not in self.excluded]

    @property
    def best(self) -> str:
        """The name of the eligible model with the highest score; "" if there is none."""
        value = {name: -math.inf if self.undefined(name) else self.scores[name].value for name in self.eligible}
        return max(value, key=lambda name: value[name], default="")

    def is_best(self, name: str) -> bool:
        """Return whether a model is the best or not distinguishable from it."""
        competes = name in self.eligible and not self.undefined(name)
        return competes and (name == self.best or self.are_indistinguishable(name, self.best))

    def undefined(self, name: str) -> bool:
        """Return whether the score is NaN, such as the correlation of constant cosines."""
        return math.isnan(self.scores[name].value)

    def are_indistinguishable(self, a: str, b: str) -> bool:
        """Return whether the difference of two models is within the interval."""
        return frozenset((a, b)) in self.indistinguishable

    def to_json(self) -> dict[str, Any]:
        """Return the measure as JSON values."""
        return {
            "name": self.name,
            "what": self.what,
            "items": self.items,
            "scores": {name: self.scores[name].to_json() for name in self.models},
            "baseline": {"name": self.baseline_name, **self.scores[self.baseline_name].to_json()}
            if self.baseline_name
            else None,
            "best": self.best or None,
            "not_distinguishable": sorted(sorted(pair) for pair in self.indistinguishable),
        }


def make_measure(
    name: str,
    what: str,
    values: Mapping[str, Floats],
    *,
    truth: Floats | None = None,
    baseline: tuple[str, Floats] | None = None,
    counted: bool = True,
    seed: int = 1,
) -> Measure:
    """Compute a measure and its intervals from one value per item of each model, by the paired bootstrap."""
    other = "" if baseline is None else baseline[0] if baseline[0] not in values else f"{baseline[0]} (baseline)"
    everyone = {**values, other: baseline[1]} if baseline else dict(values)
    table = np.array(list(everyone.values()))
    draws = dict(zip(everyone, resampled(table, truth, seed=seed), strict=True))
    scores = {each: Score(statistic(row, truth), *interval(draws[each])) for each, row in everyone.items()}
    indistinguishable = (
        frozenset((a, b)) for a, b in combinations(everyone, 2) if not distinguishable(draws[a], draws[b])
    )
    return Measure(name, what, table.shape[1], scores, frozenset(indistinguishable), other, counted)


@dataclass(frozen=True)
class ModelMetadata:
    """Size, speed and training of a model; NaN if unknown."""

    bytes: int  # size on disk, or in memory for a model that was passed as an object
    dim: int
    coverage: float  # share of the words of the texts that have a vector
    speed: float  # texts per second
    memory: int = 0  # bytes of its arrays
    training: float = math.nan  # seconds
    data: TrainingData = NOT_COMPARED

    def to_json(self) -> dict[str, Any]:
        """Return the metadata as JSON values."""
        numbers = {"coverage": self.coverage, "texts_per_second": self.speed, "training_seconds": self.training}
        return {
            "bytes": self.bytes,
            "memory_bytes": self.memory,
            "dim": self.dim,
            **{name: number_or_none(value) for name, value in numbers.items()},
            "trained_on": self.data.what or None,
            "overlap": number_or_none(self.data.share),
            "excluded": self.data.excluded,
        }


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`. `overlap` is the share of the 10 nearest that two models have in common."""

    metadata: Mapping[str, ModelMetadata]
    measures: tuple[Measure, ...]
    overlap: Mapping[tuple[str, str], float]
    overlap_of: str  # texts or words, and how many
    notes: tuple[str, ...]

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(self.metadata)

    @property
    def recommendation(self) -> str:
        """Which model to use, and why, in one or more sentences."""
        return recommend(self)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "models": {name: metadata.to_json() for name, metadata in self.metadata.items()},
            "measures": [measure.to_json() for measure in self.measures],
            "overlap": [{"a": a, "b": b, "share": share} for (a, b), share in self.overlap.items()],
            "overlap_of": self.overlap_of,
            "recommendation": self.recommendation,
            "notes": list(self.notes),
        }

    def table(self) -> tuple[list[str], list[list[str]], Sequence[int]]:
        """Return header and rows, one row per measure, and the columns of numbers.

        * marks the best model, ≈ those not distinguishable from it, † excluded ones.
        """
        has_baseline = any(measure.baseline_name for measure in self.measures)
        header = ["", *self.models, *(["baseline"] if has_baseline else []), *(["items"] if self.measures else [])]
        rows = [
            [measure.name, *(marked(measure, name) for name in self.models), *baseline(measure, has_baseline)]
            for measure in self.measures
        ]
        rest = [""] * (len(header) - 1 - len(self.models))
        metadata_rows = {
            name: [write(metadata) for metadata in self.metadata.values()] for name, write in METADATA_LINES.items()
        }
        rows += [[name, *cells, *rest] for name, cells in metadata_rows.items() if set(cells) != {"–"}]
        return header, rows, range(1, len(header))

    def lines(self) -> list[str]:
        """Return the lines below the table: the legend, notes and the recommendation."""
        marks = ["* best · ≈ not distinguishable from the best (paired bootstrap, 95 %)"] if self.measures else []
        if marks and any(metadata.data.excluded for metadata in self.metadata.values()):
            marks[0] += " · † trained on these labels, never recommended"
        return [*marks, *self.notes, self.recommendation]

    def agreement(self) -> str:
        """Return the overlap of each two models as a table."""
        if not self.overlap:
            return ""
        names = [name for name in self.models if any(name in pair for pair in self.overlap)]
        both = {**self.overlap, **{(b, a): share for (a, b), share in self.overlap.items()}}
        rows = [[a, *(percent(both.get((a, b), math.nan)) for b in names)] for a in names]
        table = text_table(["", *names], rows, range(1, 1 + len(names)))
        return f"Share of the 10 nearest in common ({self.overlap_of})\n{table}\n\n"

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table()), "", self.agreement() + "\n".join(self.lines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self.table()) + html_lines(*self.lines())


METADATA_LINES: dict[str, Callable[[ModelMetadata], str]] = {
    "trained on": lambda metadata: str(metadata.data),
    "coverage": lambda metadata: percent(metadata.coverage),
    "texts per second": lambda metadata: "–" if math.isnan(metadata.speed) else f"{metadata.speed:,.0f}",
    "dimensions": lambda metadata: f"{metadata.dim:,}" if metadata.dim else "–",
    "size": lambda metadata: size_text(metadata.bytes),
    "memory": lambda metadata: size_text(metadata.memory) if metadata.memory else "–",
    "training time": lambda metadata: "–" if math.isnan(metadata.training) else f"{metadata.training:,.1f} s",
}


def marked(measure: Measure, name: str) -> str:
    """Return the score of a model with its mark."""
    if name not in measure.scores:
        return "–"
    alone = len(measure.models) == 1 and not measure.excluded
    mark = " " if alone or not measure.is_best(name) else "*" if name == measure.best else "≈"
    mark = "†" if name in measure.excluded else mark
    return f"{measure.scores[name]} {mark}".rstrip() if alone else f"{measure.scores[name]} {mark}"


def baseline(measure: Measure, has_baseline: bool) -> list[str]:
    """Return the cells of the baseline, if the table has that column, and of the number of items."""
    name = measure.baseline_name
    cell = f"{name} {measure.scores[name].value:.3f}" if name else "–"
    return [*([cell] if has_baseline else []), f"{measure.items:,}"]


def size_text(size: int) -> str:
    """Format a number of bytes."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} bytes"


def recommend(comparison: Comparison) -> str:
    """Recommend the model that is best, or not distinguishable from the best, in most measures.

    Models that were trained on these labels are excluded. Of equally good models the cheapest is recommended.
    """
    eligible = [name for name, metadata in comparison.metadata.items() if not metadata.data.excluded]
    several = min(2, len(eligible))  # a measure of one model only does not count
    counted = [measure for measure in comparison.measures if measure.counted and len(measure.eligible) >= several]
    if not counted or len(eligible) < 2:
        return f"No recommendation: {no_choice(comparison, eligible)}."
    wins = {name: sum(measure.is_best(name) for measure in counted) for name in eligible}
    most, total = max(wins.values()), len(counted)
    first = [name for name in eligible if wins[name] == most]
    winner = cheapest(first, comparison.metadata)
    share = "the one measure" if total == 1 else f"{most} of {total} measures"
    sentence = f"Use {winner}: best, or not distinguishable from the best, in {share}"
    weak = [m for m in counted if m.baseline_name and winner in m.scores and not beats_baseline(m, winner)]
    caveats = [f"{measure.baseline_name} does as well or better in {measure.name}" for measure in weak]
    if comparison.metadata[winner].data.what == UNKNOWN_LABELS:
        caveats.append("whether it was trained on these labels is unknown")
    reasons = [advantage(winner, other, counted, comparison.metadata) for other in first if other != winner]
    if caveats:
        sentence += f"; but {'; '.join(caveats)}"
    return " ".join(f"{each}." for each in (sentence, *reasons))


def no_choice(comparison: Comparison, eligible: Sequence[str]) -> str:
    """Return the reason why no model is recommended."""
    if not comparison.measures:
        return "nothing was measured; pass documents, analogies or pairs"
    if len(eligible) > 1:
        return "no measure applies to two of the models"
    if len(comparison.models) == 1 and eligible:
        return "one model was given"
    rest = f"all models but {eligible[0]} were" if eligible else "all models were"
    return f"{rest} trained on these labels; compare on rows that none of them was trained on"


class Cost(NamedTuple):
    """A cost of a model; `reason` is why a cheaper one is preferred, with its line of the table (METADATA_LINES)."""

    line: str
    value: Callable[[ModelMetadata], float]
    reason: str


#: In the order in which models are compared by them.
COSTS = (
    Cost("texts per second", lambda metadata: 1 / metadata.speed if metadata.speed else math.nan, "{times}× faster"),
    Cost("memory", lambda metadata: metadata.memory or math.nan, "needs less memory ({low}, not {high})"),
    Cost("training time", lambda metadata: metadata.training, "was trained in less time ({low}, not {high})"),
)


def cheapest(names: Sequence[str], metadata: Mapping[str, ModelMetadata]) -> str:
    """Return the model that is cheapest by the first cost in which they differ, or else the smallest on disk.

    A cost that is unknown for one of the models is not compared.
    """
    for cost in COSTS:
        costs = {name: cost.value(metadata[name]) for name in names}
        if not any(map(math.isnan, costs.values())):
            names = [name for name in names if costs[name] <= SAME_COST * min(costs.values())]
    return min(names, key=lambda name: metadata[name].bytes)


def advantage(winner: str, other: str, measures: Sequence[Measure], metadata: Mapping[str, ModelMetadata]) -> str:
    """Return the reason to prefer one of two equally good models."""
    both = [measure for measure in measures if {winner, other} <= {*measure.models}]
    indistinguishable = bool(both) and all(measure.are_indistinguishable(winner, other) for measure in both)
    text = f"{winner} is best as often as {other}"
    if indistinguishable:
        text = f"{winner} is as good as {other} within the interval"
    own, others = metadata[winner], metadata[other]
    times = {cost: cost.value(others) / (cost.value(own) or math.nan) for cost in COSTS}
    clear = [cost for cost in COSTS if times[cost] > SAME_COST]
    if not clear and own.bytes > others.bytes:  # a third model was clearly cheaper than the other
        clear = [cost for cost in COSTS if times[cost] > 1]
    if clear:
        factor = f"{times[clear[0]]:,.0f}" if times[clear[0]] >= 9.95 else f"{times[clear[0]]:.1f}"
        low, high = (METADATA_LINES[clear[0].line](each) for each in (own, others))
        return f"{text} and {clear[0].reason.format(times=factor, low=low, high=high)}"
    if own.bytes < others.bytes:
        return f"{text} and smaller ({size_text(own.bytes)}, not {size_text(others.bytes)})"
    return f"{text} and costs about the same"


def beats_baseline(measure: Measure, name: str) -> bool:
    """Return whether a model is distinguishably better than the baseline."""
    other = measure.baseline_name
    return measure.scores[name].value > measure.scores[other].value and not measure.are_indistinguishable(name, other)
