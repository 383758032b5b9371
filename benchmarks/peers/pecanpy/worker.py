"""Trains PecanPy on an edge list. Settings as JSON on stdin, result on stdout."""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pecanpy import pecanpy

# PecanPy's walk of length n has n + 1 nodes: one less asked for gives walks as long as Firth's.
MORE_NODES = 1


def embed(job: dict[str, Any], edges: str, walks: int, length: int) -> tuple[Any, np.ndarray]:
    graph = getattr(pecanpy, job["mode"])(job["p"], job["q"], job["threads"], False, random_state=job["seed"])
    graph.read_edg(edges, False, False)
    vectors = graph.embed(
        dim=job["dim"], num_walks=walks, walk_length=length - MORE_NODES, window_size=job["window"], epochs=1
    )
    return graph, vectors


def main() -> None:
    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:  # numba compiles at first use: timed separately
        small = Path(folder) / "small.edg"
        small.write_text("0\t1\n1\t2\n2\t0\n2\t3\n")
        started = time.perf_counter()
        embed(job, str(small), 1, 5)
        compile_seconds = time.perf_counter() - started
    started = time.perf_counter()
    graph, vectors = embed(job, job["edges"], job["walks_per_node"], job["walk_length"])
    seconds = time.perf_counter() - started
    np.save(f"{job['output']}.npy", np.asarray(vectors, dtype=np.float32))
    Path(f"{job['output']}.keys.txt").write_text("\n".join(map(str, graph.nodes)) + "\n", encoding="utf-8")
    print(json.dumps({"seconds": seconds, "compile_seconds": compile_seconds}))


main()
