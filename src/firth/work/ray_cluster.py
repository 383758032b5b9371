"""Shards as tasks of Ray, on a local or a running cluster. Ray starts, restarts and places them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.work.executors import ATTEMPTS, Cluster, Result, Tell, no_gpus
from firth.work.worker import answer

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before Ray is imported: no telemetry
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

try:
    import ray
    import ray.util
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise missing_package("--cluster ray needs", "ray", "ray") from error


WRONG_TOKEN = "InvalidAuthToken"  # in what Ray says


@contextlib.contextmanager
def connected(cluster: Cluster) -> Iterator[RayTasks]:
    """Connect to a cluster, or start a local one, for its tasks."""
    with connection(cluster.where):
        yield RayTasks(cluster)


@contextlib.contextmanager
def connection(where: str) -> Iterator[None]:
    """Connect to a cluster, or start a local one, and disconnect at the end unless the caller was connected."""
    was_connected = ray.is_initialized()
    if not was_connected:
        # Ray prints messages about lost nodes on standard output, where results are, and has no setting against it.
        vars(ray._private.worker)["print_to_stdstream"] = lambda *_, **__: None
        connect(where)
    try:
        yield
    finally:
        if not was_connected:
            ray.shutdown()


def connect(where: str) -> None:
    """Connect to ray://HOST:PORT, to the running cluster of this machine, or start a local one."""
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    address = where if where != "ray" else os.environ.get("RAY_ADDRESS", "auto")
    said: list[str] = []
    try:
        try:
            with captured_errors(said):
                ray.init(address=address, **settings)
        except ConnectionError:
            if where != "ray" or "RAY_ADDRESS" in os.environ or any(WRONG_TOKEN in text for text in said):
                raise
            # No cluster is running here.
            environment = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}  # noqa: PTH109
            ray.init(include_dashboard=False, runtime_env={"env_vars": environment}, **settings)
    except Exception as error:  # Ray raises exceptions of many classes here
        if where.startswith("ray://"):  # otherwise Ray takes this process for a client for ever
            with contextlib.suppress(Exception):
                ray.util.disconnect()  # type: ignore[no-untyped-call]
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        if any(WRONG_TOKEN in text for text in (reason, *said)):
            raise FirthError(
                "wrong_token",
                "The Ray cluster at {address} refuses this authentication token. Set RAY_AUTH_MODE=token and "
                "RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) as on the machines of the cluster.",
                address=address,
            ) from error
        if "ersion mismatch" in reason:  # of Python or Ray, with both versions
            raise FirthError(
                "version_mismatch", "The Ray cluster at {address}: {reason}", address=address, reason=reason
            ) from error
        raise FirthError(
            "no_cluster", "Cannot connect to the Ray cluster at {address}: {reason}", address=address, reason=reason
        ) from error


@contextlib.contextmanager
def captured_errors(said: list[str]) -> Iterator[None]:
    """Collect what Ray prints on standard error in the block: only there does it say why it does not connect."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said.append(file.read().decode("utf-8", "replace"))


class RayTasks:
    """Computes requests as tasks of one CPU each, with a bounded number in flight."""

    def __init__(self, cluster: Cluster) -> None:
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        per_worker = cluster.gpus_per_worker
        slots = resources.get("GPU", 0) / per_worker if per_worker else resources.get("CPU", 1)
        if per_worker and slots < 1:
            raise no_gpus(resources.get("GPU", 0), cluster.workers or 1, per_worker)
        self.workers = cluster.workers or max(1, int(slots))
        self.threads = max(1, int(resources.get("CPU", 1) / self.workers)) if per_worker else 1
        # A task keeps its process (max_calls=0), so that a model is loaded once per worker.
        self.task: Any = ray.remote(num_cpus=1, num_gpus=per_worker, max_retries=ATTEMPTS - 1, max_calls=0)(answer)

    def results(self, requests: Iterable[str], tell: Tell) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each request when it is finished."""
        pending: dict[Any, int] = {}
        waiting = iter(enumerate(requests))
        try:
            while True:
                while len(pending) < self.workers and (task := next(waiting, None)) is not None:
                    pending[self.task.remote(task[1])] = task[0]
                if not pending:
                    return
                [reference], _ = ray.wait(list(pending), num_returns=1)
                yield pending.pop(reference), result_of(reference)
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)

    def check_simultaneous(self) -> None:
        """Refuse more workers than the cluster can run at the same time."""
        slots = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        if self.workers > slots:
            raise FirthError(
                "invalid_value",
                "{option} must be at most {limit}, the number of CPUs of the cluster; got {got}. All workers of this "
                "method run at the same time.",
                option="workers",
                limit=slots,
                got=self.workers,
            )

    def on_each_machine(self, request: str) -> list[Result]:
        """Return the results of one request on every other machine."""
        probe: Any = ray.remote(num_cpus=0, max_retries=ATTEMPTS - 1)(answer)
        pending = {
            node: probe.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(request)
            for node in living_nodes()
        }
        results = []
        for node, reference in pending.items():
            with contextlib.suppress(ray.exceptions.TaskUnschedulableError):  # the node was lost before the task began
                result = result_of(reference)
                if "error" not in result or node in living_nodes():
                    results.append(result)
        return results


def living_nodes() -> set[str]:
    """Return the ids of the nodes of the cluster; a node that died meanwhile is not an error."""
    listed: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {node["NodeID"] for node in listed if node["Alive"]}


def result_of(reference: Any) -> Result:
    """Return the result of a task, or the error of a task whose processes died."""
    try:
        result: Result = json.loads(ray.get(reference))
    except ray.exceptions.TaskUnschedulableError:
        raise
    except ray.exceptions.RayError as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        message = f"{ATTEMPTS} workers died ({reason}). Finished shards are kept; the same command resumes."
        return {"error": {"code": "worker_died", "message": message, "values": {"reason": reason}}}
    return result
