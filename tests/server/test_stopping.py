"""`firth serve` as a process: when it is stopped under load, it answers all accepted connections."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

import firth

BODY = json.dumps({"model": "words", "input": ["the king was old", "a river"]})


@pytest.fixture
def started(places, tmp_path):
    """A server process, its port and its log file."""
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "firth", "serve", f"words={places['words']}", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    yield process, httpx.URL(address).port, tmp_path / "log"
    process.kill()
    process.wait()
    process.stdout.close()


class Asking(threading.Thread):
    """Send requests until connections are refused, and record the responses."""

    def __init__(self, port, keep):
        super().__init__(daemon=True)
        self.port, self.keep, self.answers, self.lost = port, keep, [], []
        self.start()

    def run(self):
        line = None
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


def test_accepted_connections_are_answered_during_shutdown(started):
    process, port, log = started
    asking = [Asking(port, keep=number % 2 == 0) for number in range(8)]
    while min(len(each.answers) for each in asking) < 5:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    for each in asking:
        each.join(100)
        assert not each.is_alive()
    assert process.wait(30) == 0
    assert [each.lost for each in asking] == [[]] * 8
    assert {answer for each in asking for answer in each.answers} == {(200, 2)}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines if line["event"] != "request"] == ["stopping", "stopped"]
    done = sum(line["event"] == "request" and line["status"] == 200 for line in lines)
    assert done == sum(len(each.answers) for each in asking)


def test_health_reports_the_shutdown(started):
    process, port, _ = started
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        statuses = set()
        for _ in range(200):
            try:
                statuses.add(client.get("/health").status_code)
            except httpx.HTTPError:
                break
            time.sleep(0.01)
    assert statuses == {200, 503}
    assert process.wait(30) == 0
