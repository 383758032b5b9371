"""`firth embed` by several workers: what kills do to it, and what it costs.

    python benchmarks/cluster.py kills [--kills 100] [--where processes ray] [--seed 1]
    python benchmarks/cluster.py overhead [--texts 20000] [--rounds 3]

kills: random workers, nodes of a Ray mini cluster and drivers are killed while 50,000 texts are embedded, again and
again until there were as many kills; a run that stopped is continued by the same command. Each output is compared with
that of one process: rows that are missing, rows that occur twice, and whether the bytes are the same.

overhead: a BERT with random weights embeds texts in one process, in one worker process, in as many workers as cores,
and through Ray on the same cores (its start is not counted). Loading of the model is included; rounds are interleaved
and the median counts. Choose --texts so that one process takes a minute. Results: benchmarks/results/cluster.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet

import firth
from firth.core.run import available_cores
from firth.data.world import World

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "cluster.json"
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kills", "overhead"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--where", nargs="+", default=["processes", "ray"], choices=("processes", "ray"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    folder = given.work or Path(tempfile.mkdtemp(prefix="firth-cluster-"))
    folder.mkdir(exist_ok=True)
    result = kills(folder, given) if given.what == "kills" else overhead(folder, given)
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**before, given.what: result}, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    if not given.work:
        shutil.rmtree(folder)


# ---- kills ----


def kills(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return the counts for each kind of cluster."""
    lines = list(World(seed=4).sentences(1_000))
    (folder / "texts.txt").write_text("\n".join(f"{line} {n}" for n in range(50) for line in lines) + "\n")
    firth.SkipGram(dim=32, epochs=1, min_count=1).fit(firth.Corpus(lines)).save(folder / "model", overwrite=True)
    data = [folder / "model", folder / "texts.txt", "--shard-rows", 250]
    assert run(data, folder / "alone").wait() == 0
    results = {}
    for where in given.where:
        with mini_cluster(3) if where == "ray" else contextlib.nullcontext() as cluster:
            results[where] = kill_again_and_again(folder, data, where, cluster, given)
    return results


def kill_again_and_again(
    folder: Path, data: list[Any], where: str, cluster: Any, given: argparse.Namespace
) -> dict[str, Any]:
    """Embed until there were enough kills, and compare each finished output."""
    decide, counts = random.Random(given.seed), Counter[str]()
    while counts["kills"] < given.kills:
        output = folder / f"out-{where}"
        shutil.rmtree(output, ignore_errors=True)
        counts["outputs"] += 1
        while True:
            counts["commands"] += 1
            process = run(data, output, "--cluster", where, "--workers", 2)
            until = time.monotonic() + decide.uniform(0, 2)
            while process.poll() is None:
                if time.monotonic() >= until and counts["kills"] < given.kills and begun(output):
                    counts.update(kill_something(process, cluster, decide))
                    until = time.monotonic() + decide.uniform(0.05, 2)
                time.sleep(0.01)
            if process.returncode == 0:
                break
            counts["stopped" if process.returncode > 0 else "killed drivers"] += 1
        counts.update(compared(folder / "alone", output))
    return dict(counts)


def begun(output: Path) -> bool:
    """Whether shards are being computed."""
    return (output / "embedding.json").exists() and any((output / ".shards").glob("0*.json"))


def kill_something(process: subprocess.Popen[str], cluster: Any, decide: random.Random) -> Counter[str]:
    """Kill a worker, a node or the driver, and return what it was."""
    dice = decide.random()
    if dice < 0.15:
        process.kill()
        process.wait()
        return Counter({"kills": 1, "of drivers": 1})
    if cluster is not None and dice < 0.3:
        node = decide.choice(sorted(cluster.worker_nodes, key=lambda node: node.unique_id))
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(**NODE)
        return Counter({"kills": 1, "of nodes": 1})
    workers = ray_workers() if cluster is not None else children(process.pid)
    if not workers:
        return Counter()
    with contextlib.suppress(ProcessLookupError):
        os.kill(decide.choice(workers), signal.SIGKILL)
        return Counter({"kills": 1, "of workers": 1})
    return Counter()


def children(process: int) -> list[int]:
    """Return the workers of a driver."""
    listed: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            listed += [int(child) for child in path.read_text().split() if "firth.work.worker" in command_line(child)]
    return listed


def ray_workers() -> list[int]:
    """Return the processes that compute shards on the mini cluster; Ray names them after their task."""
    processes = [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [int(process) for process in processes if command_line(process).startswith("ray::answer")]


def command_line(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def compared(expected: Path, output: Path) -> Counter[str]:
    """Compare an output with that of one process."""
    rows = [keys(folder) for folder in (expected, output)]
    names = {path.name for folder in (expected, output) for path in folder.iterdir()}
    different = [name for name in names if not same(expected / name, output / name)]
    return Counter(
        {
            "rows": sum(rows[1].values()),
            "lost": sum((rows[0] - rows[1]).values()),
            "duplicated": sum((rows[1] - rows[0]).values()),
            "files that differ": len(different),
        }
    )


def keys(folder: Path) -> Counter[str]:
    """Count the keys of all rows."""
    counts = Counter[str]()
    for path in folder.glob("part-*.parquet"):
        counts.update(pyarrow.parquet.read_table(path, columns=["key"])["key"].to_pylist())
    return counts


def same(a: Path, b: Path) -> bool:
    return a.is_file() and b.is_file() and a.read_bytes() == b.read_bytes()


# ---- overhead ----


def overhead(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return the median seconds of each way, and their ratio to one process."""
    lines = list(World(seed=4).sentences(given.texts))
    (folder / "texts.txt").write_text("\n".join(lines) + "\n")
    method = firth.BERT(layers=6, dim=384, heads=12, context_length=64, epochs=1, batch_tokens=512)
    method.fit(firth.Corpus(lines[:200])).save(folder / "model", overwrite=True)
    cores = available_cores()
    rows = max(1, -(-given.texts // (4 * cores)))
    data = [folder / "model", folder / "texts.txt", "--shard-rows", rows, "--device", "cpu"]
    ways: dict[str, tuple[Any, ...]] = {
        "one process": (),
        "one worker": ("--cluster", "processes", "--workers", 1),
        "processes": ("--cluster", "processes", "--workers", cores),
        "ray": ("--cluster", "ray", "--workers", cores),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with mini_cluster(1, num_cpus=cores):
        for _ in range(given.rounds):
            for name, flags in ways.items():
                shutil.rmtree(folder / "out", ignore_errors=True)
                started = time.perf_counter()
                assert run(data, folder / "out", *flags).wait() == 0
                seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    ratios = {name: round(each / medians["one process"], 3) for name, each in medians.items()}
    rounded = {name: round(each, 2) for name, each in medians.items()}
    return {"texts": given.texts, "cores": cores, "seconds": rounded, "ratio": ratios}


# ---- shared ----


def run(data: list[Any], output: Path, *flags: Any) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    model, texts, *more = data
    command = [sys.executable, "-m", "firth", "embed", model, texts, "-o", output, *more, *flags]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, text=True)


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
