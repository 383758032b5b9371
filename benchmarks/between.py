"""Two checkouts of Firth compared: did a change cost speed or start-up time?

    python benchmarks/between.py BEFORE AFTER [--rounds N]

Each checkout has its own environment (CHECKOUT/.venv/bin/python, by `make install`). Every task runs in its
own process, the two checkouts interleaved; the best round counts. Generates its data; prints a table, writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

#: What is timed, and a script that prints its seconds.
TASKS = {
    "import firth": "import time; t = time.perf_counter(); import firth; print(time.perf_counter() - t)",
    "firth --help": """
import subprocess, sys, time
t = time.perf_counter()
subprocess.run([sys.executable, "-m", "firth", "--help"], check=True, capture_output=True)
print(time.perf_counter() - t)
""",
    "firth train skipgram --help": """
import subprocess, sys, time
t = time.perf_counter()
subprocess.run([sys.executable, "-m", "firth", "train", "skipgram", "--help"], check=True, capture_output=True)
print(time.perf_counter() - t)
""",
    "skip-gram, 3M words": """
import firth, numpy as np
rng = np.random.default_rng(1)
words = np.array([f"w{i}" for i in range(20000)])
ids = np.minimum(rng.zipf(1.3, 3_000_000), 20000) - 1
texts = [" ".join(words[part]) for part in np.array_split(ids, 3000)]
print(firth.SkipGram(epochs=1).fit(texts).training["seconds"])
""",
    "tf-idf, 3M words": """
import firth, numpy as np, time
rng = np.random.default_rng(1)
words = np.array([f"w{i}" for i in range(20000)])
ids = np.minimum(rng.zipf(1.3, 3_000_000), 20000) - 1
texts = [" ".join(words[part]) for part in np.array_split(ids, 3000)]
t = time.perf_counter(); firth.TfIdf().fit(texts); print(time.perf_counter() - t)
""",
    "ALS, 500k pairs": """
import firth, numpy as np
rng = np.random.default_rng(1)
users, items = rng.integers(0, 5000, 500_000), np.minimum(rng.zipf(1.3, 500_000), 4000)
print(firth.ALS(epochs=3).fit(list(zip(users.astype(str).tolist(), items.astype(str).tolist()))).training["seconds"])
""",
    "exact search, 100k x 128": """
import numpy as np, time, firth
rng = np.random.default_rng(1)
rows = rng.standard_normal((100_000, 128), dtype=np.float32)
index = firth.Index.create(dim=128); index.add([str(i) for i in range(len(rows))], rows)
queries = rng.standard_normal((200, 128), dtype=np.float32)
index.search(queries, 10)
t = time.perf_counter(); index.search(queries, 10); print(time.perf_counter() - t)
""",
    "GPT, one layer, 20 steps": """
import dataclasses, firth, numpy as np
rng = np.random.default_rng(1)
texts = [" ".join(f"w{i}" for i in rng.integers(0, 500, 60)) for _ in range(800)]
sizes = {"context": 64, "context_length": 64, "vocabulary": 600, "vocabulary_size": 600}  # names of two versions
fields = {field.name for field in dataclasses.fields(firth.GPT)}
sizes = {name: size for name, size in sizes.items() if name in fields}
method = firth.GPT(layers=1, dim=128, heads=2, epochs=1, batch_tokens=4096, **sizes)
print(method.fit(texts).training["seconds"])
""",
}


def measured(checkout: Path, script: str) -> float:
    python = (
        checkout / ".venv" / "bin" / "python"
    ).absolute()  # not resolved, because a link is a different environment
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{checkout}: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'task':<30} {'before':>9} {'after':>9} {'after/before':>13}")
    rows = {}
    for name, script in TASKS.items():
        times: dict[Path, list[float]] = {arguments.before: [], arguments.after: []}
        for round in range(arguments.rounds):
            for checkout in list(times)[:: 1 if round % 2 else -1]:  # alternate the order
                times[checkout].append(measured(checkout, script))
        before, after = (min(seconds_of) for seconds_of in times.values())
        rows[name] = {"before": before, "after": after}
        print(f"{name:<30} {before:>8.3f}s {after:>8.3f}s {after / before:>12.3f}×", flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
