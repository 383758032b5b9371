"""Random kills of workers, nodes and drivers: the results must be those of one process, to the byte.

    python benchmarks/cluster_kills.py [--kills 20] [--where processes ray] [--tasks NAME …] [--seed 1]

Each task runs with two workers, as local processes or on a Ray mini cluster (a head and two nodes of one CPU each),
again and again until it had --kills kills. 15% of the kills hit the driver, on Ray another 15% a node, which is
replaced by a new one, and the others a worker, all with SIGKILL and at random times. A command that stopped is given
again. Every finished result is compared with that of one process: rows that are missing, rows that occur twice, files
that differ. Rows are documents (pairs: words with their contexts; pretokens: different ones).

Counting and indexing use shards of a few kB and 500 texts instead of 64 MB and 32,768 texts, so that some hundred are
written and renamed per run. Results: benchmarks/results/cluster-kills.json, to which runs add, and the page
docs/results/cluster-kills.md.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

import firth
from firth.core.report import Nothing
from firth.data.world import World

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.cluster import NODE, children, mini_cluster  # noqa: E402

RESULTS, PAGE = HERE / "results" / "cluster-kills.json", HERE.parent / "docs" / "results" / "cluster-kills.md"
COLUMNS = ("kills", "of workers", "of nodes", "of drivers", "commands", "results", "rows", "lost", "duplicated",
           "files that differ")  # fmt: skip
DOCUMENTS = 50_000
ERRORS = Path(tempfile.gettempdir(), "firth-kills.log")  # what the commands report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each task on each cluster")
    parser.add_argument("--where", nargs="+", default=["processes", "ray"], choices=("processes", "ray"))
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="keep the data here")
    parser.add_argument("--driver", help=argparse.SUPPRESS)  # a task of counting, in a process of its own
    given = parser.parse_args()
    if given.driver:
        driver(*json.loads(given.driver))
        return
    folder = given.work or Path(tempfile.mkdtemp(prefix="firth-kills-"))
    prepare(folder)
    for where in given.where:
        with mini_cluster(3) if where == "ray" else contextlib.nullcontext() as cluster:
            for task in given.tasks:
                counts = kill_again_and_again(folder, task, where, cluster, given)
                record(where, task, counts)
                print(where, task, dict(counts), flush=True)
    if not given.work:
        shutil.rmtree(folder)


def record(where: str, task: str, counts: Counter[str]) -> None:
    """Add the counts to the results, and write the page."""
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    total = Counter(found.setdefault(where, {}).get(task, {}))
    total.update(counts)
    found[where][task] = dict(total)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    lines = ["`python benchmarks/cluster_kills.py`: results after random kills beside those of one process.", ""]
    lines += [f"| where | task | {' | '.join(COLUMNS)} |", f"| --- | --- |{' ---: |' * len(COLUMNS)}"]
    total = Counter[str]()
    for place, tasks in found.items():
        for name, each in tasks.items():
            lines.append(f"| {place} | {name} | {' | '.join(f'{each.get(column, 0):,}' for column in COLUMNS)} |")
            total.update(each)
    lines.append(f"| all | | {' | '.join(f'{total[column]:,}' for column in COLUMNS)} |")
    PAGE.write_text("\n".join(lines) + "\n")


# ---- tasks ----


def prepare(folder: Path) -> None:
    """Write the texts and a model, unless they are there."""
    if (folder / "model").exists():
        return
    folder.mkdir(exist_ok=True, parents=True)
    lines = list(World(seed=4).sentences(1_000))
    texts = [f"{lines[number % 1000]} w{number} w{number * 7919 % 30_011}" for number in range(DOCUMENTS)]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n")
    (folder / "texts.jsonl").write_text(
        "".join(json.dumps({"id": f"t{n}", "text": t}) + "\n" for n, t in enumerate(texts))
    )
    firth.SkipGram(dim=32, epochs=1, min_count=1).fit(firth.Corpus(lines)).save(folder / "model")


def embed(folder: Path, output: Path, *flags: Any) -> list[Any]:
    return ["-m", "firth", "embed", folder / "model", folder / "texts.txt", "--shard-rows", 250, "-o", output, *flags]


def index(folder: Path, output: Path, *flags: Any) -> list[Any]:
    return [__file__, "--driver", json.dumps(["index", str(folder), str(output), *map(str, flags)])]


def count(task: str, folder: Path, output: Path, *flags: Any) -> list[Any]:
    return [__file__, "--driver", json.dumps([task, str(folder), str(output), *map(str, flags)])]


TASKS: dict[str, Callable[..., list[Any]]] = {
    **{task: partial(count, task) for task in ("pretokens", "encode", "pairs", "tfidf")},
    "embed": embed,
    "index": index,
}


def driver(task: str, folder: str, output: str, *flags: str) -> None:
    """Run a task with small shards; the result of counting is one array per file, and `rows` with one line per row."""
    from firth.cli.index import cluster as index_cluster
    from firth.cli.main import cli
    from firth.data import corpus_shards, shard_pairs
    from firth.documents import shard_rows

    corpus_shards.SHARDS, corpus_shards.LEAST_BYTES = 200, 10_000
    shard_pairs.LEAST_TOKENS = shard_rows.LEAST_TOKENS = 4_000
    index_cluster.SEGMENT_ROWS = 500
    if task == "index":
        data = [Path(folder) / "model", Path(folder) / "texts.jsonl", "--key", "id", "-o", output]
        cli(["index", "build", *map(str, data), *flags])
    run = firth.Run(cluster=flags[1], workers=int(flags[3]), report=Nothing()) if flags else firth.Run(report=Nothing())
    os.environ["FIRTH_CACHE"] = str(Path(folder) / f"cache-{task}-{run.cluster}")
    arrays, rows = counted(task, firth.Corpus(Path(folder) / "texts.txt"), run)
    work = Path(output + "-work")
    work.mkdir(exist_ok=True)
    for name, array in arrays.items():
        (work / name).write_bytes(np.ascontiguousarray(array).tobytes())
    (work / "rows").write_text("".join(f"{row}\n" for row in rows))
    if task in ("pretokens", "encode"):  # the next run computes it again
        shutil.rmtree(os.environ["FIRTH_CACHE"], ignore_errors=True)
    work.rename(output)


def counted(task: str, corpus: firth.Corpus, run: firth.Run) -> tuple[dict[str, Any], Iterator[str]]:
    """Return the arrays of a task, and a hash of each row."""
    from firth.data.cooccurrence import Cooccurrence
    from firth.data.pretokens import count_pretokens
    from firth.data.tokens import read_tokens
    from firth.documents.document_matrix import weighted_rows
    from firth.documents.tfidf import TfIdf

    if task == "pretokens":
        words = count_pretokens(corpus, "gpt2", False, run).words
        return {"text": words.text, "counts": words.counts}, (str(each) for each in words.counts)
    tokens = read_tokens(corpus, min_count=1, phrases=1, run=run if task == "encode" else firth.Run(report=Nothing()))
    if task == "encode":
        names = np.frombuffer("\0".join(tokens.vocabulary.tokens).encode(), dtype=np.uint8)
        arrays = {"ids": tokens.ids, "starts": tokens.starts, "counts": tokens.vocabulary.counts, "words": names}
        return arrays, hashes(tokens.starts, tokens.ids)
    if task == "pairs":
        pairs = Cooccurrence.count(tokens, window=5, run=run)
        arrays = {"starts": pairs.indptr, "contexts": pairs.indices, "weights": pairs.weights}
        return arrays, hashes(pairs.indptr, pairs.indices, pairs.weights)
    lengths = np.diff(tokens.starts).astype(np.float64)
    rows, _ = weighted_rows(tokens, lengths, TfIdf().weights(), run)
    return rows._asdict(), hashes(rows.starts, rows.columns, rows.values)


def hashes(starts: Any, *columns: Any) -> Iterator[str]:
    """Yield a hash of each row of a sparse matrix."""
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield hashlib.sha256(b"".join(np.ascontiguousarray(each[first:last]).tobytes() for each in columns)).hexdigest()


# ---- kills ----


def kill_again_and_again(folder: Path, task: str, where: str, cluster: Any, given: argparse.Namespace) -> Counter[str]:
    """Run a task until there were enough kills, and compare each finished result."""
    decide, counts = random.Random(f"{given.seed} {task} {where}"), Counter[str]()
    expected = folder / f"{task}-alone"
    if not expected.exists():
        assert run(TASKS[task](folder, expected)).wait() == 0
    while counts["kills"] < given.kills:
        output = folder / f"{task}-{where}"
        shutil.rmtree(output, ignore_errors=True)
        shutil.rmtree(folder / f"{task}-{where}-work", ignore_errors=True)
        counts["results"] += 1
        while True:
            counts["commands"] += 1
            process = run(TASKS[task](folder, output, "--cluster", where, "--workers", 2))
            until = None
            while process.poll() is None:
                workers = workers_of(process.pid if cluster is None else os.getpid())
                if workers and until is None:
                    until = time.monotonic() + decide.uniform(0, 1)
                if workers and until and time.monotonic() >= until and counts["kills"] < given.kills:
                    counts.update(kill_something(process, workers, cluster, decide))
                    until = time.monotonic() + decide.uniform(0.02, 1)
                time.sleep(0.02)
            if process.returncode == 0:
                break
            counts["stopped commands" if process.returncode > 0 else "killed commands"] += 1
        counts.update(compared(task, expected, output))
    return counts


def kill_something(
    process: subprocess.Popen[str], workers: list[int], cluster: Any, decide: random.Random
) -> Counter[str]:
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
    with contextlib.suppress(ProcessLookupError):
        os.kill(decide.choice(workers), signal.SIGKILL)
        return Counter({"kills": 1, "of workers": 1})
    return Counter()


def workers_of(process: int) -> list[int]:
    """Return the descendants of a process that compute shards; Ray names its processes after their task."""
    found = []
    for child in children(process):
        found += workers_of(child)
        words = command_line(child)
        if words.startswith("ray::answer") or "firth.work.worker" in words:
            found.append(child)
    return found


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def compared(task: str, expected: Path, output: Path) -> Counter[str]:
    """Compare a result with that of one process."""
    rows = [rows_of(task, folder) for folder in (expected, output)]
    contents = [index_content(folder) if task == "index" else file_content(folder) for folder in (expected, output)]
    names = contents[0].keys() | contents[1].keys()
    return Counter(
        {
            "rows": sum(rows[1].values()),
            "lost": sum((rows[0] - rows[1]).values()),
            "duplicated": sum((rows[1] - rows[0]).values()),
            "files that differ": sum(contents[0].get(name) != contents[1].get(name) for name in names),
        }
    )


def rows_of(task: str, folder: Path) -> Counter[str]:
    """Count the rows of a result by their key or hash."""
    if task == "index":
        [segment] = firth.Index.open(folder).store.state.segments
        return Counter(segment.table.column("key").to_pylist())
    if task != "embed":
        return Counter((folder / "rows").read_text().splitlines())
    counts = Counter[str]()
    for path in folder.glob("part-*.parquet"):
        counts.update(pyarrow.parquet.read_table(path, columns=["key"])["key"].to_pylist())
    return counts


def file_content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, leftovers too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def index_content(folder: Path) -> dict[str, bytes]:
    """Return the arrays and columns of an index of one segment: names of files depend on how it was built."""
    [segment] = firth.Index.open(folder).store.state.segments
    assert segment.terms is not None
    arrays = {name: segment.array(name).tobytes() for name in segment.arrays}
    words = "\0".join(segment.terms.to_pylist()).encode()
    return {**arrays, "columns": json.dumps(segment.table.to_pydict()).encode(), "words": words}


# ---- processes ----


def run(command: list[Any]) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    words = [sys.executable, *(str(word) for word in command)]
    with ERRORS.open("a") as errors:
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors, text=True)


if __name__ == "__main__":
    main()
