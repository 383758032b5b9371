"""What waits is computed together, within limits; what fails fails alone; who is gone is passed by."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import socket
import threading

import httpx
import numpy as np
import pytest
from serving import run_alone, serving, until

from firth.server.batching import Batcher, Job
from firth.server.reading import ReadInputs


class Words:
    """A reader whose rows are the lengths of the texts; it records its batches and waits for permission to compute."""

    def __init__(self, open=True):
        self.batches, self.leave = [], threading.Event()
        if open:
            self.leave.set()

    def rows(self, items):
        self.batches.append(list(items))
        assert self.leave.wait(100)
        if "bad" in items:
            raise RuntimeError("a secret")
        return np.array([[len(item)] for item in items], np.float32)


def reading(*texts):
    return ReadInputs(list(texts), [len(text) for text in texts], 0)


async def waiting(batcher, count):
    """Wait until so many requests are queued behind the current batch."""
    while len(batcher.waiting) < count:
        await asyncio.sleep(0.001)


def batches_of(jobs, batch_tokens=10):
    """Return the batches of requests that arrive while the first is being computed."""

    async def run():
        reader, batcher = Words(open=False), Batcher(batch_tokens, 1000, lambda *_: None)
        first = asyncio.ensure_future(batcher.rows(reader, reading("first")))
        while not reader.batches:
            await asyncio.sleep(0.001)
        tasks = []
        for texts in jobs:
            tasks.append(asyncio.ensure_future(batcher.rows(reader, reading(*texts))))
            await waiting(batcher, len(tasks))
        reader.leave.set()
        answers = await asyncio.gather(first, *tasks, return_exceptions=True)
        batcher.close()
        return reader.batches[1:], answers[1:]

    return run_alone(run())


def test_queued_requests_share_batches_up_to_the_token_limit():
    batches, answers = batches_of([["aaaa"], ["bbb", "cc"], ["dddd"], ["e"]])
    assert batches == [["aaaa", "bbb", "cc"], ["dddd", "e"]]
    assert [answer.ravel().tolist() for answer in answers] == [[4], [3, 2], [4], [1]]


def test_a_long_request_is_split_and_queues_behind_the_others():
    batches, answers = batches_of([["aaaaa"] * 5, ["b"], ["c"]])
    assert batches == [["aaaaa", "aaaaa"], ["b", "c", "aaaaa"], ["aaaaa", "aaaaa"]]
    assert answers[0].ravel().tolist() == [5] * 5


def test_a_text_longer_than_a_batch_is_computed_alone():
    batches, _ = batches_of([["a" * 50], ["b"]])
    assert batches == [["a" * 50], ["b"]]


def test_only_the_faulty_request_of_a_batch_fails():
    batches, answers = batches_of([["good"], ["bad"], ["well"]])
    assert batches[0] == ["good", "bad"] or batches[0] == ["good", "bad", "well"]
    assert isinstance(answers[1], RuntimeError)
    assert [answers[0].ravel().tolist(), answers[2].ravel().tolist()] == [[4], [4]]


def test_a_batch_has_requests_of_one_model_only():
    async def run():
        old, new, batcher = Words(open=False), Words(), Batcher(100, 1000, lambda *_: None)
        tasks = [asyncio.ensure_future(batcher.rows(old, reading("first")))]
        while not old.batches:
            await asyncio.sleep(0.001)
        for number, reader in enumerate((old, new, new), 1):
            tasks.append(asyncio.ensure_future(batcher.rows(reader, reading("next"))))
            await waiting(batcher, number)
        old.leave.set()
        await asyncio.gather(*tasks)
        batcher.close()
        return old.batches, new.batches

    assert run_alone(run()) == ([["first"], ["next"]], [["next", "next"]])


def test_a_job_counts_the_inputs_that_fit():
    async def run():
        job = Job(Words(), reading("aaa", "bb", "cccc"))
        return [job.next_part(room) for room in (0, 2, 3, 5, 8, 9)]

    assert run_alone(run()) == [0, 0, 1, 2, 2, 3]


# ---- through the server ----


@pytest.fixture
def slow(places):
    with held(places, 100.0) as both:
        yield both


@contextlib.contextmanager
def held(places, answer_seconds):
    """A server whose model computes once `words.leave` is set, and the reader `words`."""
    limits = {"answer_seconds": answer_seconds, "queue_tokens": 20, "batch_tokens": 8}
    with serving(models={"words": places["words"]}, **limits) as client:
        assert client.post("/embed", json={"inputs": "king"}).status_code == 200
        reader = client.app.state.embedding.readers["words"][1]
        words = Words(open=False)
        reader.rows = words.rows
        yield client, words
        words.leave.set()


def ask(client, text):
    with httpx.Client(base_url=client.base_url, timeout=100) as own:
        return own.post("/embed", json={"inputs": text, "normalize": False})


def test_requests_are_refused_while_the_queue_is_full(slow):
    client, words = slow
    batcher = client.app.state.embedding.batchers["words"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        begun = [pool.submit(ask, client, "a b c d e f g h") for _ in range(2)]
        assert until(lambda: batcher.tokens == 16)
        answer = ask(client, "a b c d e f g h")
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
        assert answer.json()["code"] == "overloaded" and "16 tokens" in answer.json()["error"]
        small = pool.submit(ask, client, "a b c d")  # still fits
        assert until(lambda: batcher.tokens == 20)
        words.leave.set()
        assert [each.result().status_code for each in (*begun, small)] == [200] * 3
    assert until(lambda: batcher.tokens == 0)


def test_a_response_that_takes_too_long_is_a_timeout(places):
    with held(places, 2.0) as (client, words):
        answer = ask(client, "king")
        assert answer.status_code == 504 and answer.json()["code"] == "timeout" and "2 s" in answer.json()["error"]
        words.leave.set()
        assert until(lambda: ask(client, "king").status_code == 200)


def test_requests_of_disconnected_clients_are_not_computed(slow):
    client, words = slow
    batcher = client.app.state.embedding.batchers["words"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, client, "first")
        assert until(lambda: bool(words.batches))
        body = b'{"inputs": "nobody"}'
        with socket.create_connection((client.base_url.host, client.base_url.port)) as line:
            line.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert until(lambda: batcher.tokens == 2)
        assert until(lambda: batcher.tokens == 1)
        words.leave.set()
        assert first.result().status_code == 200
        assert ask(client, "last").status_code == 200
    assert ["nobody"] not in words.batches


def test_faults_are_logged_without_their_message(slow, caplog):
    client, words = slow
    words.leave.set()
    answer = ask(client, "bad")
    assert answer.status_code == 500 and answer.json()["error_type"] == "fault"
    faults = [record.fields for record in caplog.records if record.getMessage() == "fault"]
    assert faults[0]["type"] == "RuntimeError" and any("rows" in location for location in faults[0]["where"])
    assert "secret" not in str(faults) and "secret" not in answer.text
