"""Other libraries, each in its own environment, trained by a worker script with JSON input and output.

    from benchmarks.peers import train
    train("gensim", corpus="wiki.txt", method="skipgram", dim=100, epochs=5, output="vectors/gensim-1")

From the command line: `python -m benchmarks.peers gensim '{"corpus": "wiki.txt", "method": "skipgram"}'`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = ("gensim", "fasttext", "pecanpy", "implicit", "faiss", "llamacpp")

# One statement of the settings for every peer; learning_rate None = the peer's own default.
# Give gensim 0.05 for CBOW, as word2vec.c has it: with its own 0.025 a trial on 17M words (one seed, 100d, 5 epochs)
# answered 31.1 % of the analogies, with 0.05 34.3 %.
DEFAULTS: dict[str, Any] = {
    "method": "skipgram",
    "minn": 3,  # of n-grams of characters
    "maxn": 0,  # 0: none
    "buckets": 2_000_000,
    "dim": 100,
    "window": 5,
    "negatives": 5,
    "subsample": 1e-3,
    "min_count": 5,
    "epochs": 5,
    "learning_rate": None,
    "threads": 2,
    "seed": 1,
    "output": None,
}


def environment(peer: str) -> Path:
    """Return the Python of the peer's environment, created at first use and when its requirements change."""
    if peer not in PEERS:
        raise ValueError(f"peer must be one of {', '.join(PEERS)}; got {peer!r}.")
    folder = HERE / peer / ".venv"
    wanted = (HERE / peer / "requirements.txt").read_text()
    stamp = folder / "requirements.txt"  # written last: marks the environment as complete
    python = folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment of {peer} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-r", str(HERE / peer / "requirements.txt")]
        subprocess.run(install, check=True, stdout=sys.stderr, env={**os.environ, "CFLAGS": "-O3 -march=native"})
        stamp.write_text(wanted)
    return python


def train(peer: str, *, corpus: str | os.PathLike[str], **settings: Any) -> dict[str, Any]:
    """Train `peer` on a text file; return its worker's result: seconds, words per second, path of the vectors.

    `output` is the path of the vectors without suffix: `.npy` and `.keys.txt` (one a line) are written.
    """
    unknown = set(settings) - set(DEFAULTS)
    if unknown:
        raise ValueError(f"settings must be among {', '.join(DEFAULTS)}; got {', '.join(sorted(unknown))}.")
    if settings.get("method", "skipgram") not in ("skipgram", "cbow"):
        raise ValueError(f"method must be skipgram or cbow; got {settings['method']!r}.")
    return ask(peer, {**DEFAULTS, **settings, "corpus": os.fspath(corpus)})


def ask(peer: str, job: dict[str, Any], worker: str = "worker.py") -> dict[str, Any]:
    """Run a worker script of `peer` on a job and return its result."""
    # -I: isolated from this folder and PYTHONPATH
    command = [str(environment(peer)), "-I", str(HERE / peer / worker)]
    done = subprocess.run(command, input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
