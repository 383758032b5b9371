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
    `baseline`, if there is one, knows no vectors."""

    name: str
    what: str
    items: int
    scores: Mapping[str, Score]
    alike: frozenset[frozenset[str]]
    baseline_name: str = ""
    counted: bool = True  # for the recommendation: of two figures from the same ranks, only one

    @property
    def models(self) -> list[str]:
        return [name for name in self.scores if name != self.baseline_name]

    @property
    def best(self) -> str:
        return max(self.models, key=lambda name: -math.inf if self.undefined(name) else self.scores[name].value)

    def is_best(self, name: str) -> bool:
        """Or not distinguishable from the best."""
        known = name in self.models and not self.undefined(name)
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
            "best": self.best,
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

    bytes: int
    dim: int
    coverage: float  # share of the words of the texts that have a vector
    speed: float  # texts a second

    def to_json(self) -> dict[str, Any]:
        figures = {"coverage": number_or_none(self.coverage), "texts_per_second": number_or_none(self.speed)}
        return {"bytes": self.bytes, "dim": self.dim, **figures}


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
        """Measures down, models across; * the best, ≈ not distinguishable from it."""
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
    "coverage": lambda facts: percent(facts.coverage),
    "texts a second": lambda facts: "–" if math.isnan(facts.speed) else f"{facts.speed:,.0f}",
    "dimensions": lambda facts: f"{facts.dim:,}" if facts.dim else "–",
    "size": lambda facts: size_text(facts.bytes),
}


def marked(measure: Measure, name: str) -> str:
    if name not in measure.scores:
        return "–"
    alone = len(measure.models) == 1
    mark = " " if alone or not measure.is_best(name) else "*" if name == measure.best else "≈"
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
    """The model that is best, or not distinguishable from the best, in most measures; of equals the smallest."""
    several = min(2, len(comparison.models))  # where one model alone was asked, it wins nothing
    counted = [measure for measure in comparison.measures if measure.counted and len(measure.models) >= several]
    if not counted or len(comparison.models) < 2:
        why = "one model was given" if counted else "nothing was measured; pass documents, analogies or pairs"
        return f"No recommendation: {why}."
    wins = {name: sum(measure.is_best(name) for measure in counted) for name in comparison.models}
    most, total = max(wins.values()), len(counted)
    first = [name for name in wins if wins[name] == most]
    chosen = min(first, key=lambda name: comparison.facts[name].bytes)
    share = "the one measure" if total == 1 else f"{most} of {total} measures"
    if len(first) == 1:
        said = f"Use {chosen}: best, or not distinguishable from the best, in {share}"
    else:
        said = f"Use {chosen}, the smallest of {', '.join(first)}, which are equally often best or not distinguishable "
        said += f"from the best ({share})"
    weak = [m for m in counted if m.baseline_name and chosen in m.scores and not beats_baseline(m, chosen)]
    known = "; ".join(f"{measure.baseline_name} does as well or better in {measure.name}" for measure in weak)
    return f"{said}; but {known}." if weak else f"{said}."


def beats_baseline(measure: Measure, name: str) -> bool:
    other = measure.baseline_name
    return measure.scores[name].value > measure.scores[other].value and not measure.are_alike(name, other)
