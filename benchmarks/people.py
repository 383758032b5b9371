"""Recommenders: Firth against implicit: speed, memory and quality.

    python benchmarks/people.py DATA [--threads 2] [--rounds 3] [--seeds 3] [--users 50000] [--work FOLDER]

DATA holds people/lastfm/data1.txt (training) and test1.txt (test): user, artist, plays per line. The settings of ALS
were selected on a fifth of data1 and are the same for both libraries: confidence 1 + 4 log(1 + plays). The large data
are synthetic: 100 interactions per user with 20,000 items. Every training runs in its own process, Firth and implicit
interleaved; the seconds of an iteration are the median of a run (without the first), and the best round counts; memory
is the peak of the process, including the matrix.
Results: benchmarks/results/people.json, docs/results/people.md and docs/results/people-speed.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import environment  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.core.model import Histories  # noqa: E402
from firth.core.report import human  # noqa: E402
from firth.data.world import World  # noqa: E402

RESULTS = HERE / "results" / "people.json"
PAGES = HERE.parent / "docs" / "results"
ALPHA, RIDGE = 4.0, 30.0
METRICS = ("recall@20", "ndcg@100", "map@10")
BASELINES = ("popularity", "item-kNN (cosine)")
ORDER = (*BASELINES, "Firth Item2Vec", "Firth BPR", "implicit BPR", "Firth ALS", "implicit ALS", "Firth ALS, defaults")
DIM = 64


# ---- one training in its own process ----


def worker() -> None:
    """Train Firth with settings from stdin, with the interface of peers/implicit/worker.py."""
    job = json.load(sys.stdin)
    ratings = firth.Interactions(scipy.sparse.load_npz(job["matrix"]))
    run = firth.Run(threads=job["threads"], seed=job["seed"])
    if job["method"] == "als":
        settings = {"alpha": 1.0, "weighting": "linear", "regularization": job["regularization"]}
        model = firth.ALS(dim=job["dim"], epochs=job["epochs"], **settings).fit(ratings, run)
    else:
        settings = {"regularization": job["regularization"], "learning_rate": job["learning_rate"]}
        model = firth.BPR(dim=job["dim"], epochs=job["epochs"], **settings).fit(ratings, run)
    for side in ("users", "items"):
        order = np.argsort([int(key) for key in model.tables[side].keys])
        np.save(f"{job['output']}-{side}.npy", model._rows[side][order])
    each = model.training["seconds"] / job["epochs"]
    # Not ru_maxrss, which a child inherits from its parent.
    memory = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
    print(json.dumps({"peer": f"firth {firth.__version__}", "seconds": [each], "memory": memory}))


def trained(library: str, **job: Any) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    if library == "implicit":
        command = [str(environment("implicit")), "-I", str(HERE / "peers" / "implicit" / "worker.py")]
    done = subprocess.run(command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seconds = result.pop("seconds")
    return {**result, "iteration": statistics.median(seconds[1:] or seconds)}


# ---- the same matrix and evaluation for both ----


class Task:
    """Interactions as a matrix on disk, and factors of any library as a model."""

    def __init__(self, train: firth.Interactions, test: firth.Interactions, name: str, work: Path) -> None:
        self.train, self.test = train, test
        rows = train.summed()
        self.seen = Histories(rows.starts, rows.columns)
        shape = (len(train.users), len(train.items))
        self.paths = {method: work / f"{name}-{method}.npz" for method in ("als", "als-peer", "bpr")}
        use = scipy.sparse.csr_matrix((np.log1p(rows.values), rows.columns, rows.starts), shape)
        for method, data in (("als", ALPHA * use.data), ("als-peer", 1 + ALPHA * use.data), ("bpr", use.data)):
            values = data.astype(np.float32)
            scipy.sparse.save_npz(self.paths[method], scipy.sparse.csr_matrix((values, use.indices, use.indptr), shape))
        self.output = str(work / f"{name}-factors")

    def path(self, library: str, method: str) -> str:
        """Firth adds 1 to what becomes the confidence, implicit nothing."""
        return str(self.paths["als-peer" if (library, method) == ("implicit", "als") else method])

    def model(self, method: firth.Method) -> Any:
        rows: dict[str, Any] = {side: np.load(f"{self.output}-{side}.npy") for side in ("users", "items")}
        keys = {"users": self.train.users, "items": self.train.items}
        return type(method).model(method, rows | {"scale": np.ones(1)}, self.seen, keys, {})

    def loss(self) -> float:
        """Return the ALS objective per pair: Σ c (1 − x)² over the pairs, Σ x² over all others, and λ Σ |u|² + |i|²."""
        users, items = (np.load(f"{self.output}-{side}.npy").astype(np.float64) for side in ("users", "items"))
        matrix = scipy.sparse.load_npz(self.paths["als"])
        total = float(((users.T @ users) * (items.T @ items)).sum())
        total += RIDGE * float((users**2).sum() + (items**2).sum())
        for first in range(0, len(users), 1000):
            block = matrix[first : first + 1000].tocoo()
            x = np.einsum("ij,ij->i", users[first + block.row], items[block.col])
            total += float(((1 + block.data) * (1 - x) ** 2 - x**2).sum())
        return total / matrix.nnz

    def judge(self, model: Any, baselines: bool = False) -> dict[str, dict[str, float]]:
        outcome = evaluate.recommendations(model, self.test, metrics=METRICS, baselines=baselines)
        return {name: dict(row) for name, row in outcome.scores.items()}


def lastfm(data: Path, work: Path, threads: int, seeds: int) -> dict[str, Any]:
    """Evaluate each on Last.fm; metrics are means over seeds."""
    folder = data / "people" / "lastfm"
    task = Task(firth.Interactions(folder / "data1.txt"), firth.Interactions(folder / "test1.txt"), "lastfm", work)
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in range(1, seeds + 1):
        run = firth.Run(threads=threads, seed=seed)
        model = firth.Item2Vec(dim=DIM).fit(task.train, run)
        outcome = task.judge(model, baselines=seed == 1)
        for name in outcome:
            label = {"Item2Vec": "Firth Item2Vec", "item-kNN": "item-kNN (cosine)"}.get(name, name)
            extra = {"iteration": model.training["seconds"] / 20} if name == "Item2Vec" else {}
            rows.setdefault(label, []).append(outcome[name] | extra)
        default = firth.ALS(dim=DIM).fit(task.train, run)
        rows.setdefault("Firth ALS, defaults", []).append(
            task.judge(default)["ALS"] | {"iteration": default.training["seconds"] / 15}
        )
        jobs = {"als": {"epochs": 15, "regularization": RIDGE}, "bpr": {"epochs": 100, "regularization": 0.01}}
        for method, settings in jobs.items():
            kind: Any = {"als": firth.ALS, "bpr": firth.BPR}[method]
            for library in ("firth", "implicit"):
                common = {"threads": threads, "seed": seed, "dim": DIM, "learning_rate": 0.05, "output": task.output}
                done = trained(library, matrix=task.path(library, method), method=method, **common, **settings)
                scores = task.judge(task.model(kind(dim=DIM)))[kind.__name__]
                rows.setdefault(f"{library.replace('f', 'F', 1)} {kind.__name__}", []).append(scores | done)
    means = {}
    for name in ORDER:
        keys = [key for key in (*METRICS, "iteration") if key in rows[name][0]]
        means[name] = {key: statistics.mean(row[key] for row in rows[name]) for key in keys}
    size = {"users": len(task.train.users), "items": len(task.train.items), "pairs": len(task.train)}
    return {"size": size, "rows": means, "seeds": seeds}


def large(work: Path, users: int, threads: int, rounds: int) -> dict[str, Any]:
    """Measure seconds per iteration and memory of ALS, interleaved."""
    society = World(seed=1).ratings(users=users, items=20_000, each=100)
    ratings = firth.Interactions(
        scipy.sparse.coo_matrix((np.ones(len(society.users)), (society.users, society.items)), (users, 20_000))
    )
    task = Task(ratings, ratings, "large", work)
    results: list[dict[str, Any]] = []
    for dim in (64, 256):
        best: dict[str, dict[str, Any]] = {}
        for _ in range(rounds):
            for library in ("firth", "implicit"):
                job = {"threads": threads, "seed": 1, "dim": dim, "epochs": 5, "regularization": RIDGE}
                done = trained(library, matrix=task.path(library, "als"), method="als", output=task.output, **job)
                if library not in best or done["iteration"] < best[library]["iteration"]:
                    best[library] = done | {"loss": task.loss()}
        results += [{"library": library, "dim": dim, **row} for library, row in best.items()]
    size = {"users": len(task.train.users), "items": len(task.train.items), "pairs": len(task.seen.items)}
    return {"size": size, "rows": results, "threads": threads}


# ---- pages ----


def quality_page(outcome: dict[str, Any]) -> Iterator[str]:
    size = outcome["size"]
    yield f"`python benchmarks/people.py DATA`, {time.strftime('%Y-%m-%d')}. Last.fm: {size['pairs']:,} pairs of"
    yield f"{size['users']:,} users and {size['items']:,} artists; {DIM} dimensions; mean of"
    yield f"{outcome['seeds']} seeds."
    yield ""
    yield "| | recall@20 | NDCG@100 | MAP@10 | ms an iteration |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, row in outcome["rows"].items():
        speed = f"{row['iteration'] * 1000:.1f}" if "iteration" in row else ""
        yield f"| {name} | {' | '.join(f'{row[metric]:.4f}' for metric in METRICS)} | {speed} |"


def speed_page(outcome: dict[str, Any]) -> Iterator[str]:
    size, rows = outcome["size"], outcome["rows"]
    yield f"`python benchmarks/people.py DATA` on {machine()}, " + (
        f"{outcome['threads']} threads, {time.strftime('%Y-%m-%d')}."
    )
    yield f"The synthetic corpus: {size['pairs']:,} pairs of {size['users']:,} users and {size['items']:,} items. Loss:"
    yield "the objective of ALS per pair, after 5 iterations."
    yield ""
    yield "| ALS | dimensions | seconds per iteration | memory | loss |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for row in rows:
        cells = f"{row['iteration']:.2f} | {human(row['memory'])}B | {row['loss']:.4f}"
        yield f"| {row['peer']} | {row['dim']} | {cells} |"
    yield ""
    for dim in (64, 256):
        ours, theirs = (row for row in rows if row["dim"] == dim)
        ratio, memory = theirs["iteration"] / ours["iteration"], ours["memory"] / theirs["memory"]
        yield f"{dim} dimensions: {ratio:.1f}× as fast, {memory:.2f}× the memory. "


def main() -> None:
    if sys.argv[1:] == ["--worker"]:
        worker()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    quality = lastfm(arguments.data, arguments.work, arguments.threads, arguments.seeds)
    speed = large(arguments.work, arguments.users, arguments.threads, arguments.rounds)
    RESULTS.write_text(json.dumps({"lastfm": quality, "large": speed}, indent=2) + "\n", encoding="utf-8")
    for name, lines in (("people.md", quality_page(quality)), ("people-speed.md", speed_page(speed))):
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        (PAGES / name).write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
