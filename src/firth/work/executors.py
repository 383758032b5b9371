"""Where the shards of a job are computed: in this process, in local processes, or on Ray."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from firth.core.errors import FirthError
from firth.core.run import available_cores
from firth.work.worker import answer, receivers

T = TypeVar("T")
Result = dict[str, Any]
Tell = Callable[[int, float], None]  # the number of a request, and the share of it that is computed

ATTEMPTS = 3  # how often a shard is started whose worker dies


@dataclass(frozen=True)
class Cluster:
    """Where a job runs, and how many workers it has.

    `where` is empty (this process), "processes", "ray" or ray://HOST:PORT. `part` (number, of) selects every of-th
    shard, for an array of independent jobs that share the folder of the results.
    """

    where: str = ""
    workers: int = 0  # 0: one per core or GPU
    gpus_per_worker: float = 0
    part: tuple[int, int] | None = None  # the number is counted from 1

    def __post_init__(self) -> None:
        if self.where not in ("", "processes", "ray") and not self.where.startswith("ray://"):
            raise FirthError(
                "invalid_value",
                "{option} must be processes, ray or ray://HOST:PORT; got {got!r}.",
                option="cluster",
                got=self.where,
            )

    def own(self, shards: Sequence[T]) -> Sequence[T]:
        """Return the shards of this part; all of them if there are no parts."""
        return shards[self.part[0] - 1 :: self.part[1]] if self.part else shards


def parse_part(text: str) -> tuple[int, int]:
    """ "3/64" -> (3, 64)."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise FirthError(
            "invalid_value",
            "{option} must be a part and the number of parts, such as 3/64; got {got!r}.",
            option="--shard",
            got=text,
        )
    return int(number), int(parts)


class Executor(Protocol):
    """Computes requests in any order."""

    threads: int  # per worker; 0: all cores
    workers: int

    def check_simultaneous(self) -> None:
        """Refuse more workers than can run at the same time."""

    def results(self, requests: Iterable[str], tell: Tell) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each request when it is finished. A request is taken when a worker is
        free."""

    def on_each_machine(self, request: str) -> list[Result]:
        """Return the results of one request on every other machine."""


_opened: ContextVar[Mapping[Cluster, Executor]] = ContextVar("opened", default={})  # noqa: B039 (never changed)


@contextlib.contextmanager
def executor(cluster: Cluster) -> Iterator[Executor]:
    """Yield the executor of a cluster; its workers stop at the end of the block.

    Within the block, the same cluster has the same executor, so that the workers serve several jobs.
    """
    cluster = replace(cluster, part=None)
    if cluster in _opened.get():
        yield _opened.get()[cluster]
        return
    with new_executor(cluster) as workers:
        token = _opened.set({**_opened.get(), cluster: workers})
        try:
            yield workers
        finally:
            _opened.reset(token)


@contextlib.contextmanager
def new_executor(cluster: Cluster) -> Iterator[Executor]:
    """Start the workers of a cluster; they stop at the end of the block."""
    if not cluster.where:
        yield ThisProcess()
    elif cluster.where == "processes":
        with contextlib.closing(LocalProcesses(cluster.workers, cluster.gpus_per_worker)) as processes:
            yield processes
    else:
        from firth.work.ray_cluster import connected

        with connected(cluster) as workers:
            yield workers


class ThisProcess:
    """Computes one shard after the other; the functions use all cores."""

    threads = 0
    workers = 1

    def check_simultaneous(self) -> None:
        """Refuse more workers than can run at the same time: there is one."""

    def results(self, requests: Iterable[str], tell: Tell) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each request when it is finished."""
        for number, request in enumerate(requests):
            receivers.append(functools.partial(tell, number))
            try:
                result = json.loads(answer(request))
            finally:
                receivers.pop()
            yield number, result

    def on_each_machine(self, request: str) -> list[Result]:
        """Return the results of one request on every other machine."""
        return []


class LocalProcesses:
    """Worker processes of this machine. A worker that dies is replaced, and its shard is started again."""

    def __init__(self, workers: int, gpus_per_worker: float) -> None:
        self.gpus = gpu_names() if gpus_per_worker else []
        self.workers = workers or int(len(self.gpus) / gpus_per_worker if gpus_per_worker else 0) or available_cores()
        if gpus_per_worker and self.workers * gpus_per_worker > len(self.gpus):
            raise no_gpus(len(self.gpus), self.workers, gpus_per_worker)
        self.threads = max(1, available_cores() // self.workers)
        self.gpus_per_worker = gpus_per_worker
        self.processes: set[subprocess.Popen[str]] = set()
        self.waiting: queue.SimpleQueue[tuple[int, int, str] | None] = queue.SimpleQueue()  # number, attempt, request
        self.results_queue: queue.SimpleQueue[tuple[int, Result] | BaseException] = queue.SimpleQueue()
        self.served = 0  # workers that have a thread
        self.closed = False

    def check_simultaneous(self) -> None:
        """Refuse more workers than can run at the same time: each has a process."""

    def results(self, requests: Iterable[str], tell: Tell) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each request when it is finished."""
        source, unfinished = enumerate(requests), 0
        while True:
            while unfinished < self.workers and (request := next(source, None)) is not None:
                self.waiting.put((request[0], 1, request[1]))
                unfinished += 1
                if self.served < unfinished:
                    threading.Thread(target=self.serve, args=(self.served,), daemon=True).start()
                    self.served += 1
            if not unfinished:
                return
            item = self.results_queue.get()
            if isinstance(item, BaseException):
                raise item
            number, result = item
            if "share" in result:
                tell(number, result["share"])
                continue
            unfinished -= 1
            yield number, result

    def on_each_machine(self, request: str) -> list[Result]:
        """Return the results of one request on every other machine."""
        return []

    def serve(self, worker: int) -> None:
        """Give requests to one worker process, until there are no more."""
        try:
            with tempfile.TemporaryFile("w+b") as errors:
                process = self.start(worker, errors)
                while (task := self.waiting.get()) is not None:
                    number, attempt, request = task
                    result = None
                    for line in exchange(process, request):
                        result = json.loads(line)
                        self.results_queue.put((number, result))
                    if result and "share" not in result:
                        continue
                    status = process.wait()
                    self.processes.discard(process)
                    if self.closed:
                        return
                    if attempt < ATTEMPTS:
                        self.waiting.put((number, attempt + 1, request))
                    else:
                        self.results_queue.put((number, {"error": died(status, errors)}))
                    process = self.start(worker, errors)
        except BaseException as error:
            self.results_queue.put(error)

    def start(self, worker: int, errors: Any) -> subprocess.Popen[str]:
        """Start a worker process."""
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 (as Python resolves "")
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": str(self.threads)}
        if self.gpus_per_worker:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus_of(worker, self.gpus_per_worker, self.gpus))
        process = subprocess.Popen(
            [sys.executable, "-m", "firth.work.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, encoding="utf-8",
        )  # fmt: skip
        self.processes.add(process)
        return process

    def close(self) -> None:
        """Stop the workers."""
        self.closed = True
        for process in list(self.processes):
            process.kill()
            process.wait()
        for _ in range(self.workers):
            self.waiting.put(None)


def exchange(process: subprocess.Popen[str], request: str) -> Iterator[str]:
    """Send a request to a worker, and yield the lines of its answer: only the last one has no share, unless it died."""
    assert process.stdin and process.stdout
    with contextlib.suppress(OSError, ValueError):  # it died, or the pipes were closed
        process.stdin.write(request + "\n")
        process.stdin.flush()
        while (line := process.stdout.readline()).endswith("\n"):
            yield line
            if not line.startswith('{"share"'):
                return


def died(status: int, errors: Any) -> dict[str, Any]:
    """Return the error for a shard whose workers died."""
    reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    if status == -signal.SIGKILL:
        reason += ", as when memory runs out"
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 400))
    last = errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    message = f"{ATTEMPTS} workers died ({reason}). Finished shards are kept; the same command resumes."
    return {"code": "worker_died", "message": message, "values": {"reason": reason, "last": "".join(last)}}


def no_gpus(available: float, workers: int, gpus_per_worker: float) -> FirthError:
    """Return the error for workers that need more GPUs than there are."""
    return FirthError(
        "no_gpu",
        "There are {available:g} GPUs, but {workers} workers need {required:g} each (--gpus-per-worker).",
        available=available,
        workers=workers,
        required=gpus_per_worker,
    )


def gpus_of(worker: int, gpus_per_worker: float, names: Sequence[str]) -> Sequence[str]:
    """Return the GPUs of a worker, or the one that it shares."""
    if gpus_per_worker < 1:
        return [names[worker // int(1 / gpus_per_worker)]]
    each = int(gpus_per_worker)
    return names[worker * each : (worker + 1) * each]


def gpu_names() -> list[str]:
    """Return the names of the NVIDIA GPUs that this process may use, without starting CUDA."""
    selected = os.environ.get("CUDA_VISIBLE_DEVICES")
    if selected is not None:
        return [name for name in selected.split(",") if name]
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [str(number) for number in range(len(listed.stdout.splitlines()))] if listed.returncode == 0 else []
