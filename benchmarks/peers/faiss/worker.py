"""Searches with faiss. A job as JSON on stdin, the result on stdout; rows found go to `output` (.npy).

`what` is "exact" (IndexFlatIP) or "approximate" (IndexHNSWFlat); `vectors` and `queries` are .npy files of rows of
length 1, so that products are cosines.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np


def memory() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


def best(job: dict[str, Any], search: Any) -> dict[str, float]:
    """Seconds of one call, for each size of batch: the best of the repeats."""
    queries = np.load(job["queries"])
    results = {}
    for batch in job["batches"]:
        seconds = []
        for repeat in range(job["repeats"]):
            first = repeat * batch % max(1, len(queries) - batch)
            begin = time.perf_counter()
            search(queries[first : first + batch])
            seconds.append(time.perf_counter() - begin)
        results[str(batch)] = min(seconds)
    return results


def main() -> None:
    job = json.load(sys.stdin)
    faiss.omp_set_num_threads(job["threads"])
    vectors, k = np.load(job["vectors"]), job["k"]
    before = memory()
    begin = time.perf_counter()
    if job["what"] == "exact":
        index: Any = faiss.IndexFlatIP(vectors.shape[1])
    else:
        index = faiss.IndexHNSWFlat(vectors.shape[1], job["connections"], faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = job["adding"], job["searching"]
    index.add(vectors)
    build, grown = time.perf_counter() - begin, memory() - before
    seconds = best(job, lambda some: index.search(some, k))
    np.save(job["output"], index.search(np.load(job["queries"]), k)[1])
    print(json.dumps({"peer": f"faiss {faiss.__version__}", "seconds": seconds, "build": build, "memory": grown}))


if __name__ == "__main__":
    main()
