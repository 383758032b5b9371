"""The cost of the baselines when a recommender is evaluated: the same evaluation with and without them.

    python benchmarks/baselines.py [--users 20000] [--items 100000] [--each 50] [--judged 500]

Interactions are synthetic. Prints wall-clock and CPU seconds and the process's peak memory.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from pathlib import Path

import firth
from firth import evaluate
from firth.data.splits import split
from firth.data.world import World


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("users", 20_000), ("items", 100_000), ("each", 50), ("judged", 500)):
        parser.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    drawn = World(seed=1).ratings(arguments.users, arguments.items, arguments.each)
    train, test, _ = split(firth.Interactions(zip(*drawn[:3], strict=True)), "random", share=0.1)
    model = firth.ALS(dim=8, epochs=1).fit(train, firth.Run(threads=2))
    judged = dict(islice(test.histories().items(), arguments.judged))
    measured = {}
    for baselines in (False, True):
        wall, cpu = time.perf_counter(), time.process_time()
        result = evaluate.recommendations(model, judged, baselines=baselines)
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        # Not ru_maxrss, which a child process inherits from its parent.
        memory = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
        measured["with baselines" if baselines else "without"] = {**spent, "peak_memory": memory, **result.to_json()}
    print(json.dumps({**vars(arguments), "interactions": len(model.seen.items), **measured}, indent=1))


if __name__ == "__main__":
    main()
