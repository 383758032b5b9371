"""`firth serve --replicas 2`: one address, metrics of both, a dead replica is replaced, and requests are answered."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from serving import answers_until_stopped, until

import firth
from firth.server.metrics import Metrics, merged

SAMPLE = re.compile(r'firth_requests_total\{replica="(\d)",route="/v1/embeddings",status="200"\} (\d+)')


@pytest.fixture
def started(places: dict[str, Path], tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of two replicas and its port. It is not told about GPUs that the machine may have."""
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "firth", "serve", f"words={places['words']}", "--port", "0", "--replicas", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "CUDA_VISIBLE_DEVICES": "4,7"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    yield process, httpx.URL(process.stdout.readline().strip()).port or 0
    process.terminate()
    process.wait(60)
    process.stdout.close()


def replicas(process: subprocess.Popen[str]) -> dict[int, str]:
    """The GPU of each process that serves."""
    found = {}
    for task in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            with contextlib.suppress(OSError):  # it has ended
                environment = Path(f"/proc/{child}/environ").read_text().split("\0")
                for text in environment:  # just after the start it is empty
                    if text.startswith("CUDA_VISIBLE_DEVICES="):
                        found[child] = text[21:]
    return found


def counted(client: httpx.Client) -> Counter[str]:
    """How many requests each replica has answered, by the metrics."""
    text = client.get("/metrics").text
    assert text.count("# TYPE firth_requests_total") == 1
    return Counter({number: int(count) for number, count in SAMPLE.findall(text)})


def test_replicas_share_an_address_and_are_replaced(started: tuple[subprocess.Popen[str], int]) -> None:
    process, port = started
    assert until(lambda: sorted(replicas(process).values()) == ["4", "7"])
    first = replicas(process)
    body = {"model": "words", "input": "the king was old"}

    def ask() -> int:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            return client.post("/v1/embeddings", json=body).status_code

    def both(done: list[int]) -> Callable[[], bool]:
        def fulfilled() -> bool:
            done.append(ask())
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                return set(counted(client)) == {"0", "1"}

        return fulfilled

    answers: list[int] = []
    assert until(both(answers)) and set(answers) == {200}  # each has answered some
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        assert until(lambda: sum(counted(client).values()) == len(answers))
        assert "Several replicas" in client.get("/").text  # instead of the workbench
    killed = next(iter(first))
    os.kill(killed, signal.SIGKILL)
    assert until(lambda: len(replicas(process)) == 2 and killed not in replicas(process))
    assert until(lambda: sorted(replicas(process).values()) == ["4", "7"])
    answers = []
    assert until(both(answers)) and set(answers) == {200}


def test_all_replicas_answer_what_they_have_accepted(started: tuple[subprocess.Popen[str], int]) -> None:
    process, port = started
    answers_until_stopped(process, port, clients=6)


def test_replicas_stop_with_their_supervisor(started: tuple[subprocess.Popen[str], int]) -> None:
    process, _ = started
    alive = list(replicas(process))
    process.kill()
    process.wait()
    assert until(
        lambda: (
            not any(
                Path(f"/proc/{each}/cmdline").exists() and Path(f"/proc/{each}/cmdline").read_bytes() for each in alive
            )
        )
    )


def test_metrics_of_replicas_have_one_header_each() -> None:
    texts = []
    for number in (0, 1):
        store = Metrics()
        store.labels = (("replica", str(number)),)
        store.count_response("/embed", 200, 0.1)
        texts.append(store.text())
    lines = merged(texts).splitlines()
    assert len(lines) == len(set(lines))
    samples = [number for number, line in enumerate(lines) if line.startswith("firth_requests_total")]
    assert len(samples) == 2 and samples[1] == samples[0] + 1
    assert merged(texts[:1]) == texts[0]
