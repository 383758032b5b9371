"""Figures behind docs/decisions.md: parts that Firth wrote itself, beside the libraries that cover the same.

    pip install bm25s rank-bm25      # the peers of BM25; left out where they are not installed
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
    for part in (safetensors, lambda: svd(texts), lambda: bm25(texts)):
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


if __name__ == "__main__":
    main()
