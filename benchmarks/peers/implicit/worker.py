"""Trains implicit's ALS or BPR on the CPU. Settings as JSON on stdin, result on stdout.

`matrix` is a scipy .npz of users × items: for ALS the confidences themselves (implicit multiplies by alpha = 1 and adds
nothing), for BPR anything above 0. Factors go to `output`-users.npy and -items.npy.
"""

import json
import sys
from pathlib import Path
from typing import Any

import implicit
import numpy as np
import scipy.sparse
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from threadpoolctl import threadpool_limits


def memory() -> int:
    """Return the peak memory of this process. Not ru_maxrss, which a child inherits from its parent."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024


def model_of(job: dict[str, Any]) -> Any:
    common = {
        "factors": job["dim"],
        "regularization": job["regularization"],
        "iterations": job["epochs"],
        "num_threads": job["threads"],
        "random_state": job["seed"],
    }
    if job["method"] == "als":
        return AlternatingLeastSquares(**common, alpha=1.0)
    return BayesianPersonalizedRanking(**common, learning_rate=job["learning_rate"])


def main() -> None:
    job = json.load(sys.stdin)
    matrix = scipy.sparse.load_npz(job["matrix"]).tocsr().astype(np.float32)
    seconds: list[float] = []
    with threadpool_limits(1, "blas"):  # as implicit recommends, because it has its own threads
        model = model_of(job)
        model.fit(matrix, show_progress=False, callback=lambda *measured: seconds.append(measured[1]))
    for side in ("users", "items"):
        np.save(f"{job['output']}-{side}.npy", getattr(model, f"{side[:-1]}_factors"))
    print(json.dumps({"peer": f"implicit {implicit.__version__}", "seconds": seconds, "memory": memory()}))


main()
