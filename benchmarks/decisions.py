"""Figures behind docs/decisions.md: parts that Firth wrote itself, beside the libraries that cover the same.

    pip install bm25s rank-bm25 prometheus-client onnxscript sentencepiece gguf  # peers; each may be missing
    python benchmarks/decisions.py

Makes its own data: docstrings of the installed packages, and random matrices. Each pair is run in turns.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import firth
from firth.core.storage import read_arrays, write_arrays
from firth.data.docstrings import python_docstrings
from firth.training.truncated_svd import truncated_svd

ROUNDS = 5


def main() -> None:
    texts = [text for _, text in python_docstrings(["numpy", "scipy", "sklearn", "torch"])]
    print(f"{len(texts):,} docstrings\n")
    for part in (
        safetensors,
        lambda: svd(texts),
        lambda: bm25(texts),
        lambda: pieces(texts),
        gguf,
        prometheus,
        onnx,
        guard,
    ):
        part()
        print()


def best(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of the fastest of several rounds, run in turns."""
    seconds = {name: [] for name in calls}  # type: dict[str, list[float]]
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(values) for name, values in seconds.items()}


def peak(call: Callable[[], Any]) -> float:
    """Megabytes that a call adds to the memory of a new process."""

    def run(queue: Any) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        call()
        queue.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)

    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=run, args=(queue,))
    process.start()
    process.join()
    return float(queue.get())


def safetensors() -> None:
    """A memory-mapped matrix is saved again, as `Model.save` does, and a file is opened."""
    from safetensors.numpy import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "a.safetensors", Path(folder) / "b.safetensors"
        write_arrays(source, {"vectors": np.random.default_rng(1).standard_normal((200_000, 300)).astype(np.float32)})
        mapped = read_arrays(source)
        writers: dict[str, Callable[[], Any]] = {
            "Firth": lambda: write_arrays(target, mapped),
            "safetensors": lambda: save_file({"vectors": np.asarray(mapped["vectors"])}, target),
        }
        readers: dict[str, Callable[[], Any]] = {
            "Firth": lambda: read_arrays(source),
            "safetensors": lambda: load_file(source),
        }
        print("safetensors, 240 MB: write a mapped matrix, then open a file")
        for name in writers:
            print(f"  {name:<12} write {peak(writers[name]):6.0f} MB more, open {best(readers)[name] * 1e3:8.2f} ms")


def svd(texts: list[str]) -> None:
    """tf-idf of docstrings, 100 dimensions: seconds and the Frobenius error beyond the best possible."""
    from scipy.sparse.linalg import svds
    from sklearn.utils.extmath import randomized_svd

    matrix = firth.TfIdf(min_count=2).fit(texts).matrix
    k, threads = 100, firth.Run(threads=2)
    solvers: dict[str, Callable[[], Any]] = {
        "Firth": lambda: truncated_svd(matrix, k, threads).values,
        "scikit-learn, randomized": lambda: randomized_svd(matrix, k, random_state=1)[1],
        "scipy, ARPACK": lambda: svds(matrix, k)[1],
    }
    total = float(matrix.power(2).sum())
    exact = np.sort(svds(matrix.astype(np.float64), k)[1])
    least = np.sqrt(total - float((exact**2).sum()))
    seconds = best(solvers)
    print(f"truncated SVD of {matrix.shape[0]:,} × {matrix.shape[1]:,}, {k} dimensions")
    for name, solve in solvers.items():
        error = np.sqrt(total - float((np.asarray(solve(), dtype=np.float64) ** 2).sum()))
        print(f"  {name:<26} {seconds[name]:6.2f} s  error {error / least - 1:+.1e} beyond the best")


def bm25(texts: list[str]) -> None:
    """Queries of three words; the postings of an index beside libraries that hold all in memory."""
    queries = [" ".join(text.split()[:3]) for text in texts[:: max(1, len(texts) // 100)]][:100]
    index = firth.Index.create(None, dim=2)
    index.add([str(row) for row in range(len(texts))], np.ones((len(texts), 2)), {"text": texts})
    searches: dict[str, Callable[[], Any]] = {
        "Firth": lambda: [index.search(query, k=10, mode="words") for query in queries],
    }
    if importlib.util.find_spec("bm25s"):
        import bm25s

        retriever = bm25s.BM25()
        retriever.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
        searches["bm25s"] = lambda: [
            retriever.retrieve(bm25s.tokenize(query, stopwords=None, show_progress=False), k=10, show_progress=False)
            for query in queries
        ]
    if importlib.util.find_spec("rank_bm25"):
        from rank_bm25 import BM25Okapi

        ranker = BM25Okapi([text.lower().split() for text in texts])
        searches["rank-bm25"] = lambda: [
            np.argsort(-ranker.get_scores(query.lower().split()))[:10] for query in queries
        ]
    print(f"BM25, {len(queries)} queries over {len(texts):,} texts")
    for name, seconds in best(searches).items():
        print(f"  {name:<12} {seconds / len(queries) * 1e3:7.2f} ms a query")


def pieces(texts: list[str]) -> None:
    """A sentencepiece model is parsed; the library also builds its own tokenizer, which Firth does not need."""
    if not importlib.util.find_spec("sentencepiece"):
        return
    import sentencepiece

    from firth.data.sentencepiece_files import parse

    with tempfile.TemporaryDirectory() as folder:
        prefix = f"{folder}/model"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts[:5000]), model_prefix=prefix, vocab_size=8000, minloglevel=2
        )
        data = Path(f"{prefix}.model").read_bytes()
    readers: dict[str, Callable[[], Any]] = {
        "Firth": lambda: parse(data),
        "sentencepiece": lambda: sentencepiece.SentencePieceProcessor(model_proto=data),
    }
    print(f"sentencepiece: a model of 8,000 tokens, {len(data) / 1e3:.0f} kB")
    for name, took in best(readers).items():
        print(f"  {name:<14} {took * 1000:6.1f} ms")


def gguf() -> None:
    """A GGUF file with a vocabulary of 100,000 tokens and 64 MB of weights is opened."""
    if not importlib.util.find_spec("gguf"):
        return
    from gguf import GGUFReader, GGUFWriter

    from firth.formats.gguf import read_gguf

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        writer = GGUFWriter(path, "llama")
        writer.add_array("tokenizer.ggml.tokens", [f"token {number}" for number in range(100_000)])
        for number in range(16):
            writer.add_tensor(f"blk.{number}.weight", np.zeros((1024, 1024), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        print(f"GGUF: a file of {path.stat().st_size / 1e6:.0f} MB is opened")
        readers: dict[str, Callable[[], Any]] = {"Firth": lambda: read_gguf(path), "gguf": lambda: GGUFReader(path)}
        for name, took in best(readers).items():
            print(f"  {name:<8} {took * 1000:6.0f} ms")


def prometheus() -> None:
    """One response is counted: a counter and a histogram, each with labels."""
    from firth.server.metrics import Metrics

    count, metrics = 20_000, Metrics()
    counters: dict[str, Callable[[], Any]] = {
        "Firth": lambda: [metrics.count_response("/embed", 200, 0.01) for _ in range(count)]
    }
    if importlib.util.find_spec("prometheus_client"):
        from prometheus_client import Counter, Histogram

        requests = Counter("requests", "Responses.", ["route", "status"])
        seconds = Histogram("seconds", "Time.", ["route"])

        def count_response() -> None:
            requests.labels("/embed", "200").inc()
            seconds.labels("/embed").observe(0.01)

        counters["prometheus-client"] = lambda: [count_response() for _ in range(count)]
    print("Prometheus: one response is counted")
    for name, took in best(counters).items():
        print(f"  {name:<18} {took / count * 1e6:6.2f} µs")


def onnx() -> None:
    """A BERT of 4 layers and 128 dimensions is written as ONNX; torch traces it."""
    import torch

    from firth.transformers.onnx_export import write_onnx

    texts = ["the king and the queen", "the sea and the river"] * 50
    model = firth.BERT(layers=4, dim=128, heads=2, epochs=1, vocabulary_size=300).fit(texts)
    with tempfile.TemporaryDirectory() as folder:
        writers: dict[str, Callable[[], Any]] = {"Firth": lambda: write_onnx(model, Path(folder) / "a.onnx")}
        if importlib.util.find_spec("onnxscript"):
            net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(128, 2, 512, batch_first=True), 4).eval()
            row = torch.zeros(1, 8, 128)
            writers["torch.onnx"] = lambda: torch.onnx.export(net, (row,), f"{folder}/b.onnx", verbose=False)
        print("ONNX: a network of 4 layers and 128 dimensions is written")
        for name, took in best(writers).items():
            print(f"  {name:<12} {took:6.2f} s")


def guard() -> None:
    """A body of 200 MB without a Content-Length, in chunks, to a route that reads it: with the guard and without."""
    import asyncio

    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from firth.server.guard import Guard
    from firth.server.settings import Settings

    async def read(request: Any) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    app = Starlette(routes=[Route("/read", read, methods=["POST"])])

    def ask(target: Any) -> None:
        left, statuses = [200], []

        async def receive() -> dict[str, Any]:
            left[0] -= 1
            return {"type": "http.request", "body": bytes(1 << 20), "more_body": left[0] > 0}

        async def send(message: Any) -> None:
            statuses.append(message.get("status"))

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/read", "raw_path": b"/read", "query_string": b""}
        scope |= {"headers": headers, "http_version": "1.1", "scheme": "http", "server": ("localhost", 80)}
        asyncio.run(target({**scope, "client": ("127.0.0.1", 1)}, receive, send))
        print(f"    status {statuses[0]}, {200 - left[0]} MB received", flush=True)

    print("HTTP: memory that a body of 200 MB takes")
    for name, target in (("Starlette alone", app), ("with the guard", Guard(app, Settings()))):
        print(f"  {name:<16} {peak(lambda target=target: ask(target)):6.0f} MB more")


if __name__ == "__main__":
    main()
