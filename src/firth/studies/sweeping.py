"""`sweep`: a method's options searched under a budget of time, judged by a task of the user's own.

Random search (Bergstra & Bengio 2012): where a few of many options matter it finds good ones sooner than a grid, and a
trial depends on the seed and its number alone, so that a killed sweep goes on as if nothing had been. Every trial is a
whole training, not a short one that the best survive: what learns fast at first is not what ends best.

FOLDER/sweep.json has the trials, FOLDER/trial the model that is being trained, FOLDER/best the best one so far.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.checkpoint import difference
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model
from firth.core.processes import refuse_processes
from firth.core.report import Report
from firth.core.run import Run
from firth.core.saved import load
from firth.core.storage import check_writable, new_file, put_in_place, read_json, saying_where, write_json
from firth.core.train import LOCK, finished_identity, identity_of, lock, train, unfinished_identity
from firth.evaluate.layout import html_table, text_table
from firth.studies.comparison import Measure, measured
from firth.studies.space import Between, Tries, drawn, search_space, with_options
from firth.studies.tasks import Task

RECORD, TRIAL, BEST = "sweep.json", "trial", "best"
HALF = re.compile(rf"\.({RECORD}|{TRIAL}|{BEST})-")  # what a kill in the midst of writing leaves
OUT_OF_TIME = "out of time"
HOPELESS = 5  # trials that all failed: the next ones would, too
CHOSEN, PLAIN = "chosen", "as it is"
SHOWN = 25  # trials in the printed table
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Trial:
    """`options` are those that differ from the method as it was given; `score` is on the dev part."""

    number: int
    options: Mapping[str, Any]
    score: float | None
    seconds: float
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "options": dict(self.options)}


@dataclass(frozen=True)
class Sweep:
    """What was tried, and what the best of it is worth on the part of the task that did not choose it."""

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
        return best_of(self.trials)

    @property
    def model(self) -> Model:
        return load(self.folder / BEST, tokenizer=self.tokenizer)

    @property
    def seconds(self) -> float:
        return sum(trial.seconds for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "model": str(self.folder / BEST),
            "method": self.method,
            "task": self.task,
            "what": self.what,
            "best": self.best.to_json(),
            "test": {name: score.to_json() for name, score in self.test.scores.items()},
            "distinguishable": len(self.test.scores) > 1 and not self.test.alike,
            "trials": [trial.to_json() for trial in self.trials],
            "budget": self.budget,
            "seconds": self.seconds,
            "ended": self.ended,
        }

    def table(self) -> tuple[list[str], list[list[str]], list[int]]:
        """Best first; what failed last."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.options))
        ranked = sorted(self.trials, key=lambda trial: (-rank(trial), trial.number))
        rows = []
        for trial in ranked[:SHOWN]:
            options = [shown(trial.options.get(name, "·")) for name in names]
            rows.append([str(trial.number), *options, judged(trial), f"{trial.seconds:.1f}"])
        return ["trial", *names, "score", "seconds"], rows, list(range(len(names) + 3))

    def lines(self) -> list[str]:
        """What stands below the table."""
        rest = len(self.trials) - SHOWN
        more = [f"and {rest:,} more that did no better"] if rest > 0 else []
        score = self.test.scores
        said = f"On {self.test.items:,} items that did not choose: {CHOSEN} {score[CHOSEN]}"
        if PLAIN in score:
            alike = "not distinguishable" if self.test.alike else "distinguishable"
            said += f", {PLAIN} {score[PLAIN]} ({alike}, paired bootstrap, 95 %)"
        said += f". {self.task}: {self.what}."
        return [
            *more,
            f"· stands for the option as it was given. {self.ended}.",
            said,
            f"Best model: {self.folder / BEST}",
        ]

    def __str__(self) -> str:
        return "\n".join([text_table(*self.table()), "", *self.lines()])

    def _repr_html_(self) -> str:
        from html import escape

        return html_table(*self.table()) + "".join(f"<p>{escape(line)}</p>" for line in self.lines())


def sweep(
    method: Method,
    data: Any,
    task: Task,
    folder: PathLike,
    *,
    tries: Tries | None = None,
    budget: float = 600.0,
    run: Run = Run(),
    start: Model | None = None,
    overwrite: bool = False,
) -> Sweep:
    """Trains `method` on `data` with other options again and again for `budget` seconds; FOLDER/best is the model that
    does best on `task.dev`, and `task.test` says how well.

    `tries` names options with their values, a `Between(low, high)`, or None for a range about the default; without it
    every number of the method varies. The first trial is the method as it is. The same call goes on with what was
    broken off; a larger `budget` adds trials.
    """
    check_first(method, run, Path(folder))
    space = search_space(method, tries)
    if budget <= 0 or run.budget:
        raise FirthError(
            "conflicting_options",
            "A sweep's budget is its own and above 0, in seconds; each training takes the time it needs.",
        )
    identity = {
        **identity_of(method, data, run, start),
        "task": task.identity,
        "tries": {name: identified(values) for name, values in space.items()},
    }
    with alone(Path(folder), identity, overwrite) as study:
        study.settle(method)
        while (ended := study.over(budget)) is None:
            options = drawn(method, space, run.seed, [trial.options for trial in study.finished()])
            if options is None:
                ended = "Every combination was tried"
                break
            study.attempt(method, data, task, options, budget, run, start)
        best = study.best()
        split = getattr(method, "tokenizer", None)
        tokenizer = split if callable(split) and "tokenizer" not in best.options else None
        values = {CHOSEN: task.test.values(load(study.folder / BEST, tokenizer=tokenizer))}
        if best.number > 1 and study.plain is not None:
            values[PLAIN] = np.array(study.plain)
        test = measured(task.name, task.what, values, truth=task.test.truth, seed=run.seed)
        name = type(method).method_name()
        return Sweep(study.folder, name, task.name, task.what, tuple(study.trials), budget, ended, test, tokenizer)


class Study:
    """A sweep's folder: what was tried is in its record, written whole after every trial."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder, self.identity = folder, identity
        self.trials: list[Trial] = []
        self.plain: list[float] | None = None  # one number a test item, of the method as it is
        path = folder / RECORD
        record = read_json(path) if path.is_file() else {"identity": identity, "trials": [], "plain": None}
        try:
            found = record["identity"]
            self.trials, self.plain = [Trial(**trial) for trial in record["trials"]], record["plain"]
        except (KeyError, TypeError) as error:
            raise FirthError(
                "damaged_file", "{path} is no record of a sweep ({reason}).", path=path, reason=str(error)
            ) from None
        if found != identity:
            why = difference({"identity": found}, dict(identity))
            raise FirthError(
                "other_run",
                "{folder} holds another sweep ({reason}); choose another folder, or overwrite it (--overwrite).",
                folder=folder,
                reason=why,
            )

    def write(self) -> None:
        trials = [trial.to_json() for trial in self.trials]
        with new_file(self.folder / RECORD) as work:
            write_json(work, {"identity": self.identity, "trials": trials, "plain": self.plain}, indent=1)

    def finished(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.problem != OUT_OF_TIME]

    def over(self, budget: float) -> str | None:
        """Why no trial follows; None while one may."""
        done = self.finished()
        if len(done) >= HOPELESS and all(trial.score is None for trial in done):
            raise FirthError(
                "sweep_failed",
                "All of the first {n_done} trials failed. The first: {problem}",
                n_done=len(done),
                problem=done[0].problem,
            )
        spent = sum(trial.seconds for trial in self.trials)
        return f"The budget of {budget:g} s is spent" if spent >= budget else None

    def best(self) -> Trial:
        scored = [trial for trial in self.trials if trial.score is not None]
        if scored:
            return best_of(scored)
        failed = self.finished()
        if failed:
            raise FirthError(
                "sweep_failed",
                "None of {n_failed} trials gave a score. The first: {problem}",
                n_failed=len(failed),
                problem=failed[0].problem,
            )
        raise FirthError(
            "conflicting_options",
            "No trial was finished in the time given; with a larger budget the same command goes on.",
        )

    def attempt(
        self,
        method: Method,
        data: Any,
        task: Task,
        options: Mapping[str, Any],
        budget: float,
        run: Run,
        start: Model | None,
    ) -> None:
        """One trial: trained, judged, recorded, and kept if it is the best. One that ran out of time goes on."""
        self.trials, before = self.finished(), sum(t.seconds for t in self.trials if t.problem == OUT_OF_TIME)
        left = budget - before - sum(trial.seconds for trial in self.trials)
        number, began = len(self.trials) + 1, time.monotonic()
        score, problem, took = None, "", 0.0
        watched = dataclasses.replace(run, report=Deadline(run.report, began + left, number))
        try:
            made = with_options(method, options)
            unknown = self.identity["data"] is None  # then a model in the folder can't be told from another's
            done = train(made, data, self.folder / TRIAL, run=watched, start=start, overwrite=unknown)
            took = float(done.model.training.get("seconds", 0.0)) if done.status != "trained" else 0.0
            value = task.dev.score(done.model)
            score, problem = (value, "") if math.isfinite(value) else (None, "the score is not defined")
            if number == 1 and score is not None:
                self.plain = task.test.values(done.model).tolist()
        except OutOfTimeError:
            problem = OUT_OF_TIME
        except Exception as error:  # whatever a combination of options does, the sweep goes on
            problem = f"{type(error).__name__}: {error}".partition("\n")[0].removeprefix("FirthError: ")
        seconds = max(before + time.monotonic() - began, took)
        self.trials.append(Trial(number, dict(options), score, seconds, problem))
        self.write()
        if problem != OUT_OF_TIME:
            self.settle(method)

    def settle(self, method: Method) -> None:
        """Puts the best trial's model in its place and clears that of any other; safe to be done again after a kill."""
        trial, best = self.folder / TRIAL, self.folder / BEST
        scored = [each for each in self.trials if each.score is not None]
        wanted = whole_options(method, best_of(scored)) if scored else None
        there = finished_identity(trial)
        if there is not None and wanted is not None and there["options"] == wanted:
            with saying_where(best):
                put_in_place(trial, best)
        begun = finished_identity(trial) or unfinished_identity(trial)
        tried = [whole_options(method, each) for each in self.finished()]
        if trial.exists() and (begun is None or begun["options"] in tried):
            shutil.rmtree(trial)


class OutOfTimeError(Exception):
    """The budget is spent."""


class Deadline:
    """A report that ends the work when the time is over: whatever takes long tells its progress."""

    def __init__(self, report: Report, last: float, number: int) -> None:
        self.report, self.last, self.number = report, last, number

    def look(self) -> None:
        if time.monotonic() > self.last:
            self.report.end()
            raise OutOfTimeError

    def begin(self, task: str, total: float, unit: str) -> None:
        self.look()
        self.report.begin(f"Trial {self.number}: {task}", total, unit)

    def step(self, done: float, **figures: float) -> None:
        self.look()
        self.report.step(done, **figures)

    def end(self) -> None:
        self.report.end()

    def note(self, text: str, code: str = "note") -> None:
        self.report.note(text, code)


def check_first(method: Method, run: Run, folder: Path) -> None:
    """Refuses what can be refused without reading data: a device, processes or a folder that cannot be used."""
    method.check_run(run)
    refuse_processes("A sweep")
    with saying_where(folder):
        check_writable(folder)
        names = {path.name for path in folder.iterdir() if not HALF.match(path.name)} if folder.exists() else set()
    if names and RECORD not in names and names != {LOCK}:
        some = ", ".join(sorted(names)[:3])
        raise FirthError(
            "unsafe_output",
            "{folder} holds other files ({examples}); choose another folder for the sweep.",
            folder=folder,
            examples=some,
        )


@contextlib.contextmanager
def alone(folder: Path, identity: Mapping[str, Any], overwrite: bool) -> Iterator[Study]:
    """The sweep in a folder, for this process only."""
    with saying_where(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = lock(folder, folder)
    try:
        with saying_where(folder):
            for path in folder.iterdir():
                if HALF.match(path.name) or (overwrite and path.name in (RECORD, TRIAL, BEST)):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        study = Study(folder, identity)
        study.write()
        yield study
    finally:
        os.close(handle)


def identified(values: tuple[Any, ...] | Between) -> Any:
    return f"{values.low!r} to {values.high!r}" if isinstance(values, Between) else list(values)


def whole_options(method: Method, trial: Trial) -> dict[str, Any]:
    """As they stand in the identity of a model."""
    return dict(json.loads(json.dumps({**method.options(), **trial.options})))


def best_of(trials: Any) -> Trial:
    found: Trial = max(trials, key=lambda trial: (rank(trial), -trial.number))
    return found


def rank(trial: Trial) -> float:
    return -math.inf if trial.score is None else trial.score


def judged(trial: Trial) -> str:
    return trial.problem if trial.score is None else f"{trial.score:.4f}"


def shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
