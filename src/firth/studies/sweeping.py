"""`sweep`: random search over a method's options within a time budget, scored by a task of the user's own.

Random search (Bergstra & Bengio 2012) finds good options sooner than a grid if only a few of many options matter. A
trial depends only on the seed and its number, so that an interrupted sweep resumes exactly. Every trial is a full
training: there is no early stopping of trials as in successive halving, because fast starters are not always best at
the end.

FOLDER/sweep.json has the trials, FOLDER/trial the model in training, FOLDER/best the best model so far. On a cluster,
workers train in FOLDER/trials/NUMBER; the process of the sweep records the results and keeps the best model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import itertools
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firth.core.checkpoint import difference
from firth.core.errors import FirthError
from firth.core.functions import tokenizer_function
from firth.core.method import Method, check_cluster
from firth.core.model import Model
from firth.core.processes import refuse_processes
from firth.core.remote import AnyPath
from firth.core.report import Nothing, Report
from firth.core.run import Run
from firth.core.saved import load
from firth.core.storage import check_writable, new_file, put_in_place, read_json, remove, saying_where, write_json
from firth.core.train import LOCK, finished_identity, identity_of, lock, train, unfinished_identity
from firth.studies.comparison import make_measure
from firth.studies.space import Between, SearchSpace, Space, next_options, search_space, with_options
from firth.studies.sweep_result import BEST, BEST_OPTIONS, DEFAULT_OPTIONS, Sweep, Trial, best_of
from firth.studies.tasks import Task
from firth.work.executors import Cluster, Executor, executor
from firth.work.job import Job, Shard, check_machines, rebuilt
from firth.work.worker import RECORDS, enter, tell

RECORD, TRIAL, TRIALS = "sweep.json", "trial", "trials"
PARTIAL = re.compile(rf"\.({RECORD}|{TRIAL}|{BEST})-")  # partial files of a process that was killed while writing
OUT_OF_TIME = "out of time"
ALL_TRIED = "Every combination was tried"
MAX_FAILURES = 5  # a sweep ends when this many first trials have all failed
LOST_TRIAL = ("worker_died", "out_of_memory")  # codes of a trial that fails alone; other errors end the sweep
LOCKED_SECONDS = 60.0  # in which a worker that lost its driver leaves the folder of its trial
PathLike = str | os.PathLike[str]


class SweepInputs(NamedTuple):
    """What a sweep works on."""

    method: Method
    data: Any
    task: Task
    run: Run = Run()
    start: Model | None = None


class Opener(NamedTuple):
    """How workers open the inputs of a sweep: a function of a module, its JSON arguments, and the files it reads."""

    function: Callable[..., SweepInputs]
    arguments: Mapping[str, Any]
    files: Sequence[AnyPath] = ()


def sweep(
    method: Method,
    data: Any,
    task: Task,
    folder: PathLike,
    *,
    space: SearchSpace | None = None,
    budget: float = 600.0,
    run: Run = Run(),
    start: Model | None = None,
    overwrite: bool = False,
    cluster: Cluster = Cluster(),
    opener: Opener | None = None,
) -> Sweep:
    """Train `method` on `data` with different options for `budget` seconds and evaluate each model on `task`.

    FOLDER/best is the model with the highest score on `task.dev`; its score on `task.test` is reported. `space` maps
    options to their values, a `Between(low, high)`, or None for a range around the default; without it every number of
    the method varies. The first trial is the method as given. Calling it again resumes an interrupted sweep; a larger
    `budget` adds trials. On a `cluster`, workers train and score the trials: `budget` is the time of each worker, and
    `opener` says how they open the same method, data, task, run and start.
    """
    check_sweep(method, run, Path(folder))
    if cluster.where and opener is None:
        raise FirthError(
            "missing_option",
            "{option} needs {missing} too, which says how workers open the data and the task.",
            option="cluster",
            missing="opener",
        )
    checked_space = search_space(method, space)
    if budget <= 0:
        raise FirthError(
            "invalid_value", "The {option} of a sweep must be above 0 seconds; got {got}.", option="budget", got=budget
        )
    if run.budget:
        raise FirthError(
            "conflicting_options",
            "{option} cannot be used in a sweep, which has a budget of its own: each training runs to its end.",
            option="Run.budget",
        )
    identity = {
        **identity_of(method, data, run, start),
        "task": task.identity,
        "tries": {name: space_identity(values) for name, values in checked_space.items()},
    }
    with locked_study(Path(folder), identity, overwrite) as study:
        study.settle(method)
        plan = study.planned(method, checked_space, run.seed)
        ended: str | None
        if opener is not None and cluster.where:
            ended = study.attempt_on(cluster, opener, method, plan, budget, run.report)
        else:
            while (ended := study.over(budget)) is None:
                if (planned := next(plan, None)) is None:
                    ended = ALL_TRIED
                    break
                study.attempt(planned, SweepInputs(method, data, task, run, start), budget)
        best = study.best()
        tokenizer = None if "tokenizer" in best.options else tokenizer_function(method)
        values = {BEST_OPTIONS: task.test.values(load(study.folder / BEST, tokenizer=tokenizer))}
        if best.number > 1 and study.plain is not None:
            values[DEFAULT_OPTIONS] = np.array(study.plain)
        test = make_measure(task.name, task.what, values, truth=task.test.truth, seed=run.seed)
        name = type(method).method_name()
        return Sweep(study.folder, name, task.name, task.what, tuple(study.trials), budget, ended, test, tokenizer)


class Study:
    """A sweep's folder. Its record of trials is rewritten after every trial."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder, self.identity = folder, identity
        self.trials: list[Trial] = []
        self.plain: list[float] | None = None  # one value per test item, of the method as given
        path = folder / RECORD
        record = read_json(path) if path.is_file() else {"identity": identity, "trials": [], "plain": None}
        try:
            stored_identity = record["identity"]
            self.trials, self.plain = [Trial(**trial) for trial in record["trials"]], record["plain"]
        except (KeyError, TypeError) as error:
            raise FirthError(
                "damaged_file", "{path} is not the record of a sweep ({reason}).", path=path, reason=str(error)
            ) from None
        if stored_identity != identity:
            reason = difference({"identity": stored_identity}, dict(identity))
            raise FirthError(
                "other_run",
                "{folder} holds another sweep ({reason}). Choose another folder, or overwrite it (--overwrite).",
                folder=folder,
                reason=reason,
            )

    def write(self) -> None:
        """Write the record."""
        trials = [trial.to_json() for trial in self.trials]
        with new_file(self.folder / RECORD) as work:
            write_json(work, {"identity": self.identity, "trials": trials, "plain": self.plain}, indent=1)

    def finished(self) -> list[Trial]:
        """Return the trials that did not run out of time."""
        return [trial for trial in self.trials if trial.problem != OUT_OF_TIME]

    def planned(self, method: Method, space: Space, seed: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield number and options of the trials without a result. They depend on the seed only, not on results."""
        finished, tried = {trial.number for trial in self.finished()}, list[Mapping[str, Any]]()
        for number in itertools.count(1):
            options = next_options(method, space, seed, tried)
            if options is None:
                return
            tried.append(options)
            if number not in finished:
                yield number, options

    def over(self, budget: float, workers: int = 1) -> str | None:
        """Return the reason why the sweep ends, or None if another trial may start."""
        done = self.finished()
        if len(done) >= MAX_FAILURES and all(trial.score is None for trial in done):
            raise FirthError(
                "sweep_failed",
                "All of the first {n_done} trials failed. The first: {problem}",
                n_done=len(done),
                problem=done[0].problem,
            )
        spent = sum(trial.seconds for trial in self.trials)
        return f"The budget of {budget:g} s is spent" if spent >= budget * workers else None

    def best(self) -> Trial:
        """Return the trial with the highest dev score."""
        scored = [trial for trial in self.trials if trial.score is not None]
        if scored:
            return best_of(scored)
        failed = self.finished()
        if failed:
            raise FirthError(
                "sweep_failed",
                "None of the {n_failed} trials has a score. The first: {problem}",
                n_failed=len(failed),
                problem=failed[0].problem,
            )
        raise FirthError(
            "conflicting_options",
            "No trial was finished within the {option}. Run the sweep again with a larger one to resume it.",
            option="budget",
        )

    def attempt(self, planned: tuple[int, Mapping[str, Any]], inputs: SweepInputs, budget: float) -> None:
        """Train, evaluate and record one trial, and keep its model if it is the best; resumes one that ran out of
        time."""
        number, options = planned
        before = self.spent_before(number)
        left = budget - before - sum(trial.seconds for trial in self.trials)
        began = time.monotonic()
        run = dataclasses.replace(inputs.run, report=Deadline(inputs.run.report, began + left, number))
        unknown = self.identity["data"] is None  # then a model in the folder may have been trained on other data
        result = attempted(number, options, inputs._replace(run=run), self.folder / TRIAL, overwrite=unknown)
        seconds = max(before + time.monotonic() - began, result.seconds)
        self.record(Trial(number, dict(options), result.score, seconds, result.problem), result.test)
        if result.problem != OUT_OF_TIME:
            self.settle(inputs.method)

    def spent_before(self, number: int) -> float:
        """Remove the record of a trial that ran out of time, and return its seconds."""
        before = sum(trial.seconds for trial in self.trials if trial.number == number)
        self.trials = [trial for trial in self.trials if trial.number != number]
        return before

    def record(self, trial: Trial, plain: list[float] | None) -> None:
        """Add a trial to the record; `plain` are the test values of the first one."""
        self.trials = sorted([*self.trials, trial], key=lambda each: each.number)
        self.plain = self.plain if plain is None else plain
        self.write()

    def attempt_on(
        self,
        cluster: Cluster,
        opener: Opener,
        method: Method,
        plan: Iterator[tuple[int, Mapping[str, Any]]],
        budget: float,
        report: Report,
    ) -> str:
        """Let workers train and evaluate trials, record these as they are finished, and return why the sweep ends."""
        folder = (self.folder / TRIALS).absolute()
        job = trial_job(folder, opener, unknown=self.identity["data"] is None)
        with saying_where(folder):
            (folder / RECORDS).mkdir(parents=True, exist_ok=True)
        dispatched: list[tuple[Trial, float]] = []  # without results, and when it began
        report.begin("Trials", budget, "s")
        try:
            with executor(cluster) as workers:
                check_machines(job, workers)
                already = sum(trial.seconds for trial in self.trials) / workers.workers
                began = time.monotonic() - already
                requests = self.requests(job, workers, plan, began, budget, dispatched)
                for number, answer in workers.results(
                    requests, lambda *_: report.step(min(budget, time.monotonic() - began))
                ):
                    trial, start = dispatched[number]
                    self.take(trial, time.monotonic() - start, answer, method)
                    report.step(min(budget, time.monotonic() - began))
                ended = self.over(budget, workers.workers)
        finally:
            report.end()
        shutil.rmtree(folder / RECORDS, ignore_errors=True)
        if not any(folder.iterdir()):
            folder.rmdir()
        return ended or (ALL_TRIED if next(plan, None) is None else f"The budget of {budget:g} s is spent")

    def requests(
        self,
        job: Job,
        workers: Executor,
        plan: Iterator[tuple[int, Mapping[str, Any]]],
        began: float,
        budget: float,
        dispatched: list[tuple[Trial, float]],
    ) -> Iterator[str]:
        """Yield the request of the next trial, while there is time, and add it to `dispatched`."""
        while self.over(budget, workers.workers) is None and (left := began + budget - time.monotonic()) > 0:
            if (planned := next(plan, None)) is None:
                return
            number, options = planned
            dispatched.append((Trial(number, dict(options), None, self.spent_before(number)), time.monotonic()))
            shard = Shard(f"{number}", {"number": number, "options": dict(options), "seconds": left})
            yield json.dumps(job.request(shard, workers.threads))

    def take(self, trial: Trial, seconds: float, answer: Mapping[str, Any], method: Method) -> None:
        """Record the answer of a worker, and keep the model of the trial if it is the best."""
        error = answer.get("error")
        if error and error.get("code") not in LOST_TRIAL:
            raise rebuilt(error, f"Trial {trial.number}")
        result = Attempted(None, error["message"] if error else "")
        if not error:
            result = Attempted(**read_json(self.folder / TRIALS / f"{trial.number}.json"))
        seconds = max(trial.seconds + seconds, result.seconds)
        trial = dataclasses.replace(trial, score=result.score, problem=result.problem, seconds=seconds)
        self.record(trial, result.test)
        self.settle(method)

    def settle(self, method: Method) -> None:
        """Move the best trial's model to FOLDER/best and remove other finished ones; can be repeated after a kill."""
        trial, best = self.folder / TRIAL, self.folder / BEST
        scored = [each for each in self.trials if each.score is not None]
        for each in self.finished():  # of workers
            model = self.folder / TRIALS / f"{each.number}"
            if scored and each == best_of(scored) and finished_identity(model) is not None:
                with saying_where(best):
                    put_in_place(model, best)
            remove(model)
            remove(model.with_suffix(".json"))
        best_options = full_options(method, best_of(scored)) if scored else None
        identity = finished_identity(trial)
        if identity is not None and best_options is not None and identity["options"] == best_options:
            with saying_where(best):
                put_in_place(trial, best)
        identity = finished_identity(trial) or unfinished_identity(trial)
        tried = [full_options(method, each) for each in self.finished()]
        if trial.exists() and (identity is None or identity["options"] in tried):
            shutil.rmtree(trial)


class Attempted(NamedTuple):
    """How a trial went: its score, or its problem; the training time of a model that was finished before."""

    score: float | None
    problem: str
    seconds: float = 0.0
    test: list[float] | None = None  # the values of the test part, of the first trial


def attempted(number: int, options: Mapping[str, Any], inputs: SweepInputs, folder: Path, overwrite: bool) -> Attempted:
    """Train and evaluate one trial. A failed combination of options does not end the sweep."""
    task, seconds, test = inputs.task, 0.0, None
    try:
        method = with_options(inputs.method, options)
        done = train(method, inputs.data, folder, run=inputs.run, start=inputs.start, overwrite=overwrite)
        if done.status != "trained":
            seconds = float(done.model.training.get("seconds", 0.0))
        score = task.dev.score(done.model)
        if not math.isfinite(score):
            return Attempted(None, "the score is not defined", seconds)
        if number == 1:
            test = task.test.values(done.model).tolist()
        return Attempted(score, "", seconds, test)
    except OutOfTimeError:
        return Attempted(None, OUT_OF_TIME, seconds)
    except Exception as error:
        if getattr(error, "code", "") == "locked":
            raise
        problem = f"{type(error).__name__}: {error}".partition("\n")[0].removeprefix("FirthError: ")
        return Attempted(None, problem, seconds)


# ---- in a worker ----


def trial_job(folder: Path, opener: Opener, unknown: bool) -> Job:
    """Return the job of the trials, whose shards follow; `unknown`: a model may be of other data."""
    common = {
        "function": f"{opener.function.__module__}:{opener.function.__qualname__}",
        "arguments": dict(opener.arguments),
        "folder": str(folder),
        "directory": str(Path.cwd()),
        "unknown": unknown,
    }
    return Job("Trials", "trials", run_trial, common, (), folder, opener.files, durable=False)


def run_trial(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Train and evaluate a trial in its folder, where it resumes if its worker dies, and write how it went."""
    enter(common["directory"])
    began = time.monotonic()
    inputs = opened_inputs(common["function"], json.dumps(common["arguments"]))
    number, last = parameters["number"], began + parameters["seconds"]
    run = dataclasses.replace(inputs.run, report=Deadline(Alive(began, parameters["seconds"]), last, number))
    while True:
        try:
            result = attempted(
                number,
                parameters["options"],
                inputs._replace(run=run),
                Path(common["folder"]) / f"{number}",
                overwrite=common["unknown"],
            )
            break
        except FirthError:  # a worker whose driver was killed still has the folder
            if time.monotonic() > began + LOCKED_SECONDS:
                raise
            time.sleep(0.2)
    write_json(folder / f"{number}.json", result._asdict())


@functools.lru_cache(maxsize=1)
def opened_inputs(function: str, arguments: str) -> SweepInputs:
    """Open the inputs of a sweep, once per worker."""
    module, _, name = function.partition(":")
    inputs: SweepInputs = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    return inputs


class Alive(Nothing):
    """Tells the driver every now and then that the trial goes on."""

    def __init__(self, began: float, seconds: float) -> None:
        self.began, self.seconds, self.last = began, seconds, began

    def step(self, done: float, **metrics: float) -> None:
        now = time.monotonic()
        if now - self.last > 0.5:
            self.last = now
            tell(min(1.0, (now - self.began) / self.seconds))


class OutOfTimeError(Exception):
    """The budget is spent."""


class Deadline:
    """A report that raises `OutOfTimeError` when the time is over; all long work reports its progress."""

    def __init__(self, report: Report, last: float, number: int) -> None:
        self.report, self.last, self.number = report, last, number

    def check_time(self) -> None:
        """Raise if the time is over."""
        if time.monotonic() > self.last:
            self.report.end()
            raise OutOfTimeError

    def begin(self, task: str, total: float, unit: str) -> None:
        self.check_time()
        self.report.begin(f"Trial {self.number}: {task}", total, unit)

    def step(self, done: float, **metrics: float) -> None:
        self.check_time()
        self.report.step(done, **metrics)

    def end(self) -> None:
        self.report.end()

    def note(self, text: str, code: str = "note") -> None:
        self.report.note(text, code)


def check_sweep(method: Method, run: Run, folder: Path) -> None:
    """Refuse a device, processes or a folder that cannot be used, before any data is read."""
    check_cluster(method, run)
    method.check_run(run)
    refuse_processes("A sweep")
    with saying_where(folder):
        check_writable(folder)
        names = {path.name for path in folder.iterdir() if not PARTIAL.match(path.name)} if folder.exists() else set()
    if names and RECORD not in names and names != {LOCK}:
        raise FirthError(
            "unsafe_output",
            "{folder} holds other files ({examples}). Choose another folder for the sweep.",
            folder=folder,
            examples=", ".join(sorted(names)[:3]),
        )


@contextlib.contextmanager
def locked_study(folder: Path, identity: Mapping[str, Any], overwrite: bool) -> Iterator[Study]:
    """Open the sweep in a folder, locked for this process."""
    with saying_where(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = lock(folder, folder)
    try:
        with saying_where(folder):
            for path in folder.iterdir():
                if PARTIAL.match(path.name) or (overwrite and path.name in (RECORD, TRIAL, TRIALS, BEST)):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        study = Study(folder, identity)
        study.write()
        yield study
    finally:
        os.close(handle)


def space_identity(values: tuple[Any, ...] | Between) -> Any:
    """Return values or a range as they are stored in the record."""
    return f"{values.low!r} to {values.high!r}" if isinstance(values, Between) else list(values)


def full_options(method: Method, trial: Trial) -> dict[str, Any]:
    """Return all options of a trial's method as they are stored in a model's identity."""
    return dict(json.loads(json.dumps({**method.options(), **trial.options})))
