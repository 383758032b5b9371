"""Counting and encoding on a cluster against one process on the same cores: the overhead, and that the bytes are equal.

    python benchmarks/cluster_counting.py TEXT [--size 4000] [--workers 2] [--rounds 3] [--where processes ray]
        [--tasks encode pretokens pairs tfidf]

TEXT is a text file. Its words, in documents of 200, are repeated until there are --size megabytes, enough for about a
minute per task; each document ends with a word that only its copy has. One process has as many threads as a cluster has
workers. Rounds are interleaved, each with an empty cache, and the best one counts; CPU seconds are those of all
processes. The start of Ray and of the worker processes is not counted. Without --where ray, Ray need not be installed.
Results: benchmarks/results/cluster-counting.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.cluster import cpu_seconds  # noqa: E402
from benchmarks.words import machine  # noqa: E402

from firth.core.report import Nothing  # noqa: E402
from firth.core.run import Run  # noqa: E402
from firth.data.cooccurrence import Cooccurrence  # noqa: E402
from firth.data.corpus import Corpus  # noqa: E402
from firth.data.pretokens import count_pretokens  # noqa: E402
from firth.data.shard_jobs import same_workers  # noqa: E402
from firth.data.tokens import Tokens, read_tokens  # noqa: E402
from firth.documents.document_matrix import weighted_rows  # noqa: E402
from firth.documents.tfidf import TfIdf  # noqa: E402
from firth.kernels.bpe import Words  # noqa: E402

DOCUMENT = 200  # words


def digest(arrays: Iterable[Any]) -> str:
    """A hash of arrays or bytes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(memoryview(array).cast("B"))
    return found.hexdigest()


def words_digest(words: Words) -> str:
    """A hash of counted pre-tokens."""
    return digest([words.text, words.counts])


def encode(corpus: Corpus, tokens: Tokens, run: Run) -> Callable[[], str]:
    found = read_tokens(corpus, run=run)
    return lambda: digest(
        [found.ids, found.starts, found.vocabulary.counts, "\0".join(found.vocabulary.tokens).encode()]
    )


def pretokens(corpus: Corpus, tokens: Tokens, run: Run) -> Callable[[], str]:
    found = count_pretokens(corpus, "gpt2", False, run)
    return lambda: words_digest(found.words)


def pairs(corpus: Corpus, tokens: Tokens, run: Run) -> Callable[[], str]:
    found = Cooccurrence.count(tokens, window=5, run=run)
    return lambda: digest([found.indptr, found.indices, found.weights])


def tfidf(corpus: Corpus, tokens: Tokens, run: Run) -> Callable[[], str]:
    import numpy as np

    lengths = np.diff(tokens.starts).astype(np.float64)
    rows, _ = weighted_rows(tokens, lengths, TfIdf().weights(), run)
    return lambda: digest(rows)


TASKS = {"encode": encode, "pretokens": pretokens, "pairs": pairs, "tfidf": tfidf}


def repeated(text: Path, size: int, folder: Path) -> Path:
    """Write the text again and again, up to a size."""
    target = folder / "text.txt"
    words = text.read_text(encoding="utf-8", errors="replace").split()
    documents = [words[begin : begin + DOCUMENT] for begin in range(0, len(words), DOCUMENT)]
    with target.open("w", encoding="utf-8") as file:
        copy = 0
        while file.tell() < size:
            copy += 1
            file.writelines(f"{' '.join(document)} {document[0]}{copy}\n" for document in documents)
    return target


def rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {where: round(each, 2) for where, each in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--size", type=float, default=4000, help="megabytes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--where", nargs="+", default=["processes", "ray"])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--output", type=Path, default=HERE / "results" / "cluster-counting.json")
    values = parser.parse_args()
    runs = {"one process": Run(threads=values.workers, report=Nothing())}
    for where in values.where:
        runs[where] = Run(threads=values.workers, cluster=where, workers=values.workers, report=Nothing())
    found: dict[str, Any] = {"machine": machine(), "megabytes": values.size, "workers": values.workers, "seconds": {}}
    found["CPU seconds"] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        corpus = Corpus(repeated(values.text, int(values.size * 1e6), folder))
        os.environ["FIRTH_CACHE"] = str(folder / "tokens")
        tokens = read_tokens(corpus, run=runs["one process"])
        for run in runs.values():
            stack.enter_context(same_workers(run))
        for task in values.tasks:
            seconds: dict[str, float] = {}
            used: dict[str, float] = {}
            hashes = set()
            for number in range(values.rounds):
                for where, run in runs.items():
                    if task in ("encode", "pretokens"):
                        os.environ["FIRTH_CACHE"] = str(folder / f"{task}-{where.replace(' ', '-')}-{number}")
                    began, before = time.perf_counter(), cpu_seconds(os.getpid())
                    result = TASKS[task](corpus, tokens, run)
                    seconds[where] = min(seconds.get(where, 1e9), time.perf_counter() - began)
                    used[where] = min(used.get(where, 1e9), cpu_seconds(os.getpid()) - before)
                    hashes.add(result())
                    if task in ("encode", "pretokens"):
                        shutil.rmtree(os.environ["FIRTH_CACHE"], ignore_errors=True)
                        os.environ["FIRTH_CACHE"] = str(folder / "tokens")
            if len(hashes) > 1:
                raise SystemExit(f"{task}: the results differ.")
            found["seconds"][task], found["CPU seconds"][task] = seconds, used
            overhead = {where: f"{each / seconds['one process'] - 1:+.1%}" for where, each in seconds.items()}
            print(task, rounded(seconds), overhead, "CPU", rounded(used), "equal bytes", flush=True)
    values.output.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
