"""Trains gensim's Doc2Vec at its fastest, with `corpus_file`, and infers new documents. JSON on stdin and stdout."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import gensim
import numpy as np
from gensim.models.doc2vec import Doc2Vec

MODES: dict[str, dict[str, int]] = {
    "dbow": {"dm": 0},
    "dbow with words": {"dm": 0, "dbow_words": 1},
    "dm": {"dm": 1, "dm_mean": 1},
}


def train(job: dict[str, Any]) -> tuple[Doc2Vec, dict[str, Any]]:
    settings = {
        **MODES[job["mode"]],
        "vector_size": job["dim"],
        "window": 5,
        "negative": 5,
        "sample": 1e-3,
        "min_count": 5,
        "workers": job["threads"],
        "seed": job["seed"],
        "epochs": job["epochs"],
    }
    model = Doc2Vec(**settings)
    model.build_vocab(corpus_file=job["corpus"])
    counted = {"total_examples": model.corpus_count, "total_words": model.corpus_total_words}
    started = time.perf_counter()
    model.train(corpus_file=job["corpus"], epochs=job["epochs"], **counted)
    seconds = time.perf_counter() - started
    words = model.corpus_total_words
    return model, {
        "peer": f"gensim {gensim.__version__}",
        "words": words,
        "train_seconds": seconds,
        "words_per_second": words * job["epochs"] / seconds,
    }


def main() -> None:
    job = json.load(sys.stdin)
    model, result = train(job)
    if job.get("infer"):
        texts = [line.split() for line in Path(job["infer"]).read_text(encoding="utf-8").split("\n")[:-1]]
        started = time.perf_counter()
        inferred = np.array([model.infer_vector(text) for text in texts])
        result |= {"infer_seconds": time.perf_counter() - started, "inferred": len(texts)}
        np.save(f"{job['output']}.inferred.npy", inferred)
        # As Firth does it, to tell what that does for gensim; not timed.
        halved = np.array([model.infer_vector(text, alpha=model.alpha / 2) for text in texts[: job["halved"]]])
        np.save(f"{job['output']}.halved.npy", halved)
        np.save(f"{job['output']}.documents.npy", model.dv.vectors)
    print(json.dumps(result))


main()
