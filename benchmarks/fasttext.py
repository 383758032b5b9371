"""FastText against fastText and gensim: speed, quality, and the cost of product quantization.

    python benchmarks/fasttext.py DATA [--words 4000000] [--rounds 3] [--seeds 1] [--work FOLDER] [--only speed|quality]

DATA is that of words.py. All train skip-gram with n-grams of 3 to 6 characters in 2,000,000 buckets, 100 dimensions,
window 5, 5 negative samples, subsample 1e-4, with each library's default learning rate. Speed is raw words per second
of training, without the vocabulary pass; the best round counts. Quality: the full text, 5 epochs, on the questions that
all models answer. Quantized: the same model as .ftz, with its size compared to .bin. DATA/weights/lid.176.ftz, if
present, is read and written again, and the bytes are compared.
Results: benchmarks/results/fasttext.json and docs/results/fasttext.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import train as train_peer  # noqa: E402
from benchmarks.words import THREADS, first_words, firth_speed, judged, machine, plain_text, quality_table  # noqa: E402

import firth  # noqa: E402
from firth.formats.fasttext import read_fasttext, write_fasttext  # noqa: E402

SUBWORDS = {"minn": 3, "maxn": 6, "subsample": 1e-4}
CODES: dict[str, dict[str, Any]] = {
    "codes": {},
    "codes, norms": {"norms": True},
    "codes, norms, 100,000 rows": {"norms": True, "cutoff": 100_000},
    "codes of 4 columns, norms": {"norms": True, "width": 4},
}


def method(**options: Any) -> firth.Method:
    return firth.FastText(tokenizer="whitespace", **options)


# ---- speed ----


def peer_speed(peer: str, kind: str) -> Callable[[Path], float]:
    def measure(corpus: Path) -> float:
        result = train_peer(peer, corpus=corpus, threads=THREADS, epochs=1, method=kind, **SUBWORDS)
        return float(result["words_per_second"])

    return measure


def speed_rows() -> dict[str, dict[str, Callable[[Path], float]]]:
    """What is timed: group -> name -> words/s of one epoch. The first of a group is the one compared."""
    cbow = method(epochs=1, objective="cbow")
    return {
        "skip-gram": {
            "Firth": firth_speed(method(epochs=1)),
            "Firth, shared negative samples": firth_speed(method(epochs=1, share_negatives=True)),
            "Firth, deterministic": firth_speed(method(epochs=1), deterministic=True),
            "Firth, 1 thread": firth_speed(method(epochs=1), threads=1),
            "fastText": peer_speed("fasttext", "skipgram"),
            "gensim": peer_speed("gensim", "skipgram"),
        },
        "CBOW": {
            "Firth": firth_speed(cbow),
            "fastText": peer_speed("fasttext", "cbow"),
            "gensim": peer_speed("gensim", "cbow"),
        },
    }


def measure_speed(corpus: Path, rounds: int) -> list[dict[str, Any]]:
    best: dict[tuple[str, str], float] = {}
    for turn in range(rounds):
        for group, names in speed_rows().items():
            for name, measure in names.items():
                result = measure(corpus)
                best[group, name] = max(result, best.get((group, name), 0.0))
                print(f"round {turn + 1}  {group:<10} {name:<26} {result / 1e6:6.3f}M words/s", file=sys.stderr)
    return [
        {"group": group, "name": name, "words_per_second": speed, "firth_is_faster_by": best[group, "Firth"] / speed}
        for (group, name), speed in best.items()
    ]


# ---- quality ----


def trained(name: str, seed: int, text: Path, work: Path) -> dict[str, firth.Vectors]:
    """Vectors by name, from the work folder where they are there; Firth's also quantised, with its errors and sizes."""
    vectors_path = work / f"subwords-{name.replace(' ', '-')}-{seed}"
    if not name.startswith("Firth"):
        keys = Path(f"{vectors_path}.keys.txt")
        if not keys.exists():
            train_peer(name.lower(), corpus=text, seed=seed, threads=THREADS, output=str(vectors_path), **SUBWORDS)
        return {name: firth.Vectors(keys.read_text(encoding="utf-8").split("\n")[:-1], np.load(f"{vectors_path}.npy"))}
    if not vectors_path.exists():
        run = firth.Run(seed=seed, threads=THREADS)
        method(share_negatives="shared" in name).fit(firth.Corpus(text), run).save(vectors_path)
    model: Any = firth.load(vectors_path)
    result = {name: model.vectors}
    if name == "Firth":
        result |= {f"Firth, {kind}": model.quantized(**settings).vectors for kind, settings in CODES.items()}
    return result


def measure_quality(data: Path, text: Path, work: Path, seeds: int) -> list[dict[str, Any]]:
    models: dict[str, list[firth.Vectors]] = {}
    for name in ("Firth", "Firth shared", "fastText", "gensim"):
        for seed in range(1, seeds + 1):
            for kind, vectors in trained(name, seed, text, work).items():
                models.setdefault(kind, []).append(vectors)
    return judged(data, models)


def measure_codes(work: Path) -> list[dict[str, Any]]:
    """Bytes and error of each way to quantize the model of the first seed."""
    model: Any = firth.load(work / "subwords-Firth-1")
    firth.export(model, work / "whole.bin")
    rows = [{"name": "float32 (.bin)", "bytes": (work / "whole.bin").stat().st_size, "error": 0.0, "seconds": 0.0}]
    for name, settings in CODES.items():
        began = time.perf_counter()
        error = firth.export(model, work / "codes.ftz", **settings)
        size = (work / "codes.ftz").stat().st_size
        rows.append({"name": name, "bytes": size, "error": error, "seconds": time.perf_counter() - began})
    return rows


def same_bytes(path: Path, work: Path) -> bool | None:
    """Whether a released model, read and written again, has the bytes it had; None if it is missing."""
    if not path.exists():
        return None
    write_fasttext(work / "again.ftz", read_fasttext(path))
    return (work / "again.ftz").read_bytes() == path.read_bytes()


# ---- results page ----


def page(results: dict[str, Any]) -> Iterator[str]:
    yield f"`python benchmarks/fasttext.py DATA` on {results['machine']}, {results['date']}; n-grams of 3 to 6."
    if "speed" in results:
        yield f"\nOne epoch over {results['words']:,} words, {THREADS} threads, 100d, window 5, 5 negative samples:\n"
        yield "| | words/s | Firth is faster by |"
        yield "| --- | ---: | ---: |"
        for row in results["speed"]:
            speed = row["words_per_second"] / 1e6
            yield f"| {row['group']}: {row['name']} | {speed:.3f}M | {row['firth_is_faster_by']:.1f}× |"
    if "quality" in results:
        first = results["quality"][0]
        seeds = len(first["analogies"])
        heading = f"analogies of {first['questions']:,} questions that every model answers"
        words = f"{results['quality_words']:,}" if results["quality_words"] else "All"
        yield f"\n{words} words of the text, 5 epochs; {heading};"
        yield f"{f'mean of {seeds} seeds' if seeds > 1 else 'one seed'}:\n"
        yield from quality_table(results["quality"])
        yield "\n| Firth's model | bytes | relative squared error | seconds |"
        yield "| --- | ---: | ---: | ---: |"
        for row in results["codes"]:
            yield f"| {row['name']} | {row['bytes']:,} | {row['error']:.2%} | {row['seconds']:.1f} |"
    if results.get("lid176") is not None:
        same = "identical bytes" if results["lid176"] else "OTHER BYTES"
        yield f"\nlid.176.ftz, fastText's published language model, read and written by Firth: {same}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--quality-words", type=int, help="train for quality on so many words, not on all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    parser.add_argument("--only", choices=("speed", "quality"))
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    text = plain_text(given.data, given.work)
    stored = HERE / "results" / "fasttext.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    results |= {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "words": given.words}
    if given.only != "quality":
        results["speed"] = measure_speed(first_words(text, given.words, given.work), given.rounds)
    if given.only != "speed":
        part = first_words(text, given.quality_words, given.work) if given.quality_words else text
        results["quality"] = measure_quality(given.data, part, given.work, given.seeds)
        results |= {"codes": measure_codes(given.work), "quality_words": given.quality_words}
    results["lid176"] = same_bytes(given.data / "weights" / "lid.176.ftz", given.work)
    stored.write_text(json.dumps(results, indent=1) + "\n")
    lines = "\n".join([*page(results), ""])
    (HERE.parent / "docs" / "results" / "fasttext.md").write_text(lines)
    print(lines)


if __name__ == "__main__":
    main()
