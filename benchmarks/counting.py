"""Vocabulary and encoded ids of a text file: Firth against split + Counter and gensim, in one interleaved run.

    python benchmarks/counting.py text8 [--threads 2] [--rounds 3]

Each peer reads the same file; the best of the rounds counts. Firth also writes the encoded ids to disk, the others
only count. The counts are compared word by word.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from firth import Corpus, Run
from firth.data.tokens import read_tokens


def python_counter(path: Path, threads: int) -> Mapping[str, int]:
    with path.open(encoding="utf-8") as file:
        return Counter(file.read().split())


def gensim_scan(path: Path, threads: int) -> Mapping[str, int]:
    """The counting pass of Word2Vec(corpus_file=…) alone: no vectors are made."""
    from gensim.models import Word2Vec

    model = Word2Vec(min_count=1)
    model.scan_vocab(corpus_file=str(path))
    return dict(model.raw_vocab)


def firth_read(tokenizer: str) -> Callable[[Path, int], Mapping[str, int]]:
    def read(path: Path, threads: int) -> Mapping[str, int]:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["FIRTH_CACHE"] = cache
            begin = time.perf_counter()
            tokens = read_tokens(Corpus(path), tokenizer=tokenizer, min_count=1, run=Run(threads=threads))
            read.seconds = time.perf_counter() - begin  # type: ignore[attr-defined]  # without removing the cache
            return dict(zip(tokens.vocabulary.tokens, tokens.vocabulary.counts.tolist(), strict=True))

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    peers: dict[str, Callable[[Path, int], Mapping[str, int]]] = {
        "split + Counter": python_counter,
        "firth whitespace": firth_read("whitespace"),
        "firth words": firth_read("words"),
    }
    try:
        import gensim

        peers[f"gensim {gensim.__version__}"] = gensim_scan
    except ImportError:
        print("gensim is not installed and left out")
    best: dict[str, float] = {}
    counts: dict[str, Mapping[str, int]] = {}
    for _ in range(arguments.rounds):
        for name, count in peers.items():
            begin = time.perf_counter()
            counts[name] = count(arguments.file, arguments.threads)
            seconds = getattr(count, "seconds", time.perf_counter() - begin)
            best[name] = min(seconds, best.get(name, seconds))
    truth = counts["split + Counter"]
    tokens = sum(truth.values())
    print(f"{arguments.file.name}: {tokens:,} tokens, {len(truth):,} words, {arguments.threads} threads")
    for name, seconds in best.items():
        agrees = "equal" if counts[name] == truth else "differs"
        ratio = best["split + Counter"] / seconds
        print(f"{name:<18} {seconds:7.3f} s  {tokens / seconds / 1e6:7.1f}M words/s  {ratio:6.1f}×  counts {agrees}")


if __name__ == "__main__":
    main()
