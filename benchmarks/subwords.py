"""Subword tokenizers: training, Firth against the package `tokenizers`, on the same files with the same result.

    python benchmarks/subwords.py DATA [--size 30000] [--threads 2] [--rounds 3] [--work FOLDER] [--only wiki-raw]

DATA holds text/wiki17m.txt.xz (100 MB, lower case, one line: split into lines of 200 words) and text/wiki-raw.txt.xz
(30 MB). Each training runs in its own process; both train from the file on all threads. Runs are interleaved, and the
best round counts. The vocabularies are compared: byte-level ones as they are, WordPiece from the same initial ids,
because that package numbers ##a, ##b, … in the order of a hash table, which differs from run to run. Not called
tokenizers.py, which would hide that package. Results: benchmarks/results/subwords.json and docs/results/tokenizers.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
from benchmarks.words import machine, plain_text  # noqa: E402

import firth  # noqa: E402
from firth.core.report import human  # noqa: E402
from firth.data.pretokens import count_pretokens  # noqa: E402
from firth.kernels import bpe  # noqa: E402

PAGE = HERE.parent / "docs" / "results" / "tokenizers.md"
KINDS = {"bytes": "BPE of bytes", "wordpiece": "WordPiece"}
LINE = 200  # words
ALL = 10**6  # characters: that package breaks ties among rare ones at random


# ---- one training in its own process ----


def train_firth(kind: str, file: str, size: int, threads: int) -> Any:
    run = firth.Run(threads=threads)
    if kind == "bytes":
        return firth.BPE(size=size).train(firth.Corpus(file), run).engine
    return firth.WordPiece(size=size, max_characters=ALL).train(firth.Corpus(file), run).engine


def train_peer(kind: str, file: str, size: int, threads: int) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    shared: dict[str, Any] = {"vocab_size": size, "min_frequency": 2, "show_progress": False}
    if kind == "bytes":
        engine = Tokenizer(models.BPE())
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(**shared, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    else:
        engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        engine.normalizer = normalizers.BertNormalizer(lowercase=True)
        engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = list(firth.WordPiece().special_tokens)
        trainer = trainers.WordPieceTrainer(**shared, special_tokens=special)
    engine.train([file], trainer)
    return engine


def worker(who: str, kind: str, file: str, size: int, threads: int, output: str) -> None:
    began = time.perf_counter()
    engine = (train_firth if who == "firth" else train_peer)(kind, file, size, threads)
    seconds = time.perf_counter() - began
    engine.save(output)
    with Path("/proc/self/status").open() as file:  # getrusage would include the parent
        memory = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "memory": memory}))


def measure(who: str, kind: str, file: Path, size: int, threads: int, output: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", who, kind, str(file), str(size), str(threads), str(output)]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


# ---- the comparison ----


def same(kind: str, file: Path, size: int, mine: Path, theirs: Path) -> str:
    """Return in words whether vocabulary (and merges) are equal."""
    a, b = (json.loads(path.read_text(encoding="utf-8"))["model"] for path in (mine, theirs))
    if kind == "bytes":
        return "equal, merges too" if (a["vocab"], a["merges"]) == (b["vocab"], b["merges"]) else "DIFFERENT"
    words = count_pretokens(firth.Corpus(file), "bert", True, firth.Run()).words
    begin = bpe.initial_tokens(firth.WordPiece().special_tokens, bpe.alphabet(words), prefix="##")
    vocab = b["vocab"]
    first = sorted(vocab, key=vocab.__getitem__)[: len(begin.tokens)]
    new_ids = {token: id for id, token in enumerate(first)}
    to = np.array([new_ids[token] for token in begin.tokens] + [-1], dtype=np.int32)
    renumbered = begin._replace(tokens=first, plain_ids=to[begin.plain_ids], affixed_ids=to[begin.affixed_ids])
    learned = bpe.train(words, renumbered, size, 2)
    return "equal" if {token: id for id, token in enumerate(learned.tokens)} == vocab else "DIFFERENT"


def corpora(data: Path, work: Path) -> dict[str, Path]:
    lines, raw = work / "wiki17m-lines.txt", work / "wiki-raw.txt"
    if not lines.exists():
        words = plain_text(data, work).read_text(encoding="utf-8").split()
        parts = (" ".join(words[i : i + LINE]) for i in range(0, len(words), LINE))
        lines.write_text("\n".join(parts) + "\n", encoding="utf-8")
    if not raw.exists():
        with lzma.open(data / "text" / "wiki-raw.txt.xz") as source, raw.open("wb") as target:
            shutil.copyfileobj(source, target)
    return {"wiki17m": lines, "wiki-raw": raw}


def compare(file: Path, kind: str, size: int, threads: int, rounds: int, work: Path) -> dict[str, Any]:
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for who in ("firth", "tokenizers"):
            measured = measure(who, kind, file, size, threads, work / f"{who}-{kind}.json")
            if who not in best or measured["seconds"] < best[who]["seconds"]:
                best[who] = measured
    equal = same(kind, file, size, work / f"firth-{kind}.json", work / f"tokenizers-{kind}.json")
    return {"kind": KINDS[kind], "bytes": file.stat().st_size, "best": best, "vocabulary": equal}


def encoding_speed(file: Path, work: Path, threads: int) -> dict[str, float]:
    """Return MB of text per second, from a file to ids on disk."""
    os.environ["FIRTH_CACHE"] = str(work / "cache")
    speeds = {}
    for kind, name in KINDS.items():
        shutil.rmtree(work / "cache", ignore_errors=True)
        tokenizer = firth.SubwordTokenizer.load(work / f"firth-{kind}.json")
        began = time.perf_counter()
        tokens = firth.encode_corpus(tokenizer, file, firth.Run(threads=threads))
        speeds[name] = file.stat().st_size / (time.perf_counter() - began) / 1e6
        speeds[f"{name}, bytes a token"] = file.stat().st_size / len(tokens.ids)
    return speeds


def page(rows: dict[str, list[dict[str, Any]]], speeds: dict[str, float], size: int, threads: int) -> Iterator[str]:
    import tokenizers

    yield f"`python benchmarks/subwords.py DATA` on {machine()}, {threads} threads, {time.strftime('%Y-%m-%d')}."
    yield f"tokenizers {tokenizers.__version__}; {size:,} tokens; from a file to a tokenizer, each in its own process."
    yield ""
    yield "| text | | tokenizers | memory | Firth | memory | | vocabulary |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for name, measured in rows.items():
        for row in measured:
            mine, theirs = row["best"]["firth"], row["best"]["tokenizers"]
            cells = " | ".join(f"{each['seconds']:.2f} s | {human(each['memory'])}B" for each in (theirs, mine))
            ratio = theirs["seconds"] / mine["seconds"]
            text = f"{name}, {row['bytes'] / 1e6:.0f} MB"
            yield f"| {text} | {row['kind']} | {cells} | {ratio:.1f}× | {row['vocabulary']} |"
    yield ""
    yield "| a file to ids on disk | MB/s | bytes a token |"
    yield "| --- | ---: | ---: |"
    for kind in KINDS.values():
        yield f"| {kind} | {speeds[kind]:.1f} | {speeds[f'{kind}, bytes a token']:.2f} |"


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        who, kind, file, size, threads, output = sys.argv[2:]
        worker(who, kind, file, int(size), int(threads), output)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--size", type=int, default=30_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    parser.add_argument("--only", help="one of the texts")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    texts = corpora(arguments.data, arguments.work)
    rows: dict[str, list[dict[str, Any]]] = {}
    settings = (arguments.size, arguments.threads, arguments.rounds, arguments.work)
    for name, file in texts.items():
        if arguments.only in (None, name):
            rows[name] = [compare(file, kind, *settings) for kind in KINDS]
    speeds = encoding_speed(texts["wiki-raw"], arguments.work, arguments.threads)
    lines = [*page(rows, speeds, arguments.size, arguments.threads), ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    results = HERE / "results" / "subwords.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"training": rows, "encoding": speeds}, indent=1), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
