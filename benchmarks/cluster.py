"""`firth embed` by several workers: what it costs.

    python benchmarks/cluster.py [--texts 20000] [--rounds 3] [--workers 2]

A BERT with random weights (6 × 384, as MiniLM) embeds texts in one process, by local worker processes, through Ray on
the same cores, and in as many independent processes as workers, each with one core and its share of the texts. The
start of the Ray cluster is not counted; that of the commands and of their workers and the loading of the model are.
Rounds are interleaved. Seconds are medians; CPU seconds are those of all processes, Ray's included, and say what a
cluster costs where other programs disturb the clock. Choose --texts so that one process takes a minute.
Results: benchmarks/results/cluster.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import firth
from firth.core.run import available_cores
from firth.data.world import World

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "cluster.json"
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=available_cores())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="firth-cluster-") as name:
        result = overhead(Path(name), given)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def overhead(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return the median seconds of each way, and their ratio to one process."""
    lines, workers = list(World(seed=4).sentences(given.texts)), given.workers
    (folder / "texts.txt").write_text("\n".join(lines) + "\n")
    method = firth.BERT(layers=6, dim=384, heads=12, context_length=64, epochs=1, batch_tokens=512)
    method.fit(firth.Corpus(lines[:50])).save(folder / "model")
    rows = max(1, -(-given.texts // (8 * workers)))
    flags = ["--shard-rows", rows, "--device", "cpu"]
    for part in range(workers):
        (folder / f"part-{part}.txt").write_text("\n".join(lines[part::workers]) + "\n")
    ways: dict[str, list[tuple[Any, ...]]] = {
        "one process": [("texts.txt",)],
        "processes": [("texts.txt", "--cluster", "processes", "--workers", workers)],
        "ray": [("texts.txt", "--cluster", "ray", "--workers", workers)],
        "independent": [(f"part-{part}.txt",) for part in range(workers)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    used: dict[str, list[float]] = {name: [] for name in ways}
    with mini_cluster(1, num_cpus=workers):
        for _ in range(given.rounds):
            for name, commands in ways.items():
                shutil.rmtree(folder / "out", ignore_errors=True)
                started, before = time.perf_counter(), used_by(os.getpid())
                environment = {**os.environ, "FIRTH_THREADS": "1", "RAYON_NUM_THREADS": "1"}
                running = []
                for text, *more in commands:
                    output = folder / "out" / Path(text).stem
                    words = ["embed", folder / "model", folder / text, *flags, *more, "-o", output]
                    running.append(run(words, environment if len(commands) > 1 else None))
                after = before
                while any(process.poll() is None for process in running):  # Ray does not wait for its workers
                    after = {**after, **used_by(os.getpid())}
                    time.sleep(0.1)
                assert [process.wait() for process in running] == [0] * len(running)
                seconds[name].append(time.perf_counter() - started)
                used[name].append(sum(after.values()) - sum(before.values()))
                print(name, round(seconds[name][-1], 2), round(used[name][-1], 2), file=sys.stderr, flush=True)
    found: dict[str, Any] = {"texts": given.texts, "workers": workers, "rounds": given.rounds}
    for unit, values in (("seconds", seconds), ("CPU seconds", used)):
        medians = {name: statistics.median(each) for name, each in values.items()}
        found[unit] = {name: round(each, 2) for name, each in medians.items()}
        found[f"{unit}, ratio"] = {name: round(each / medians["one process"], 3) for name, each in medians.items()}
    return found


# ---- shared by the benchmarks of clusters ----


def used_by(process: int) -> dict[int, float]:
    """Return the CPU seconds of a process and of each of its descendants that live."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        found = {process: sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")}
        for child in children(process):
            found |= used_by(child)
        return found
    return {}


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process and its descendants, living or waited for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children(process)))


def children(process: int) -> list[int]:
    listed: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            listed += [int(child) for child in path.read_text().split()]
    return listed


def run(words: list[Any], environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a command of Firth in a process of its own."""
    command = [sys.executable, "-m", "firth", *(str(word) for word in words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=environment)


@contextlib.contextmanager
def mini_cluster(nodes: int, **node: Any) -> Iterator[Any]:
    """Start a Ray cluster on this machine, to which commands connect."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    settings = {**NODE, **node}
    cluster = Cluster(initialize_head=True, head_node_args={**settings, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(**settings)
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        yield cluster
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
