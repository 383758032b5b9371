"""Trains fastText, without subwords for `maxn=0`. Settings as JSON on stdin, result on stdout.

This version takes no seed: two runs differ by the race of its threads alone.
"""

import importlib.metadata
import json
import sys
import time
from pathlib import Path

import fasttext
import numpy as np


def count_words(path: str) -> int:
    words, inside = 0, False  # inside: the last block ended in the middle of a word
    with Path(path).open(encoding="utf-8") as file:
        while block := file.read(1 << 24):
            words += len(block.split()) - (inside and not block[0].isspace())
            inside = not block[-1].isspace()
    return words


def main() -> None:
    job = json.load(sys.stdin)
    settings = {
        "model": job["method"],
        "dim": job["dim"],
        "ws": job["window"],
        "neg": job["negatives"],
        "minCount": job["min_count"],
        "thread": job["threads"],
        # Keeps a word of frequency f with probability √(t/f) + t/f, as word2vec.c does, but f is its share of all
        # tokens, rare ones included, where word2vec.c and gensim count only those above min_count; default 1e-4.
        "t": job["subsample"],
        "minn": job["minn"] if job["maxn"] else 0,
        "maxn": job["maxn"],
        "bucket": job["buckets"],
        "verbose": 0,
    }
    if job["learning_rate"] is not None:
        settings["lr"] = job["learning_rate"]
    # It reads the vocabulary inside training and does not say how long that took: no epochs, then all of them.
    started = time.perf_counter()
    fasttext.train_unsupervised(job["corpus"], epoch=0, **settings)
    vocabulary_seconds = time.perf_counter() - started
    started = time.perf_counter()
    model = fasttext.train_unsupervised(job["corpus"], epoch=job["epochs"], **settings)
    train_seconds = time.perf_counter() - started - vocabulary_seconds
    words = count_words(job["corpus"])
    keys = model.get_words()
    result = {
        "peer": f"fastText {importlib.metadata.version('fasttext-wheel')}",
        "settings": {**settings, "lr": model.lr, "epoch": job["epochs"]},
        "vocabulary": len(keys),
        "words": words,
        "vocabulary_seconds": vocabulary_seconds,
        "train_seconds": train_seconds,
        "words_per_second": words * job["epochs"] / train_seconds,
    }
    if job["output"]:
        path = Path(job["output"])
        path.parent.mkdir(parents=True, exist_ok=True)
        vectors, key_file = f"{path}.npy", f"{path}.keys.txt"
        np.save(vectors, np.stack([model.get_word_vector(key) for key in keys]))
        Path(key_file).write_text("\n".join(keys) + "\n", encoding="utf-8")
        result |= {"vectors": vectors, "keys": key_file}
    print(json.dumps(result))


main()
