"""A server in a thread of this process, with a client of it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from firth.server.running import GracefulServer, prepare_server
from firth.server.settings import Settings

BODY = json.dumps({"model": "words", "input": ["the king was old", "a river"]})


class Client(httpx.Client):
    """A client that knows its server."""

    def __init__(self, address: str, settings: Settings, server: GracefulServer) -> None:
        super().__init__(base_url=address, timeout=30)
        self.settings, self.server, self.app = settings, server, server.app

    def connections(self) -> int:
        """The number of open connections of the server."""
        return len(self.server.server_state.connections)


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[Client]:
    """A client of a server with these settings on a free port."""
    configured = Settings(**{"port": 0, **settings})
    server, listening, address = prepare_server(configured)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    with Client(address, configured, server) as client:
        try:
            yield client
        finally:
            server.should_exit = True
            thread.join(10)


class Asking(threading.Thread):
    """Send requests until connections are refused, and record the responses."""

    def __init__(self, port: int, keep: bool) -> None:
        super().__init__(daemon=True)
        self.port, self.keep = port, keep
        self.answers: list[tuple[int, int]] = []
        self.lost: list[str] = []
        self.start()

    def run(self) -> None:
        line: http.client.HTTPConnection | None = None
        while True:
            try:
                if line is None:
                    line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=100)
                    line.connect()
            except ConnectionRefusedError:
                return
            try:
                line.request("POST", "/v1/embeddings", BODY)
                answer = line.getresponse()
                found = json.loads(answer.read())
                self.answers.append((answer.status, len(found["data"])))
                if answer.will_close or not self.keep:
                    line.close()
                    line = None
            except (OSError, http.client.HTTPException) as error:
                self.lost.append(repr(error))
                line = None


def answers_until_stopped(process: subprocess.Popen[str], port: int, clients: int) -> int:
    """Stop a server with SIGTERM under load, check that it answers all that it accepted, and count the answers."""
    asking = [Asking(port, keep=number % 2 == 0) for number in range(clients)]
    while min(len(each.answers) for each in asking) < 5:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    for each in asking:
        each.join(100)
        assert not each.is_alive()
    assert process.wait(60) == 0
    assert [each.lost for each in asking] == [[]] * clients
    assert {answer for each in asking for answer in each.answers} == {(200, 2)}
    return sum(len(each.answers) for each in asking)


def run_alone(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine gives, run in a thread: where a browser is tested too, this one has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def until(fulfilled: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether it came true in time: a server logs a request behind its answer."""
    end = time.monotonic() + seconds
    while not fulfilled() and time.monotonic() < end:
        time.sleep(0.01)
    return fulfilled()
