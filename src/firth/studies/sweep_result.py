"""The result of a sweep: its trials, and the scores of the best model on the test part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firth.core.model import Model
from firth.core.notebook import html_lines, html_table
from firth.core.saved import load
from firth.evaluate.layout import text_table
from firth.studies.comparison import Measure

BEST = "best"  # folder of the best model
BEST_OPTIONS, DEFAULT_OPTIONS = "best", "default"  # names of the two models that are compared on the test part
SHOWN = 25  # trials in the printed table


@dataclass(frozen=True)
class Trial:
    """One trial. `options` are those that differ from the method as given; `score` is that on the dev part."""

    number: int
    options: Mapping[str, Any]
    score: float | None
    seconds: float
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the trial as JSON values."""
        return {**vars(self), "options": dict(self.options)}


@dataclass(frozen=True)
class Sweep:
    """The trials of a sweep, and the scores of the best model on the test part, which was not used for selection."""

    folder: Path
    method: str
    task: str
    what: str
    trials: tuple[Trial, ...]
    budget: float
    ended: str
    test: Measure
    tokenizer: Any = None  # the function that the method splits text by, if it is one

    @property
    def best(self) -> Trial:
        """The trial with the highest dev score."""
        return best_of(self.trials)

    @property
    def model(self) -> Model:
        """The model of the best trial, loaded from the folder."""
        return load(self.folder / BEST, tokenizer=self.tokenizer)

    @property
    def seconds(self) -> float:
        """The time spent on all trials."""
        return sum(trial.seconds for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "folder": str(self.folder),
            "model": str(self.folder / BEST),
            "method": self.method,
            "task": self.task,
            "what": self.what,
            "best": self.best.to_json(),
            "test": {name: score.to_json() for name, score in self.test.scores.items()},
            "distinguishable": len(self.test.scores) > 1 and not self.test.indistinguishable,
            "trials": [trial.to_json() for trial in self.trials],
            "budget": self.budget,
            "seconds": self.seconds,
            "ended": self.ended,
        }

    def table(self) -> tuple[list[str], list[list[str]], list[int]]:
        """Return header, rows and columns of numbers: the best trial first, failed ones last."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.options))
        ranked = sorted(self.trials, key=lambda trial: (-rank(trial), trial.number))
        rows = []
        for trial in ranked[:SHOWN]:
            options = [value_text(trial.options.get(name, "·")) for name in names]
            rows.append([str(trial.number), *options, score_text(trial), f"{trial.seconds:.1f}"])
        return ["trial", *names, "score", "seconds"], rows, list(range(len(names) + 3))

    def lines(self) -> list[str]:
        """Return the lines below the table."""
        rest = len(self.trials) - SHOWN
        more = [f"and {rest:,} more with no better score"] if rest > 0 else []
        scores = self.test.scores
        result = f"On {self.test.items:,} held-out test items: {BEST_OPTIONS} {scores[BEST_OPTIONS]}"
        if DEFAULT_OPTIONS in scores:
            difference = "not distinguishable" if self.test.indistinguishable else "distinguishable"
            result += f", {DEFAULT_OPTIONS} {scores[DEFAULT_OPTIONS]} ({difference}, paired bootstrap, 95 %)"
        result += f". {self.task}: {self.what}."
        return [
            *more,
            f"· means the option as given. {self.ended}.",
            result,
            f"Best model: {self.folder / BEST}",
        ]

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table()), "", *self.lines()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self.table()) + html_lines(*self.lines())


def best_of(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the highest score; of ties the first."""
    best: Trial = max(trials, key=lambda trial: (rank(trial), -trial.number))
    return best


def rank(trial: Trial) -> float:
    """Return the score of a trial, −∞ for a failed one."""
    return -math.inf if trial.score is None else trial.score


def score_text(trial: Trial) -> str:
    """Format the score of a trial, or the reason why it failed."""
    return trial.problem if trial.score is None else f"{trial.score:.4f}"


def value_text(value: Any) -> str:
    """Format the value of an option."""
    return f"{value:g}" if isinstance(value, float) else str(value)
