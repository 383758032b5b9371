"""Word vectors: Firth against gensim and fastText, speed and quality, on one machine in one interleaved run.

    python benchmarks/words.py DATA [--words 0] [--rounds 3] [--seeds 3] [--work FOLDER] [--only speed|quality]

DATA holds text/wiki17m.txt.xz (or any .txt under that name) and words/questions-words.txt, EN-WS-353-ALL.txt,
EN-SIMLEX-999.txt. Speed is raw words per second of training, without the vocabulary pass; the best round counts.
`--words` uses only the first words of the text, whose fewer rows fit the caches better. Quality: the full text, 5
epochs, the mean over seeds, on the questions that all models answer. Vectors are saved to the work folder and reused.
Results: benchmarks/results/words.json and docs/results/words.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers import train as train_peer  # noqa: E402

import firth  # noqa: E402
from firth import evaluate, kernels  # noqa: E402

THREADS = 2


def plain_text(data: Path, work: Path) -> Path:
    """Return the corpus as a plain file, because the other libraries can't read .xz."""
    plain, packed = work / "wiki17m.txt", data / "text" / "wiki17m.txt.xz"
    if not plain.exists():
        with lzma.open(packed) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
    return plain


def first_words(text: Path, words: int, work: Path) -> Path:
    """Return the text, or only its first words."""
    if not words:
        return text
    part = work / f"first-{words}.txt"
    if not part.exists():
        with text.open(encoding="utf-8") as file:
            part.write_text(" ".join(file.read(words * 8).split()[:words]) + "\n", encoding="utf-8")
    return part


# ---- speed ----


def firth_speed(method: firth.Method, isa: str = "", **run: Any) -> Callable[[Path], float]:
    def measure(corpus: Path) -> float:
        os.environ["FIRTH_ISA"] = isa
        settings = firth.Run(**{"threads": THREADS, **run})
        # Short runs are timed twice, because they are more sensitive to other load.
        speeds = [method.fit(firth.Corpus(corpus), settings).training["words_per_second"] for _ in range(2)]
        os.environ["FIRTH_ISA"] = ""
        return float(max(speeds))

    return measure


def peer_speed(peer: str, **settings: Any) -> Callable[[Path], float]:
    return lambda corpus: float(
        train_peer(peer, corpus=corpus, threads=THREADS, epochs=1, **settings)["words_per_second"]
    )


def speed_rows(words: int) -> dict[str, dict[str, Callable[[Path], float]]]:
    """What is timed: group -> name -> words/s of one epoch. The first of a group is the one compared."""
    same = {"epochs": 1, "tokenizer": "whitespace"}
    skipgram, wide = firth.SkipGram(**same), firth.SkipGram(dim=300, **same)
    rows: dict[str, dict[str, Callable[[Path], float]]] = {
        "skip-gram 100d": {"Firth": firth_speed(skipgram)},
        "skip-gram 300d": {"Firth": firth_speed(wide), "gensim": peer_speed("gensim", dim=300)},
        "CBOW 100d": {"Firth": firth_speed(firth.CBOW(**same)), "gensim": peer_speed("gensim", method="cbow")},
    }
    main = rows["skip-gram 100d"]
    for isa in kernels.instruction_sets()[:-1]:
        main[f"Firth, {isa}"] = firth_speed(skipgram, isa)
    main["Firth, 1 thread"] = firth_speed(skipgram, threads=1)
    quarter = firth_speed(skipgram)
    main["Firth, a quarter of the text"] = lambda corpus: quarter(first_words(corpus, words // 4, corpus.parent))
    main["Firth, deterministic"] = firth_speed(skipgram, deterministic=True)
    main["Firth, separate negative samples"] = firth_speed(firth.SkipGram(share_negatives=False, **same))
    main["Firth, Huffman tree"] = firth_speed(firth.SkipGram(loss="hierarchical", **same))
    main["gensim"] = peer_speed("gensim")
    main["fastText (maxn=0)"] = peer_speed("fasttext")
    return rows


def measure_speed(corpus: Path, words: int, rounds: int) -> list[dict[str, Any]]:
    rows = speed_rows(words)
    best: dict[tuple[str, str], float] = {}
    for turn in range(rounds):
        for group, names in rows.items():
            for name, measure in names.items():
                outcome = measure(corpus)
                best[group, name] = max(outcome, best.get((group, name), 0.0))
                print(f"round {turn + 1}  {group:<16} {name:<26} {outcome / 1e6:6.2f}M words/s", file=sys.stderr)
    return [
        {
            "group": group,
            "name": name,
            "words_per_second": speed,
            "firth_is_faster_by": best[group, "Firth"] / speed,
        }
        for (group, name), speed in best.items()
    ]


# ---- quality ----


def quality_runs() -> dict[str, tuple[str, Any]]:
    return {
        "Firth skip-gram": ("firth", firth.SkipGram(tokenizer="whitespace")),
        "gensim skip-gram": ("gensim", {"method": "skipgram"}),
        "Firth CBOW": ("firth", firth.CBOW(tokenizer="whitespace")),
        "gensim CBOW": ("gensim", {"method": "cbow"}),
        "Firth CBOW, exact gradient, rate 0.15": (
            "firth",
            firth.CBOW(tokenizer="whitespace", exact_gradient=True, learning_rate=0.15),
        ),
        "gensim CBOW, rate 0.05": ("gensim", {"method": "cbow", "learning_rate": 0.05}),
        "Firth skip-gram, deterministic": ("deterministic", firth.SkipGram(tokenizer="whitespace")),
        "Firth skip-gram, Huffman tree": ("firth", firth.SkipGram(tokenizer="whitespace", loss="hierarchical")),
    }


def trained(name: str, kind: str, settings: Any, seed: int, text: Path, work: Path) -> firth.Vectors:
    """Return vectors, from the work folder if present."""
    vectors_path = work / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
    keys = Path(f"{vectors_path}.keys.txt")
    if not keys.exists():
        began = time.perf_counter()
        if kind == "gensim":
            train_peer("gensim", corpus=text, seed=seed, threads=THREADS, output=str(vectors_path), **settings)
        else:
            run = firth.Run(seed=seed, threads=THREADS, deterministic=kind == "deterministic")
            vectors = settings.fit(firth.Corpus(text), run).vectors
            np.save(f"{vectors_path}.npy", vectors.matrix)
            keys.write_text("\n".join(vectors.keys) + "\n", encoding="utf-8")
        print(f"{name} seed {seed}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return firth.Vectors(keys.read_text(encoding="utf-8").split("\n")[:-1], np.load(f"{vectors_path}.npy"))


def measure_quality(data: Path, text: Path, work: Path, seeds: int) -> list[dict[str, Any]]:
    models = {
        name: [trained(name, kind, settings, seed, text, work) for seed in range(1, seeds + 1)]
        for name, (kind, settings) in quality_runs().items()
    }
    return judged(data, models)


def judged(data: Path, models: dict[str, list[firth.Vectors]]) -> list[dict[str, Any]]:
    """Evaluate each model on the questions that all of them answer; one entry per seed."""
    everything = [vectors for runs in models.values() for vectors in runs]
    questions = evaluate.common_questions(evaluate.read_questions(data / "words" / "questions-words.txt"), *everything)
    pairs = {name: evaluate.read_pairs(data / "words" / f"EN-{name}.txt") for name in ("WS-353-ALL", "SIMLEX-999")}
    rows = []
    for name, runs in models.items():
        outcome = [evaluate.analogies(vectors, questions) for vectors in runs]
        similar = {
            task: [evaluate.word_similarity(vectors, pairs[task]).spearman for vectors in runs] for task in pairs
        }
        rows.append(
            {
                "name": name,
                "questions": outcome[0].total.answered,
                "analogies": [result.total.accuracy for result in outcome],
                "semantic": [result.semantic.accuracy for result in outcome],
                "syntactic": [result.syntactic.accuracy for result in outcome],
                "ws353": similar["WS-353-ALL"],
                "simlex": similar["SIMLEX-999"],
            }
        )
    return rows


# ---- results page ----


def speed_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | words/s | Firth is faster by |"
    yield "| --- | ---: | ---: |"
    for row in rows:
        speed, ratio = row["words_per_second"] / 1e6, row["firth_is_faster_by"]
        yield f"| {row['group']}: {row['name']} | {speed:.2f}M | {ratio:.1f}× |"


def quality_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | analogies | semantic | syntactic | WS-353 | SimLex-999 |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in rows:
        shares = " | ".join(f"{statistics.mean(row[name]):.1%}" for name in ("analogies", "semantic", "syntactic"))
        rhos = " | ".join(f"{statistics.mean(row[name]):.3f}" for name in ("ws353", "simlex"))
        yield f"| {row['name']} | {shares} | {rhos} |"


def write_results(results: dict[str, Any]) -> None:
    folder, page = HERE / "results", HERE.parent / "docs" / "results" / "words.md"
    folder.mkdir(exist_ok=True)
    page.parent.mkdir(exist_ok=True)
    (folder / "words.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = [f"`python benchmarks/words.py DATA` on {results['machine']}, {results['date']}.", ""]
    if "speed" in results:
        lines += [
            f"One epoch over {results['words']:,} words, 2 threads, window 5, 5 negative samples (in Firth the windows "
            "of four tokens share negative samples: 6 words with skip-gram, 8 with CBOW):",
            "",
        ]
        lines += [*speed_table(results["speed"]), ""]
    if "quality" in results:
        question_count, seeds = results["quality"][0]["questions"], len(results["quality"][0]["analogies"])
        lines += [
            f"The whole text (16.9M words), 5 epochs, 100d; analogies of {question_count:,} questions "
            "among the 30,000 most "
            f"frequent words that every model answers; {f'mean of {seeds} seeds' if seeds > 1 else 'one seed'}:",
            "",
            *quality_table(results["quality"]),
            "",
        ]
    page.write_text("\n".join(lines))
    print("\n".join(lines))


def machine() -> str:
    with Path("/proc/cpuinfo").open() as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{model}, {kernels.active_isa()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"))
    parser.add_argument("--only", choices=("speed", "quality"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = plain_text(arguments.data, arguments.work)
    stored = HERE / "results" / "words.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    results |= {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    if arguments.only != "quality":
        corpus = first_words(text, arguments.words, arguments.work)
        results["words"] = len(corpus.read_text(encoding="utf-8").split())
        results["speed"] = measure_speed(corpus, results["words"], arguments.rounds)
    if arguments.only != "speed":
        results["quality"] = measure_quality(arguments.data, text, arguments.work, arguments.seeds)
    write_results(results)


if __name__ == "__main__":
    main()
