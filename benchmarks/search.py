"""Search: Firth's index against NumPy and faiss; opening a million vectors; a million texts indexed.

    python benchmarks/search.py [--threads 2] [--rounds 3] [--rows 100000] [--dim 384] [--million 1000000]

Generates its data: vectors in 1,000 clusters of 64 dimensions, projected to --dim with noise, of norm 1; queries are
from the same clusters. Every library searches in its own process with the same threads, interleaved; the time of a call
is the best of the repeats of all rounds. NumPy is `queries @ matrix.T`, argpartition and a sort of the best; Firth is
timed through `Index.find`, from float32 queries to positions and scores. Recall is over 1,000 queries, against doubles.
A million texts are sentences of the synthetic corpus, indexed by `firth index` with skip-gram vectors of 100
dimensions; memory is the peak of that process (VmHWM), including mapped files.
Results: benchmarks/results/search.json and docs/results/search.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import ask  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth.core.report import human  # noqa: E402
from firth.data.world import World  # noqa: E402
from firth.index.graph import ADDING, CONNECTIONS, SEARCHING  # noqa: E402

RESULTS = HERE / "results" / "search.json"
PAGE = HERE.parent / "docs" / "results" / "search.md"
K, BATCHES = 10, (1, 100)
EXACT = ("NumPy", "faiss IndexFlatIP", "Firth float32", "Firth float16", "Firth int8, rescored")
BOUND = 1.5e9  # bytes: a million texts of 100 dimensions are indexed in less


# ---- one library in its own process, like peers/faiss/worker.py ----


def worker() -> None:
    job = json.load(sys.stdin)
    if job["what"] == "open":
        begin = time.perf_counter()
        rows = len(firth.Index.open(job["index"]))
        print(json.dumps({"seconds": time.perf_counter() - begin, "rows": rows}))
        return
    vectors, queries = np.load(job["vectors"]), np.load(job["queries"])
    before, begin = held("VmRSS"), time.perf_counter()
    if job["library"] == "NumPy":
        search: Callable[[Any], Any] = lambda some: by_numpy(vectors, some)  # noqa: E731
    else:
        index = firth.Index.of(firth.Vectors(list(map(str, range(len(vectors)))), vectors), dtype=job["numbers"])
        before, begin = held("VmRSS"), time.perf_counter()
        if job["what"] == "approximate":
            index.optimize(approximate=True, threads=job["threads"])
        search = lambda some: index.find(some, K).rows  # noqa: E731
    build, grown = time.perf_counter() - begin, held("VmRSS") - before
    seconds: dict[str, float] = {}
    for batch in job["batches"]:
        for repeat in range(job["repeats"]):
            first = repeat * batch % max(1, len(queries) - batch)
            begin = time.perf_counter()
            search(queries[first : first + batch])
            passed = time.perf_counter() - begin
            seconds[str(batch)] = min(passed, seconds.get(str(batch), passed))
    np.save(job["output"], search(queries))
    print(json.dumps({"seconds": seconds, "build": build, "memory": grown}))


def held(name: str) -> int:
    """Return the bytes of this process: VmRSS (current) or VmHWM (peak)."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) * 1024


def by_numpy(vectors: Any, queries: Any) -> Any:
    scores = queries @ vectors.T
    rows = np.argpartition(scores, -K, axis=1)[:, -K:]
    order = np.argsort(-np.take_along_axis(scores, rows, axis=1), axis=1)
    return np.take_along_axis(rows, order, axis=1)


def run(threads: int, **job: Any) -> dict[str, Any]:
    """Run a process with the same threads for all: Firth counts its cores, OpenBLAS and OpenMP read variables."""
    if str(job.get("library", "")).startswith("faiss"):
        return ask("faiss", {**job, "threads": threads, "k": K})
    command = ["taskset", "-c", f"0-{threads - 1}", sys.executable, str(Path(__file__).resolve()), "--worker"]
    limits = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    environment = {**os.environ, **limits}
    text = json.dumps({**job, "threads": threads})
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


# ---- parts ----


def make_vectors(work: Path, rows: int, dim: int) -> dict[str, str]:
    paths = {"vectors": str(work / f"vectors-{rows}-{dim}.npy"), "queries": str(work / f"queries-{rows}-{dim}.npy")}
    rng = np.random.default_rng(1)
    centres, turn = rng.normal(size=(1000, 64)), rng.normal(size=(64, dim)) / 8
    for name, count in (("vectors", rows), ("queries", 1000)):
        rows_out = np.lib.format.open_memmap(paths[name], mode="w+", dtype=np.float32, shape=(count, dim))
        for first in range(0, count, 50_000):
            some = min(50_000, count - first)
            latent = centres[rng.integers(1000, size=some)] + rng.normal(size=(some, 64))
            block = latent @ turn + 0.1 * rng.normal(size=(some, dim))
            rows_out[first : first + some] = block / np.linalg.norm(block, axis=1)[:, None]
    return paths


def true_rows(paths: dict[str, str]) -> Any:
    vectors, queries = np.load(paths["vectors"], mmap_mode="r"), np.load(paths["queries"])
    best_rows, best_scores = np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0))
    for first in range(0, len(vectors), 50_000):
        scores = queries.astype(np.float64) @ vectors[first : first + 50_000].astype(np.float64).T
        rows = np.argsort(-scores, axis=1)[:, :K]
        best_rows = np.hstack([best_rows, rows + first])
        best_scores = np.hstack([best_scores, np.take_along_axis(scores, rows, axis=1)])
        order = np.argsort(-best_scores, axis=1)[:, :K]
        best_rows, best_scores = (np.take_along_axis(each, order, axis=1) for each in (best_rows, best_scores))
    return best_rows


def recall(neighbor_rows: Any, truth: Any) -> float:
    return float(
        np.mean([len(set(a) & set(b)) / K for a, b in zip(neighbor_rows.tolist(), truth.tolist(), strict=True)])
    )


def compared(paths: dict[str, str], work: Path, what: str, libraries: Any, threads: int, rounds: int) -> Any:
    """Run each library in each round; the lowest seconds, build time and memory count."""
    truth = true_rows(paths)
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for library, numbers in libraries.items():
            output = str(work / "found.npy")
            job = {"what": what, "library": library, "numbers": numbers, "batches": BATCHES, "repeats": 10, **paths}
            job |= {"connections": CONNECTIONS, "adding": ADDING, "searching": SEARCHING}
            done = run(threads, output=output, **job)
            old = rows.get(library, done)
            seconds = {batch: min(done["seconds"][batch], old["seconds"][batch]) for batch in done["seconds"]}
            least = {name: min(done[name], old[name]) for name in ("build", "memory")}
            rows[library] = {"seconds": seconds, **least, "recall": recall(np.load(output), truth)}
    return rows


def million_texts(work: Path, count: int) -> dict[str, Any]:
    """Time `firth index` over synthetic sentences, and the opening of the result."""
    world = World(seed=1)
    model, index, texts = work / "world-model", work / "world-index", work / "world.txt"
    for old in (model, index):
        shutil.rmtree(old, ignore_errors=True)
    with texts.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in world.sentences(count))
    firth.SkipGram(dim=100).fit(list(world.sentences(20_000))).save(model)
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "firth", "index", "build", str(model), str(texts), "-o", str(index)]
    )
    most, status = 0, Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        text = status.read_text() if status.exists() else ""
        if "VmHWM:" in text:
            most = max(most, int(text.partition("VmHWM:")[2].split()[0]) * 1024)
        time.sleep(0.05)
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit("firth index failed")
    opened = [run(1, what="open", index=str(index))["seconds"] for _ in range(5)]
    size = sum(path.stat().st_size for path in index.iterdir())
    measured = {"texts": count, "dim": 100, "seconds": seconds, "memory": most, "bytes": size, "open": min(opened)}
    return measured | {"within": most < BOUND}


# ---- page ----


def page(stats: dict[str, Any]) -> Iterator[str]:
    exact, near, texts = stats["exact"], stats["approximate"], stats["texts"]
    yield f"`python benchmarks/search.py` on {machine()}, {stats['threads']} threads, {time.strftime('%Y-%m-%d')}."
    yield ""
    yield f"Exact, {stats['rows']:,} × {stats['dim']}, the nearest {K} by cosine; milliseconds per call:"
    yield ""
    yield "| | 1 query | NumPy's time ÷ this | 100 queries | NumPy's time ÷ this | recall@10 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in exact.items():
        cells = []
        for batch in map(str, BATCHES):
            ratio = exact["NumPy"]["seconds"][batch] / row["seconds"][batch]
            cells += [f"{row['seconds'][batch] * 1000:.2f}", f"{ratio:.2f}"]
        yield f"| {name} | {' | '.join(cells)} | {row['recall']:.4f} |"
    yield ""
    yield f"Approximate, the same rows; {CONNECTIONS} connections, {ADDING} candidates when building, {SEARCHING}"
    yield "when searching:"
    yield ""
    yield "| | recall@10 | queries/s, one at a time | queries/s, 100 at a time | seconds to build | memory added |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, row in near.items():
        rates = [human(int(batch) / seconds) for batch, seconds in row["seconds"].items()]
        yield f"| {name} | {row['recall']:.4f} | {' | '.join(rates)} | {row['build']:.1f} | {human(row['memory'])}B |"
    yield ""
    yield f"{texts['texts']:,} sentences of the synthetic corpus, {texts['dim']} dimensions: embedded and indexed by"
    yield f"`firth index` in {texts['seconds']:.0f} s with at most {human(texts['memory'])}B of memory (the bound is"
    yield f"{human(BOUND)}B); the index takes {human(texts['bytes'])}B and opens in {texts['open'] * 1000:.0f} ms."


def main() -> None:
    if sys.argv[1:] == ["--worker"]:
        worker()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--million", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    work, threads = arguments.work, arguments.threads
    work.mkdir(parents=True, exist_ok=True)
    paths = make_vectors(work, arguments.rows, arguments.dim)
    libraries = dict(zip(EXACT, ("", "", "float32", "float16", "int8"), strict=True))
    exact = compared(paths, work, "exact", libraries, threads, arguments.rounds)
    graphs = {"faiss IndexHNSWFlat": "", "Firth (usearch)": "float32"}
    near = compared(paths, work, "approximate", graphs, threads, 1)
    stats = {
        "threads": threads,
        "rows": arguments.rows,
        "dim": arguments.dim,
        "exact": exact,
        "approximate": near,
    }
    stats["texts"] = million_texts(work, arguments.million)
    RESULTS.write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    text = "\n".join(line.rstrip() for line in page(stats)) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
