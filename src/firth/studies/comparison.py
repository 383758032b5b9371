"""What a comparison found: a table of figures with their intervals, what can't be told apart, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from firth.evaluate.layout import html_table, number_or_none, percent, text_table
from firth.studies.bootstrap import Floats, distinguishable, figure, interval, resampled
from firth.studies.training_data import NOT_ASKED, UNKNOWN_LABELS, TrainingData

SAME_SPEED = 2.0  # times: what is less far apart in texts a second counts as equally fast


@dataclass(frozen=True)
class Score:
    """A figure and where it lies in 95 % of the bootstrap's draws."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        return {name: number_or_none(getattr(self, name)) for name in ("value", "low", "high")}

    def __str__(self) -> str:
        return "–" if math.isnan(self.value) else f"{self.value:.3f} ±{(self.high - self.low) / 2:.3f}"


@dataclass(frozen=True)
class Measure:
    """One figure of all models it applies to, on the same items. `alike` are pairs that are not distinguishable; the
    `baseline`, if there is one, knows no vectors; models that are `excluded` compete for nothing."""

    name: str
    what: str
    items: int
    scores: Mapping[str, Score]
    alike: frozenset[frozenset[str]]
    baseline_name: str = ""
    counted: bool = True  # for the recommendation: of two figures from the same ranks, only one
    excluded: frozenset[str] = frozenset()  # trained on these labels

    @property
    def models(self) -> list[str]:
        return [name for name in self.scores if name != self.baseline_name]

    @property
    def eligible(self) -> list[str]:
        return [name for name in self.models if name not in self.excluded]

    @property
    def best(self) -> str:
        """Of those that compete; "" where none does."""
        value = {name: -math.inf if self.undefined(name) else self.scores[name].value for name in self.eligible}
        return max(value, key=lambda name: value[name], default="")

    def is_best(self, name: str) -> bool:
        """Or not distinguishable from the best."""
        known = name in self.eligible and not self.undefined(name)
        return known and (name == self.best or self.are_alike(name, self.best))

    def undefined(self, name: str) -> bool:
        """Such as the correlation of cosines that are all the same."""
        return math.isnan(self.scores[name].value)

    def are_alike(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self.alike

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "what": self.what,
            "items": self.items,
            "scores": {name: self.scores[name].to_json() for name in self.models},
            "baseline": {"name": self.baseline_name, **self.scores[self.baseline_name].to_json()}
            if self.baseline_name
            else None,
            "best": self.best or None,
            "not_distinguishable": sorted(sorted(pair) for pair in self.alike),
        }


def measured(
    name: str,
    what: str,
    values: Mapping[str, Floats],
    *,
    truth: Floats | None = None,
    baseline: tuple[str, Floats] | None = None,
    counted: bool = True,
    seed: int = 1,
) -> Measure:
    """From one number an item of each model: figures, intervals, and what the paired bootstrap can't tell apart."""
    other = "" if baseline is None else baseline[0] if baseline[0] not in values else f"{baseline[0]} (baseline)"
    everyone = {**values, other: baseline[1]} if baseline else dict(values)
    table = np.array(list(everyone.values()))
    draws = dict(zip(everyone, resampled(table, truth, seed=seed), strict=True))
    scores = {each: Score(figure(row, truth), *interval(draws[each])) for each, row in everyone.items()}
    alike = (frozenset((a, b)) for a, b in combinations(everyone, 2) if not distinguishable(draws[a], draws[b]))
    return Measure(name, what, table.shape[1], scores, frozenset(alike), other, counted)


@dataclass(frozen=True)
class Facts:
    """What is known of a model apart from how good it is; NaN where it was not measured."""

    bytes: int  # on disk; of what was given in memory, there
    dim: int
    coverage: float  # share of the words of the texts that have a vector
    speed: float  # texts a second
    memory: int = 0  # bytes of its arrays
    training: float = math.nan  # seconds
    data: TrainingData = NOT_ASKED

    def to_json(self) -> dict[str, Any]:
        figures = {"coverage": self.coverage, "texts_per_second": self.speed, "training_seconds": self.training}
        return {
            "bytes": self.bytes,
            "memory_bytes": self.memory,
            "dim": self.dim,
            **{name: number_or_none(value) for name, value in figures.items()},
            "trained_on": self.data.what or None,
            "overlap": number_or_none(self.data.share),
            "excluded": self.data.excluded,
        }


@dataclass(frozen=True)
class Comparison:
    """Models by measures. `overlap`: the share of the 10 nearest that two models agree on, by pairs of names."""

    facts: Mapping[str, Facts]
    measures: tuple[Measure, ...]
    overlap: Mapping[tuple[str, str], float]
    overlap_of: str  # texts or words, and how many
    notes: tuple[str, ...]

    @property
    def models(self) -> list[str]:
        return list(self.facts)

    @property
    def recommendation(self) -> str:
        return recommend(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "models": {name: facts.to_json() for name, facts in self.facts.items()},
            "measures": [measure.to_json() for measure in self.measures],
            "overlap": [{"a": a, "b": b, "share": share} for (a, b), share in self.overlap.items()],
            "overlap_of": self.overlap_of,
            "recommendation": self.recommendation,
            "notes": list(self.notes),
        }

    def table(self) -> tuple[list[str], list[list[str]], Sequence[int]]:
        """Measures down, models across; * the best, ≈ not distinguishable from it, † excluded."""
        based = any(measure.baseline_name for measure in self.measures)
        header = ["", *self.models, *(["baseline"] if based else []), *(["items"] if self.measures else [])]
        rows = [
            [measure.name, *(marked(measure, name) for name in self.models), *baseline(measure, based)]
            for measure in self.measures
        ]
        rest = [""] * (len(header) - 1 - len(self.models))
        known = {name: [write(facts) for facts in self.facts.values()] for name, write in FACT_LINES.items()}
        rows += [[name, *cells, *rest] for name, cells in known.items() if set(cells) != {"–"}]
        return header, rows, range(1, len(header))

    def lines(self) -> list[str]:
        """What stands below the table."""
        marks = ["* best · ≈ not distinguishable from the best (paired bootstrap, 95 %)"] if self.measures else []
        if marks and any(facts.data.excluded for facts in self.facts.values()):
            marks[0] += " · † trained on these labels, never recommended"
        return [*marks, *self.notes, self.recommendation]

    def agreement(self) -> str:
        """Which models are alike, as a table of their names."""
        if not self.overlap:
            return ""
        names = [name for name in self.models if any(name in pair for pair in self.overlap)]
        both = {**self.overlap, **{(b, a): share for (a, b), share in self.overlap.items()}}
        rows = [[a, *(percent(both.get((a, b), math.nan)) for b in names)] for a in names]
        table = text_table(["", *names], rows, range(1, 1 + len(names)))
        return f"Share of the 10 nearest in common ({self.overlap_of})\n{table}\n\n"

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table()), "", self.agreement() + "\n".join(self.lines())])

    def _repr_html_(self) -> str:
        from html import escape

        return html_table(*self.table()) + "".join(f"<p>{escape(line)}</p>" for line in self.lines())


FACT_LINES: dict[str, Callable[[Facts], str]] = {
    "trained on": lambda facts: str(facts.data),
    "coverage": lambda facts: percent(facts.coverage),
    "texts a second": lambda facts: "–" if math.isnan(facts.speed) else f"{facts.speed:,.0f}",
    "dimensions": lambda facts: f"{facts.dim:,}" if facts.dim else "–",
    "size": lambda facts: size_text(facts.bytes),
    "memory": lambda facts: size_text(facts.memory) if facts.memory else "–",
    "training time": lambda facts: "–" if math.isnan(facts.training) else f"{facts.training:,.1f} s",
}


def marked(measure: Measure, name: str) -> str:
    if name not in measure.scores:
        return "–"
    alone = len(measure.models) == 1 and not measure.excluded
    mark = " " if alone or not measure.is_best(name) else "*" if name == measure.best else "≈"
    mark = "†" if name in measure.excluded else mark
    return f"{measure.scores[name]} {mark}".rstrip() if alone else f"{measure.scores[name]} {mark}"


def baseline(measure: Measure, based: bool) -> list[str]:
    name = measure.baseline_name
    shown = f"{name} {measure.scores[name].value:.3f}" if name else "–"
    return [*([shown] if based else []), f"{measure.items:,}"]


def size_text(size: int) -> str:
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} bytes"


def recommend(comparison: Comparison) -> str:
    """Of the models that were not trained on these labels, the one that is best, or not distinguishable from the best,
    in most measures; of equals the cheapest."""
    eligible = [name for name, facts in comparison.facts.items() if not facts.data.excluded]
    several = min(2, len(eligible))  # where one model alone was asked, it wins nothing
    counted = [measure for measure in comparison.measures if measure.counted and len(measure.eligible) >= several]
    if not counted or len(eligible) < 2:
        return f"No recommendation: {no_choice(comparison, eligible)}."
    wins = {name: sum(measure.is_best(name) for measure in counted) for name in eligible}
    most, total = max(wins.values()), len(counted)
    first = [name for name in eligible if wins[name] == most]
    chosen = cheapest(first, comparison.facts)
    share = "the one measure" if total == 1 else f"{most} of {total} measures"
    said = f"Use {chosen}: best, or not distinguishable from the best, in {share}"
    weak = [m for m in counted if m.baseline_name and chosen in m.scores and not beats_baseline(m, chosen)]
    but = [f"{measure.baseline_name} does as well or better in {measure.name}" for measure in weak]
    if comparison.facts[chosen].data.what == UNKNOWN_LABELS:
        but.append("whether it was trained on these labels is unknown")
    reasons = [advantage(chosen, other, counted, comparison.facts) for other in first if other != chosen]
    return " ".join(f"{sentence}." for sentence in (f"{said}; but {'; '.join(but)}" if but else said, *reasons))


def no_choice(comparison: Comparison, eligible: Sequence[str]) -> str:
    """Why nothing is recommended."""
    if not comparison.measures:
        return "nothing was measured; pass documents, analogies or pairs"
    if len(eligible) > 1:
        return "no measure applies to two of the models"
    if len(comparison.models) == 1 and eligible:
        return "one model was given"
    rest = f"all models but {eligible[0]} were" if eligible else "all models were"
    return f"{rest} trained on these labels; compare on rows that none of them was trained on"


def cheapest(names: Sequence[str], facts: Mapping[str, Facts]) -> str:
    """The fastest; of those that are about as fast the smallest, since one timing is not exact."""
    fastest = max((facts[name].speed for name in names if not math.isnan(facts[name].speed)), default=math.nan)
    quick = [name for name in names if facts[name].speed * SAME_SPEED > fastest]
    return min(quick or names, key=lambda name: facts[name].bytes)


def advantage(chosen: str, other: str, measures: Sequence[Measure], facts: Mapping[str, Facts]) -> str:
    """Why the one of two equals."""
    both = [measure for measure in measures if {chosen, other} <= {*measure.models}]
    alike = bool(both) and all(measure.are_alike(chosen, other) for measure in both)
    said = f"{chosen} is as good as {other} within the interval" if alike else f"{chosen} is best as often as {other}"
    times, sizes = facts[chosen].speed / facts[other].speed, (facts[chosen].bytes, facts[other].bytes)
    if times >= SAME_SPEED or (times > 1 and sizes[0] > sizes[1]):
        return f"{said} and {times:,.0f}× faster" if times >= 9.95 else f"{said} and {times:.1f}× faster"
    if sizes[0] < sizes[1]:
        return f"{said} and smaller ({size_text(sizes[0])}, not {size_text(sizes[1])})"
    return f"{said} and costs about the same"


def beats_baseline(measure: Measure, name: str) -> bool:
    other = measure.baseline_name
    return measure.scores[name].value > measure.scores[other].value and not measure.are_alike(name, other)
