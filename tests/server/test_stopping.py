"""`firth serve` as a process: when it is stopped under load, it answers all accepted connections."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from serving import answers_until_stopped

import firth


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


def test_accepted_connections_are_answered_during_shutdown(started):
    process, port, log = started
    answers = answers_until_stopped(process, port, clients=8)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["event"] for line in lines if line["event"] != "request"] == ["stopping", "stopped"]
    done = sum(line["event"] == "request" and line["status"] == 200 for line in lines)
    assert done == answers


def test_health_reports_the_shutdown(started):
    process, port, _ = started
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        statuses = {client.get("/health").status_code}
        process.send_signal(signal.SIGTERM)
        for _ in range(200):
            try:
                statuses.add(client.get("/health").status_code)
            except httpx.HTTPError:
                break
            time.sleep(0.01)
    assert statuses == {200, 503}
    assert process.wait(30) == 0
