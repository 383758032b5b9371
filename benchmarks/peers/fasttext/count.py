"""fastText's pass over a text: its dictionary, with next to no vectors. A job as JSON on stdin, result on stdout."""

import importlib.metadata
import json
import sys
import time

import fasttext

job = json.load(sys.stdin)
started = time.perf_counter()
model = fasttext.train_unsupervised(
    job["corpus"], epoch=0, dim=1, minCount=1, minn=0, maxn=0, bucket=0, thread=job["threads"], verbose=0
)
seconds = time.perf_counter() - started
words, counts = model.get_words(include_freq=True)
name = f"fastText {importlib.metadata.version('fasttext-wheel')}"
counted = {
    word: int(count) for word, count in zip(words, counts, strict=True) if word != "</s>"
}  # that is a line's end
print(json.dumps({"peer": name, "seconds": seconds, "counts": counted}))
