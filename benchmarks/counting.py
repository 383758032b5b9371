"""Vocabulary and encoded ids of a text file: Firth against split + Counter, gensim and fastText, interleaved.

    python benchmarks/counting.py text8 [--threads 2] [--rounds 5]

Each library reads the same file; the best round counts. Firth also writes the encoded ids to disk, the others
only count. The counts are compared word by word.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import ask  # noqa: E402

from firth import Corpus, Run  # noqa: E402
from firth.data.tokens import read_tokens  # noqa: E402

Counted = tuple[float, Mapping[str, int]]  # seconds, and the count of each word
TRUTH = "split + Counter"


def python_counter(path: Path, threads: int) -> Counted:
    begin = time.perf_counter()
    with path.open(encoding="utf-8") as file:
        counts = Counter(file.read().split())
    return time.perf_counter() - begin, counts


def gensim_scan(path: Path, threads: int) -> Counted:
    """Run only the counting pass of Word2Vec(corpus_file=…), without vectors."""
    from gensim.models import Word2Vec

    model = Word2Vec(min_count=1)
    begin = time.perf_counter()
    model.scan_vocab(corpus_file=str(path))
    return time.perf_counter() - begin, dict(model.raw_vocab)


def fasttext_scan(path: Path, threads: int) -> Counted:
    result = ask("fasttext", {"corpus": str(path), "threads": threads}, "count.py")
    return result["seconds"], result["counts"]


def firth_read(tokenizer: str) -> Callable[[Path, int], Counted]:
    def read(path: Path, threads: int) -> Counted:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["FIRTH_CACHE"] = cache
            begin = time.perf_counter()
            tokens = read_tokens(Corpus(path), tokenizer=tokenizer, min_count=1, run=Run(threads=threads))
            seconds = time.perf_counter() - begin
            return seconds, dict(zip(tokens.vocabulary.tokens, tokens.vocabulary.counts.tolist(), strict=True))

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    peers = {
        TRUTH: python_counter,
        "gensim": gensim_scan,
        "fastText": fasttext_scan,
        "firth whitespace": firth_read("whitespace"),
        "firth words": firth_read("words"),
    }
    best: dict[str, float] = {}
    counts: dict[str, Mapping[str, int]] = {}
    for _ in range(arguments.rounds):
        for name, count in peers.items():
            seconds, counts[name] = count(arguments.file, arguments.threads)
            best[name] = min(seconds, best.get(name, seconds))
    tokens = sum(counts[TRUTH].values())
    print(f"{arguments.file.name}: {tokens:,} tokens, {len(counts[TRUTH]):,} words, {arguments.threads} threads")
    for name, seconds in best.items():
        agrees = "equal" if counts[name] == counts[TRUTH] else "differs"
        ratio = best[TRUTH] / seconds
        print(f"{name:<18} {seconds:7.3f} s  {tokens / seconds / 1e6:7.1f}M words/s  {ratio:6.1f}×  counts {agrees}")


if __name__ == "__main__":
    main()
