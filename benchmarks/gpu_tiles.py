"""Which tiles, warps and number of programs serve the GPU kernels of word vectors best: words a second and quality.

    python benchmarks/gpu_tiles.py DATA [--part check|tiles|programs|all] [--words 17000000] [--epochs 5]

DATA as for words.py. Prints one JSON object a line; nothing is written. `check` trains a small text with one program
and compares with the CPU kernel; `tiles` times one epoch for each shape; `programs` trains whole runs and judges them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import firth  # noqa: E402
from firth import evaluate  # noqa: E402
from firth.data.tokens import Tokens, read_tokens  # noqa: E402
from firth.kernels import predict as kernel  # noqa: E402
from firth.kernels.predict_twin import GOLDEN, MASK, mix  # noqa: E402
from firth.learners.predict import drawn_table, noise_weights  # noqa: E402
from firth.nets import windows_cuda  # noqa: E402
from firth.nets.windows_cuda import Rules, Tiles, Windows  # noqa: E402

RATE = 0.025


def say(**figures: Any) -> None:
    print(json.dumps({name: round(x, 4) if isinstance(x, float) else x for name, x in figures.items()}), flush=True)


def on_card(array: Any) -> torch.Tensor:
    signed = array.view(np.int32) if array.dtype == np.uint32 else array
    return torch.from_numpy(np.ascontiguousarray(signed)).cuda()


class Text:
    """A text on the card, with what windows are drawn by."""

    def __init__(self, tokens: Tokens, dim: int = 128) -> None:
        self.tokens, self.dim = tokens, dim
        counts = tokens.vocabulary.counts
        self.keep, self.noise = kernel.keep_thresholds(counts, 1e-3), kernel.alias_table(noise_weights(counts, 0.75))
        self.raw, self.starts = on_card(tokens.ids), on_card(tokens.starts)

    def windows(self, rules: Rules, tiles: Tiles | None = None, dim: int = 0, seed: int = 1) -> Windows:
        table = drawn_table(len(self.tokens.vocabulary), dim or self.dim, seed)
        inputs = torch.from_numpy(table).cuda()
        return Windows(rules, inputs, torch.zeros_like(inputs), on_card(self.keep), on_card(self.noise), tiles)

    def epoch(self, windows: Windows, programs: int, epoch: int, epochs: int, seed: int = 1) -> dict[str, Any]:
        rates = [RATE * (1 - (epoch + share) / epochs) + RATE * 1e-4 for share in (0, 1)]
        torch.cuda.synchronize()
        began = time.perf_counter()
        size = len(self.raw)
        laid = windows.lay(self.raw, self.starts, 0, 0, size, mix((seed * GOLDEN + epoch + 1) & MASK))
        torch.cuda.synchronize()
        middle = time.perf_counter()
        losses, pairs = windows.train(laid, *rates, programs)
        torch.cuda.synchronize()
        end = time.perf_counter()
        made = int(pairs.sum())
        moved = windows.bytes_moved(made, laid.last - laid.first)
        return {
            "lay_ms": (middle - began) * 1e3,
            "train_ms": (end - middle) * 1e3,
            "mwords": self.tokens.raw_tokens / (end - began) / 1e6,
            "mwords_kernel": self.tokens.raw_tokens / (end - middle) / 1e6,
            "tb_s": moved / (end - middle) / 1e12,
            "loss": float(losses.double().sum()) / max(1, made),
            "pairs": made,
        }


def check() -> None:
    """One program against one thread of the CPU, on a text of 20,000 tokens."""
    rng = np.random.default_rng(0)
    words, size, dim = 3000, 20_000, 100
    counts = np.sort(rng.zipf(1.3, words).clip(1, 5000))[::-1].astype(np.int64)
    ids = rng.choice(words, size, p=counts / counts.sum()).astype(np.int32)
    starts = np.array([0, 100, 100, 7000, size])
    for name, rules, kind, columns in (
        ("skipgram", Rules(), "float32", 128),
        ("skipgram", Rules(), "float16", 64),
        ("skipgram wide", Rules(window=25, negatives=20), "float16", 128),
        ("cbow", Rules("cbow"), "float32", 64),
        ("cbow sum", Rules("cbow", mean=False, window=10), "float32", 128),
    ):
        inputs, outputs = drawn_table(words, dim, 1), kernel.new_table(words, dim)
        inputs *= 20
        outputs[:, :dim] = rng.normal(0, 0.1, (words, dim))
        noise, keep = kernel.alias_table(counts**0.75), kernel.keep_thresholds(counts, 1e-2)
        card = on_card(inputs), on_card(outputs)
        tiles = Tiles.fitting(rules, card[0].stride(0))._replace(kind=kind, columns=columns)
        windows = Windows(rules, *card, on_card(keep), on_card(noise), tiles)
        task = kernel.Task(
            ids=ids, starts=starts, inputs=inputs, outputs=outputs, keep=keep, noise=noise,
            paths=kernel.no_paths(), architecture=rules.architecture, window=rules.window,
            negatives=rules.negatives, mean=rules.mean, exact=rules.exact,
        )  # fmt: skip
        before = inputs.copy()
        tally = kernel.native_trainer(task).racing(0, size, 7, 0.01, 0.01, 1)
        laid = windows.lay(on_card(ids), on_card(starts), 0, 0, size, 7)
        losses, pairs = windows.train(laid, 0.01, 0.01, 1)
        moved = float(np.linalg.norm(inputs - before))
        error = float(np.linalg.norm(card[0].cpu().numpy() - inputs))
        say(check=name, kind=kind, columns=columns, loss=float(losses.sum()), cpu_loss=tally[0],
            pairs=int(pairs.sum()) == tally[1], relative_error=error / moved)  # fmt: skip


def tile_shapes() -> Iterator[tuple[str, Rules, int, Tiles]]:
    rules = Rules()
    for kind in ("float16", "float32", "bfloat16"):
        for warps in (1, 2, 4):
            if kind != "bfloat16" or warps == 1:
                yield "skipgram 128", rules, 128, Tiles(16, 16, 128, warps, kind)
    yield "skipgram 128", rules, 128, Tiles(16, 16, 64, 1)
    for columns, warps in ((128, 1), (64, 1), (512, 4), (512, 8), (128, 2)):
        yield "skipgram 300", rules, 300, Tiles(16, 16, columns, warps)
    yield "cbow 128", Rules("cbow"), 128, Tiles(16, 16, 128, 1)
    yield "cbow 128", Rules("cbow"), 128, Tiles(16, 8, 128, 1)
    yield "cbow 128", Rules("cbow"), 128, Tiles(16, 8, 128, 2)
    wide = Rules(window=10, negatives=10)
    for contexts, warps in ((32, 1), (32, 2), (32, 4), (16, 1), (16, 2)):
        yield "skipgram 128 window 10, 10 negatives", wide, 128, Tiles(contexts, 16, 128, warps)


def time_tiles(text: Text, deadline: float) -> None:
    for name, rules, dim, tiles in tile_shapes():
        if time.perf_counter() > deadline:
            return
        windows = text.windows(rules, tiles, dim)
        found = {}
        try:
            text.epoch(windows, 1024, 0, 5)
            for programs in (1024, 2048, 4096):
                best = max((text.epoch(windows, programs, 1, 5) for _ in range(2)), key=lambda row: row["mwords"])
                found[programs] = [round(best["mwords_kernel"]), round(best["mwords"]), round(best["tb_s"], 2)]
        except Exception as error:  # a shape that does not fit the card says so and the others go on
            say(tiles=name, shape=list(tiles), error=str(error)[:200])
            continue
        say(tiles=name, shape=list(tiles), programs=found, lay_ms=best["lay_ms"], loss=best["loss"])


def judge(data: Path, vectors: firth.Vectors) -> dict[str, float]:
    questions = evaluate.read_questions(data / "words" / "questions-words.txt")
    pairs = {name: evaluate.read_pairs(data / "words" / f"EN-{name}.txt") for name in ("WS-353-ALL", "SIMLEX-999")}
    return {
        "analogies": evaluate.analogies(vectors, questions).total.accuracy,
        **{name: evaluate.word_similarity(vectors, found).spearman for name, found in pairs.items()},
    }


def judge_programs(data: Path, text: Text, epochs: int, deadline: float) -> None:
    for kind, programs in (
        ("float16", 1024), ("float32", 1024), ("float16", 2048), ("float16", 64), ("float16", 4096),
        ("bfloat16", 1024), ("float16", 16384), ("float16", 512), ("float16", 100_000),
    ):  # fmt: skip
        if time.perf_counter() > deadline:
            return
        rules = Rules()
        windows = text.windows(rules, Tiles.fitting(rules, 128)._replace(kind=kind))
        began = time.perf_counter()
        rows = [text.epoch(windows, programs, epoch, epochs) for epoch in range(epochs)]
        seconds = time.perf_counter() - began
        vectors = firth.Vectors(text.tokens.vocabulary.tokens, windows.inputs[:, :128].cpu().numpy())
        best = max(row["mwords_kernel"] for row in rows)
        say(kind=kind, programs=programs, seconds=seconds, mwords_kernel=best, loss=rows[-1]["loss"],
            **judge(data, vectors), judging=time.perf_counter() - began - seconds)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", default="all", choices=("all", "check", "tiles", "programs"))
    parser.add_argument("--words", type=int, default=0, help="only so many words of the text; 0 = all")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=90, help="begin nothing new after so long")
    given = parser.parse_args()
    began = time.perf_counter()
    deadline = began + given.seconds
    say(card=torch.cuda.get_device_name(), torch=torch.__version__, triton=windows_cuda.triton.__version__)
    if given.part in ("all", "check"):
        check()
    if given.part == "check":
        return
    with lzma.open(given.data / "text" / "wiki17m.txt.xz", "rt", encoding="utf-8") as file:
        content = file.read(given.words * 6 or -1)
    say(unpacked=time.perf_counter() - began)
    began = time.perf_counter()
    tokens = read_tokens(firth.Corpus([content]), tokenizer="whitespace")
    say(words=tokens.raw_tokens, vocabulary=len(tokens.vocabulary), reading=time.perf_counter() - began)
    text = Text(tokens)
    half = deadline - given.seconds * 0.45 if given.part == "all" else deadline
    if given.part != "programs":
        time_tiles(text, half)
    if given.part != "tiles":
        judge_programs(given.data, text, given.epochs, deadline)
    say(all=time.perf_counter() - began)


if __name__ == "__main__":
    main()
