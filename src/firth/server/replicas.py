"""`firth serve --replicas N`: several processes answer the requests of one address.

The supervisor opens the socket, starts the replicas, which inherit it, and replaces those that die. All of them accept
connections from the same queue, so a connection that waits is not lost with a replica. Each replica has a Unix socket
that gives its metrics to the others; whichever is asked for /metrics returns those of all.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import queue
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from firth.core.errors import FirthError
from firth.core.run import available_cores
from firth.server import logs
from firth.server.running import address_of, listen, new_server
from firth.server.settings import Settings
from firth.work.executors import gpu_names

YOUNG_SECONDS = 10.0  # a replica that dies earlier has failed to start
FAILURES = 5  # of a start, one after the other, after which the server stops
METRICS_SECONDS = 2.0  # to wait for the metrics of another replica
STOP = -1


def run_replicas(settings: Settings, ready: Callable[[str, str], None], requests: bool = True) -> None:
    """Serve with `settings.replicas` processes until a signal stops them; `ready` gets the address when all have
    started."""
    logs.begin(requests)
    with tempfile.TemporaryDirectory(prefix="firth-") as folder:
        supervisor = Supervisor(settings, requests, Path(folder))
        address = address_of(settings, supervisor.listening)
        supervisor.run(lambda: ready(address, address))


class Supervisor:
    """Starts replicas, replaces those that die, and stops all of them."""

    def __init__(self, settings: Settings, requests: bool, folder: Path) -> None:
        self.listening = listen(settings.host, settings.port)
        self.count, self.gpus = settings.replicas, gpu_names()
        values = {**dataclasses.asdict(settings), "models": names_of(settings.models)}
        values |= {"indexes": names_of(settings.indexes), "root": None}
        self.order = {
            "settings": values,
            "requests": requests,
            "folder": str(folder),
            "socket": self.listening.fileno(),
        }
        self.events: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()  # number of a replica, what happened
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.started: dict[int, float] = {}
        self.failures = 0
        self.stopping = False

    def run(self, ready: Callable[[], None]) -> None:
        """Run until all replicas have stopped."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: self.events.put((STOP, "")))
        waiting = set(range(self.count))
        try:
            for number in range(self.count):
                self.start(number)
            while self.processes:
                number, event = self.events.get()
                if number == STOP:
                    self.stop()
                elif event == "ready":
                    if number in waiting and not waiting - {number}:
                        ready()
                    waiting.discard(number)
                else:
                    self.replace(number, event)
        finally:
            for process in self.processes.values():
                process.kill()
        if self.failures >= FAILURES:
            raise FirthError(
                "worker_died",
                "A replica of the server died {times} times as it started. Its error is above.",
                times=self.failures,
            )

    def start(self, number: int) -> None:
        """Start a replica, on a GPU of its own if there are GPUs, else on its share of the cores."""
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 (as Python resolves "")
        threads = str(max(1, available_cores() // self.count))
        environment = {**os.environ, "PYTHONPATH": paths, "FIRTH_THREADS": threads, "OMP_NUM_THREADS": threads}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[number % len(self.gpus)]
        process = subprocess.Popen(
            [sys.executable, "-m", "firth.server.replicas"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8",
            pass_fds=[self.listening.fileno()], start_new_session=True,
        )  # fmt: skip
        self.processes[number], self.started[number] = process, time.monotonic()
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has died
            process.stdin.write(json.dumps({**self.order, "number": number}) + "\n")
            process.stdin.flush()
        threading.Thread(target=self.watch, args=(number, process), daemon=True).start()

    def watch(self, number: int, process: subprocess.Popen[str]) -> None:
        """Report that a replica is ready, and that it has ended."""
        assert process.stdout is not None
        for line in process.stdout:
            self.events.put((number, line.strip()))
        self.events.put((number, str(process.wait())))

    def replace(self, number: int, status: str) -> None:
        """Start another replica for one that ended."""
        process = self.processes.pop(number)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        if self.stopping:
            return
        young = time.monotonic() - self.started[number] < YOUNG_SECONDS
        self.failures = self.failures + 1 if young else 0
        logs.event("replica died", replica=number, status=status)
        if self.failures >= FAILURES:
            self.stop()
        else:
            self.start(number)

    def stop(self) -> None:
        """Let all replicas answer what they have accepted; the second time, end them."""
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL if self.stopping else signal.SIGTERM)
        self.stopping = True
        self.listening.close()  # it closes when the last replica closes it too


def names_of(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return paths by name as JSON."""
    return {name: str(path) for name, path in paths.items()}


# ---- in a replica ----


class MetricsServer(socketserver.ThreadingUnixStreamServer):
    """Gives the metrics of this replica to the others."""

    daemon_threads = True

    def __init__(self, path: Path, text: Callable[[], str]) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(text().encode())

        path.unlink(missing_ok=True)  # of a replica that died
        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def metrics_path(folder: Path, number: int) -> Path:
    """Return the path of a replica's socket."""
    return folder / f"{number}.sock"


async def metrics_of_others(folder: Path, own: int, count: int) -> list[str]:
    """Return the metrics of the other replicas; one that is just being replaced has none."""

    async def read(number: int) -> str:
        try:
            reader, writer = await asyncio.open_unix_connection(str(metrics_path(folder, number)))
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
        except OSError:
            return ""

    async def in_time(number: int) -> str:
        try:
            return await asyncio.wait_for(read(number), METRICS_SECONDS)
        except asyncio.TimeoutError:
            return ""

    return list(await asyncio.gather(*(in_time(number) for number in range(count) if number != own)))


def main() -> None:
    """Serve as one of the replicas. The supervisor writes the settings to standard input, which ends when it dies."""
    order = json.loads(sys.stdin.readline())
    values, number, folder = order["settings"], order["number"], Path(order["folder"])
    paths = {name: {key: Path(path) for key, path in values[name].items()} for name in ("models", "indexes")}
    settings = Settings(**{**values, **paths, "hosts": tuple(values["hosts"])})
    logs.begin(order["requests"], replica=number)
    server = new_server(settings)
    store = server.app.state.metrics
    store.labels = (("replica", str(number)),)
    store.others = lambda: metrics_of_others(folder, number, settings.replicas)
    MetricsServer(metrics_path(folder, number), store.text)

    def stop_with_supervisor() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_with_supervisor, daemon=True).start()
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.run([socket.socket(fileno=order["socket"])])


if __name__ == "__main__":
    main()
