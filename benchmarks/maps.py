"""Maps: PCA, t-SNE and UMAP by Firth against the packages' own defaults: seconds, preserved neighbors, trustworthiness.

    python benchmarks/maps.py DATA [--points 10000 100000] [--threads 2] [--rounds 2]

Places word vectors (skip-gram, 100 dimensions, one pass over DATA/text/wiki17m.txt.xz, min_count 2; the first 10,000
and 100,000 of them). "openTSNE", "umap-learn" and "scikit-learn" are called as their own pages say, on the same unit
vectors, with as many threads as Firth gets; umap-learn also with a seed, without which its threads race and no two maps
are the same. Each runs in its own process, interleaved; times are the best of the rounds, including the package's
import and compilation, and all scores are computed by Firth. Results: benchmarks/results/maps.json and
docs/results/maps.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth.maps import layout, preservation  # noqa: E402

RESULTS, PAGE = HERE / "results" / "maps.json", HERE.parent / "docs" / "results" / "maps.md"
WAYS = {
    "PCA": ("scikit-learn", "Firth"),
    "t-SNE": ("openTSNE", "Firth"),
    "UMAP": ("umap-learn", "umap-learn, seed", "Firth"),
}


# ---- one method in its own process ----


def worker() -> None:
    job = json.load(sys.stdin)
    matrix = np.load(job["vectors"])[: job["points"]]
    vectors = firth.Vectors([str(row) for row in range(len(matrix))], matrix)
    began = time.perf_counter()
    xy = np.asarray(placed(job["method"], job["way"], vectors, job["threads"]), dtype=np.float32)
    seconds = time.perf_counter() - began
    score = preservation(vectors.unit, xy, threads=job["threads"])
    print(json.dumps({"seconds": seconds, "kept": score.recall, "trustworthiness": score.trustworthiness}))


def placed(method: str, way: str, vectors: firth.Vectors, threads: int) -> Any:
    if way == "Firth":
        names = {"PCA": "pca", "t-SNE": "tsne", "UMAP": "umap"}
        return layout(vectors, names[method], run=firth.Run(threads=threads)).xy
    if way == "scikit-learn":
        from sklearn.decomposition import PCA

        return PCA(2).fit_transform(vectors.unit)
    if way == "openTSNE":
        import openTSNE

        return openTSNE.TSNE(n_jobs=threads, random_state=1).fit(vectors.unit)
    import umap

    if way == "umap-learn":
        return umap.UMAP(n_jobs=threads).fit_transform(vectors.unit)
    return umap.UMAP(random_state=1, n_jobs=1).fit_transform(vectors.unit)


# ---- all of them ----


def measure(data: Path, points: list[int], threads: int, rounds: int) -> dict[str, Any]:
    stats: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        np.save(path, word_vectors(data, max(points), threads))
        for turn in range(rounds):
            for count in points:
                for method, ways in WAYS.items():
                    for way in ways:
                        job = {"vectors": str(path), "points": count, "method": method, "way": way, "threads": threads}
                        result = ask(job, threads)
                        known = stats.setdefault(f"{count}/{method}/{way}", result)
                        known["seconds"] = min(known["seconds"], result["seconds"])
                        print(turn, count, method, way, result, flush=True)
    return {
        "machine": f"{machine()}, {threads} threads",
        "date": str(date.today()),
        "threads": threads,
        "rounds": rounds,
        "found": stats,
    }


def word_vectors(data: Path, rows: int, threads: int) -> np.ndarray[Any, Any]:
    corpus = firth.Corpus(data / "text" / "wiki17m.txt.xz")
    model = firth.SkipGram(dim=100, epochs=1, min_count=2).fit(corpus, run=firth.Run(threads=threads))
    if len(model.vectors) < rows:
        raise SystemExit(f"The text has {len(model.vectors):,} words; give fewer --points.")
    return model.vectors.matrix[:rows]


def ask(job: dict[str, Any], threads: int) -> dict[str, Any]:
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, __file__, "--worker"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**os.environ, **limits},
    )
    if done.returncode:
        raise SystemExit(f"{job['way']} failed: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def page(results: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/maps.py DATA` on {results['machine']}, {results['date']}; word vectors:"
    yield ""
    yield "| points | map | by | seconds | of the 10 nearest preserved | trustworthiness |"
    yield "| ---: | --- | --- | ---: | ---: | ---: |"
    for name, stats in results["found"].items():
        count, method, way = name.split("/")
        cells = f"{stats['seconds']:.1f} | {stats['kept']:.1%} | {stats['trustworthiness']:.3f}"
        yield f"| {int(count):,} | {method} | {way} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--points", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    results = measure(arguments.data, arguments.points, arguments.threads, arguments.rounds)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text("\n".join(page(results)) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    worker() if "--worker" in sys.argv else main()
