"""Node2Vec and DeepWalk against PecanPy: end to end from an edge list to vectors, and Macro-F1 of a linear probe.

    python benchmarks/graphs.py DATA [--minutes 8] [--rounds 3] [--splits 5] [--threads 2] [--work FOLDER]
                                     [--only blogcatalog|cora]

DATA holds graphs/blogcatalog/bc_adjlist.txt.xz, bc_labels.txt and graphs/cora/cora_edgelist.txt, cora_labels.txt. 10
walks of 80 nodes from each node, 128 dimensions, window 10, one pass; p = q = 1 and p = q = 0.25. Firth and PecanPy are
interleaved; each reads the same plain edge list, and the time ends with the vectors in memory, without the time in
which numba compiles PecanPy's loops (once per process). A round starts only if it will end within the minutes, and
results are saved at once, so an interrupted run keeps its measurements. The best time of the rounds counts; F1 is the
mean over all rounds (one seed each) and splits, with half of the nodes labeled. Firth's defaults were selected on half
of BlogCatalog's labeled nodes (`chosen_by`, see LOG.md); Macro-F1 is also reported on the other half alone, where the
probe is trained on a quarter of the nodes. Results: benchmarks/results/graphs.json and docs/results/graphs.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import environment  # noqa: E402
from benchmarks.words import machine  # noqa: E402

import firth  # noqa: E402
from firth import evaluate  # noqa: E402

GRAPHS = {
    "blogcatalog": ("bc_adjlist.txt.xz", "adjacency", "bc_labels.txt"),
    "cora": ("cora_edgelist.txt", "edges", "cora_labels.txt"),
}
SETTINGS = {"dim": 128, "walks_per_node": 10, "walk_length": 80, "window": 10}
Result = tuple[float, firth.Vectors]


def edge_list(data: Path, name: str, work: Path) -> Path:
    """Return the graph as a plain list of edges, each once, which all programs read."""
    path = work / f"{name}.edg"
    if not path.exists():
        file, layout, _ = GRAPHS[name]
        graph = firth.Graph(data / "graphs" / name / file, layout=layout)
        ends = zip(graph.sources().tolist(), graph.neighbors.tolist(), strict=True)
        lines = [f"{graph.keys[a]}\t{graph.keys[b]}\n" for a, b in ends if a <= b]
        path.write_text("".join(lines), encoding="utf-8")
    return path


def chosen_by(labels: dict[str, list[str]]) -> set[str]:
    """Return the nodes on whose labels defaults may be selected."""
    nodes = sorted(labels)
    return {nodes[index] for index in np.random.default_rng(20).permutation(len(nodes))[: len(nodes) // 2].tolist()}


def ours(method: firth.Method, threads: int) -> Callable[[Path, int, Path], Result]:
    def run(edges: Path, seed: int, work: Path) -> Result:
        began = time.perf_counter()
        model = method.fit(firth.Graph(edges), firth.Run(seed=seed, threads=threads))
        return time.perf_counter() - began, model.vectors

    return run


def pecanpy(mode: str, p: float, q: float, threads: int) -> Callable[[Path, int, Path], Result]:
    def run(edges: Path, seed: int, work: Path) -> Result:
        output = work / "pecanpy"
        job = {**SETTINGS, "mode": mode, "p": p, "q": q, "threads": threads, "seed": seed}
        job |= {"edges": str(edges.resolve()), "output": str(output.resolve())}
        command = [str(environment("pecanpy")), "-I", str(HERE / "peers" / "pecanpy" / "worker.py")]
        done = subprocess.run(command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True)
        keys = output.with_suffix(".keys.txt").read_text(encoding="utf-8").split()
        return json.loads(done.stdout.splitlines()[-1])["seconds"], firth.Vectors(keys, np.load(f"{output}.npy"))

    return run


def contestants(threads: int) -> dict[str, dict[str, Callable[[Path, int, Path], Result]]]:
    """By walk; PecanPy in the modes for sparse graphs. (DenseOTF did not end within four minutes on BlogCatalog.)"""
    return {
        "p = q = 1": {
            "Firth Node2Vec": ours(firth.Node2Vec(**SETTINGS), threads),
            "Firth DeepWalk, hierarchical": ours(firth.DeepWalk(**SETTINGS, loss="hierarchical"), threads),
            "PecanPy SparseOTF": pecanpy("SparseOTF", 1, 1, threads),
            "PecanPy FirstOrderUnweighted": pecanpy("FirstOrderUnweighted", 1, 1, threads),
        },
        "p = q = 0.25": {
            "Firth Node2Vec": ours(firth.Node2Vec(**SETTINGS, p=0.25, q=0.25), threads),
            "PecanPy SparseOTF": pecanpy("SparseOTF", 0.25, 0.25, threads),
        },
    }


class Measured:
    """The results so far, one row per graph, walk and program."""

    def __init__(self, data: Path, work: Path, splits: int, threads: int) -> None:
        self.data, self.work, self.splits, self.threads = data, work, splits, threads
        self.rows: dict[tuple[str, str, str], dict[str, Any]] = {}

    def round(self, name: str, seed: int) -> None:
        """Run all programs on one graph, interleaved; save each result at once."""
        edges = edge_list(self.data, name, self.work)
        labels = evaluate.read_labels(self.data / "graphs" / name / GRAPHS[name][2])
        seen = chosen_by(labels)
        unseen = {node: result for node, result in labels.items() if node not in seen}
        for walk, programs in contestants(self.threads).items():
            for program, run in programs.items():
                seconds, vectors = run(edges, seed, self.work)
                result = evaluate.node_classification(vectors, labels, splits=self.splits)
                empty: dict[str, Any] = {"graph": name, "walk": walk, "program": program, "seconds": []}
                row = self.rows.setdefault((name, walk, program), empty | {"macro": [], "micro": [], "unseen": []})
                row["unseen"].append(evaluate.node_classification(vectors, unseen, splits=self.splits).macro_f1)
                row["seconds"].append(seconds)
                row["macro"].append(result.macro_f1)
                row["micro"].append(result.micro_f1)
                print(f"{name}, {walk}, {program}: {seconds:.1f} s, Macro-F1 {result.macro_f1:.4f}", file=sys.stderr)
                self.write()

    def write(self) -> None:
        results = {
            "machine": machine(),
            "date": time.strftime("%Y-%m-%d"),
            "threads": self.threads,
            "splits": self.splits,
            "rows": list(self.rows.values()),
        }
        (HERE / "results" / "graphs.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        (HERE.parent / "docs" / "results" / "graphs.md").write_text("\n".join([*page(results), ""]), encoding="utf-8")


def page(results: dict[str, Any]) -> Iterator[str]:
    setup = f"{results['machine']}, {results['threads']} threads, {results['date']}"
    yield f"`python benchmarks/graphs.py DATA` on {setup};"
    rounds = [len(row["seconds"]) for row in results["rows"]]
    times = f"{min(rounds)} to {max(rounds)} rounds" if min(rounds) < max(rounds) else f"rounds: {rounds[0]}"
    yield f"Interleaved; {times}, {results['splits']} splits each, half of the nodes labeled."
    yield "Unseen: Macro-F1 on the half of the labeled nodes that no default was selected on."
    yield ""
    yield "| graph | walks | program | seconds | Firth is faster by | Macro-F1 | Micro-F1 | unseen |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for row in results["rows"]:
        same = [other for other in results["rows"] if (other["graph"], other["walk"]) == (row["graph"], row["walk"])]
        first = next(min(other["seconds"]) for other in same if other["program"] == "Firth Node2Vec")
        best = min(row["seconds"])
        times = "" if row["program"].startswith("Firth") else f"{best / first:.1f}×"
        scores = " | ".join(f"{statistics.mean(row[name]):.4f}" for name in ("macro", "micro", "unseen"))
        yield f"| {row['graph']} | {row['walk']} | {row['program']} | {best:.2f} | {times} | {scores} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    parser.add_argument("--only", choices=tuple(GRAPHS))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    measured = Measured(arguments.data, arguments.work, arguments.splits, arguments.threads)
    names = [arguments.only] if arguments.only else list(GRAPHS)
    environment("pecanpy")  # prepared before anything is timed
    began = time.perf_counter()
    longest = dict.fromkeys(names, 0.0)
    for turn in range(arguments.rounds):
        for name in names:
            passed = time.perf_counter() - began
            if passed + longest[name] > arguments.minutes * 60:
                continue
            measured.round(name, turn + 1)
            longest[name] = max(longest[name], time.perf_counter() - began - passed)
    print((HERE.parent / "docs" / "results" / "graphs.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
