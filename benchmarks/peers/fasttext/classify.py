"""Trains fastText's classifier and tests it. Settings as JSON on stdin, result on stdout."""

import importlib.metadata
import json
import sys
import time

import fasttext

job = json.load(sys.stdin)
# It reads the vocabulary inside training and does not say how long that took: no epochs, then all of them.
started = time.perf_counter()
fasttext.train_supervised(job["train"], **{**job["settings"], "epoch": 0}, verbose=0)
reading = time.perf_counter() - started
started = time.perf_counter()
model = fasttext.train_supervised(job["train"], **job["settings"], verbose=0)
seconds = time.perf_counter() - started
started = time.perf_counter()
texts, precision, _ = model.test(job["test"])
result = {
    "peer": f"fastText {importlib.metadata.version('fasttext-wheel')}",
    "seconds": seconds,
    "train_seconds": seconds - reading,
    "predict_seconds": time.perf_counter() - started,
    "texts": texts,
    "accuracy": precision,
}
print(json.dumps(result))
