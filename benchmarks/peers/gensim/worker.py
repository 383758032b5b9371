"""Trains gensim at its fastest, with `corpus_file`: Word2Vec, or FastText for maxn > 0.

Settings as JSON on stdin, result on stdout.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import gensim
import numpy as np
from gensim.models import FastText, KeyedVectors, Word2Vec

# gensim gathers lines until they pass 10,000 tokens and drops what the batch keeps beyond 10,000 after subsampling.
# Lines of 10,000 come in twos: a quarter of the text is never trained on (and the speed looks better than it is).
# With lines of 1,000 all of it is; "trained_words" beside "expected_words" shows it.
LINE_WORDS = 1_000


def write_short_lines(corpus: str, path: Path) -> None:
    """Write the corpus in short lines, so that nothing is dropped and threads can share a one-line file."""
    with Path(corpus).open(encoding="utf-8") as source, path.open("w", encoding="utf-8") as target:
        tail = ""
        while block := source.read(1 << 24):
            *lines, tail = (tail + block).split("\n")
            for line in lines:
                write_line(target, line.split())
            # A long line is written in parts; its last word may continue in the next block.
            words = tail.split()
            if len(words) > LINE_WORDS:
                whole = words if tail[-1].isspace() else words[:-1]
                write_line(target, whole)
                tail = "" if tail[-1].isspace() else words[-1]
        write_line(target, tail.split())


def write_line(target: TextIO, words: list[str]) -> None:
    for start in range(0, len(words), LINE_WORDS):
        target.write(" ".join(words[start : start + LINE_WORDS]) + "\n")


def train(job: dict[str, Any], lines: str) -> tuple[Word2Vec, dict[str, Any]]:
    settings = {
        "sg": int(job["method"] == "skipgram"),
        "vector_size": job["dim"],
        "window": job["window"],
        "negative": job["negatives"],
        "sample": job["subsample"],
        "min_count": job["min_count"],
        "workers": job["threads"],
        "seed": job["seed"],
    }
    if job["learning_rate"] is not None:
        settings["alpha"] = job["learning_rate"]
    subwords = {"min_n": job["minn"], "max_n": job["maxn"], "bucket": job["buckets"]}
    model = FastText(**settings, **subwords) if job["maxn"] else Word2Vec(**settings)
    started = time.perf_counter()
    model.build_vocab(corpus_file=lines)
    vocabulary_seconds = time.perf_counter() - started
    started = time.perf_counter()
    counted = {"total_examples": model.corpus_count, "total_words": model.corpus_total_words}
    trained, _ = model.train(corpus_file=lines, epochs=job["epochs"], **counted)
    train_seconds = time.perf_counter() - started
    return model, {
        "peer": f"gensim {gensim.__version__}",
        "settings": {**settings, "alpha": model.alpha, "epochs": job["epochs"]},
        "vocabulary": len(model.wv),
        "words": model.corpus_total_words,
        "trained_words": trained / job["epochs"],
        "expected_words": expected_words(model.wv),
        "vocabulary_seconds": vocabulary_seconds,
        "train_seconds": train_seconds,
        "words_per_second": model.corpus_total_words * job["epochs"] / train_seconds,
    }


def expected_words(vectors: KeyedVectors) -> float:
    """Return the expected number of words per epoch after min_count and subsampling."""
    words = vectors.index_to_key
    expected = (vectors.get_vecattr(word, "count") * vectors.get_vecattr(word, "sample_int") / 2**32 for word in words)
    return float(sum(expected))


def main() -> None:
    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.txt"
        write_short_lines(job["corpus"], lines)
        model, result = train(job, str(lines))
    if job["output"]:
        vectors, keys = f"{job['output']}.npy", f"{job['output']}.keys.txt"
        Path(vectors).parent.mkdir(parents=True, exist_ok=True)
        np.save(vectors, model.wv.vectors)
        Path(keys).write_text("\n".join(model.wv.index_to_key) + "\n", encoding="utf-8")
        result |= {"vectors": vectors, "keys": keys}
    print(json.dumps(result))


main()
