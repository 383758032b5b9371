"""`firth train … --cluster ray`: the processes of a training run as workers of Ray Train.

Ray Train starts the workers on the machines of a cluster, connects them, and starts all of them again if one is lost;
they resume from the last checkpoint in the output folder, which all machines must share.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from firth.cli.train_workers import Outcome, replay, work
from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.processes import is_first_process
from firth.core.report import Report
from firth.core.run import Run
from firth.version import __version__
from firth.work.ray_cluster import connection  # sets Ray's environment variables before Ray is imported

try:
    import ray
    import ray.train
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.queue import Empty, Queue
except ImportError as error:
    raise missing_package("--cluster ray needs", "ray[train]", "ray") from error

RESTARTS = 3  # of all workers, after one was lost


def train_on_ray(command: Mapping[str, Any], run: Run) -> list[Outcome]:
    """Run the command in the workers of a cluster, show their progress, and return how they ended."""
    folder = Path(command["values"]["folder"]).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with connection(run.cluster), tempfile.TemporaryDirectory(prefix=".ray-", dir=folder.parent) as storage:
        workers, use_gpu = workers_of(run)
        events = Queue(actor_options={"num_cpus": 0})
        settings = {
            "command": json.dumps(command),
            "events": events,
            "cwd": str(Path.cwd()),
            "folder": str(folder.parent),
            "versions": versions(),
        }
        trainer = TorchTrainer(
            train_worker,
            train_loop_config=settings,
            scaling_config=ray.train.ScalingConfig(num_workers=workers, use_gpu=use_gpu),
            torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if use_gpu else "gloo"),
            run_config=ray.train.RunConfig(
                name="train", storage_path=storage, failure_config=ray.train.FailureConfig(max_failures=RESTARTS)
            ),
        )
        # Ray prints on standard output, where the result goes, when a worker is lost.
        with shown(events, run.report) as outcomes, contextlib.redirect_stdout(io.StringIO()):
            try:
                trainer.fit()
            except ray.train.TrainingFailedError as failure:
                reason = " ".join(str(failure).split())[:400]
                outcomes += [] if any("error" in each for each in outcomes) else [lost(reason)]
    return outcomes or [lost("no worker has reported how it ended")]


def train_worker(settings: dict[str, Any]) -> None:
    """Run the command in a worker of Ray Train, which has set the variables of torchrun."""
    command, events = json.loads(settings["command"]), settings["events"]
    try:
        check_worker(settings)
    except FirthError as error:
        outcome: Outcome = {"error": {"code": error.code, "message": str(error), "values": error.values}}
    else:
        os.chdir(settings["cwd"])
        outcome = work(command, Lines(events))
    if is_first_process() or "error" in outcome:
        events.put(json.dumps(outcome, default=str))
    if outcome.get("error", {}).get("code") == "lost_process":
        raise RuntimeError(outcome["error"]["message"])  # Ray starts the workers again


def check_worker(settings: Mapping[str, Any]) -> None:
    """Check that the worker has the driver's versions and sees its folders."""
    if settings["versions"] != versions():
        raise FirthError(
            "version_mismatch",
            "The driver has {expected}, but a worker has {got}. Install the same versions on all machines.",
            expected=settings["versions"],
            got=versions(),
        )
    for name in ("cwd", "folder"):
        if not Path(settings[name]).is_dir():
            raise FirthError(
                "not_shared",
                "A worker on {host} does not see {folder}. Use folders on a file system that all machines share.",
                host=platform.node(),
                folder=settings[name],
            )


def versions() -> str:
    """Return the versions that driver and workers must have in common."""
    return f"Firth {__version__}, Python {platform.python_version()}"


class Lines(io.StringIO):
    """A stream that sends lines to the driver."""

    def __init__(self, events: Queue) -> None:
        super().__init__()
        self.events = events

    def write(self, line: str) -> int:
        """Send a line."""
        self.events.put(line)
        return len(line)


@contextlib.contextmanager
def shown(events: Queue, report: Report) -> Iterator[list[Outcome]]:
    """Show the events of the workers during the block; yield the outcomes that they send."""
    outcomes: list[Outcome] = []
    ended = threading.Event()

    def show() -> None:
        while True:
            try:
                values = json.loads(events.get(timeout=0.5))
            except Empty:
                if ended.is_set():
                    return
                continue
            if "event" in values:
                replay(values, report)
            else:
                # Workers that were started again have the last word.
                outcomes[:] = [values] if "status" in values else [*outcomes, values]

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield outcomes
    finally:
        ended.set()
        thread.join(timeout=10)


def lost(reason: str) -> Outcome:
    """Return the outcome of a run whose workers were lost again and again."""
    error = FirthError(
        "lost_process",
        "Ray Train has lost the workers of this run ({reason}). The same command resumes from the last checkpoint.",
        reason=reason,
    )
    return {"error": {"code": error.code, "message": str(error), "values": error.values}}


def workers_of(run: Run) -> tuple[int, bool]:
    """Return the number of workers and whether each has a GPU."""
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus = 0 if run.device == "cpu" else int(resources.get("GPU", 0))
    limit = gpus or int(resources.get("CPU", 1))
    if run.workers > limit:
        raise FirthError(
            "invalid_value",
            "{option} must be at most {limit}, the number of {resource} of the cluster; got {got}.",
            option="workers",
            limit=limit,
            resource="GPUs" if gpus else "CPUs",
            got=run.workers,
        )
    return run.workers or limit, gpus > 0
