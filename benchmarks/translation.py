"""Multi30k: the Transformer and the LSTM with Bahdanau attention, both directions, BLEU on test 2016.

    python benchmarks/translation.py DATA [--only transformer:de-en] [--epochs N] [--budget SECONDS] [--out FOLDER]

DATA holds translation/multi30k/{train,val}.lc.norm.tok.{de,en} (also .xz) and test_2016_flickr.lc.norm.tok.{de,en}:
tokenized, lowercased text. So BLEU is sacrebleu's with tokenize="none" on these tokens, as in published results on this
form of the data; "13a" splits some words further. Uses a GPU if available. Reports BLEU of beam search (5) and greedy
search, seconds of training (including tokenizer and held-out evaluation) and of translation, parameters, target tokens
per second. Results: benchmarks/results/translation.json and
docs/results/translation.md (with --out, in that folder instead); a run adds to what is there.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "src"))

import torch  # noqa: E402

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.evaluate.translation import bleu  # noqa: E402

# Small data: strong dropout, and batches for a few hundred steps per epoch.
SETTINGS: dict[str, dict[str, Any]] = {
    "transformer": {
        "layers": 4, "dim": 256, "heads": 4, "feedforward_dim": 1024, "dropout": 0.3, "label_smoothing": 0.1,
        "vocabulary_size": 10_000,
        "epochs": 40, "batch_tokens": 4096, "learning_rate": 1e-3, "warmup": 0.1, "weight_decay": 0.05,
        "context_length": 128,
    },
    "lstm": {
        "layers": 1, "dim": 512, "dropout": 0.4, "label_smoothing": 0.1, "vocabulary_size": 10_000,
        "epochs": 20, "batch_tokens": 2048, "learning_rate": 1e-3, "warmup": 0.05, "weight_decay": 0.01,
        "context_length": 128,
    },
}  # fmt: skip
DIRECTIONS = ("de-en", "en-de")
BEAM, PENALTY = 5, 1.0


def file(data: Path, name: str) -> Path:
    """Open a file of the data set, compressed or not."""
    plain = data / "translation" / "multi30k" / name
    return plain if plain.exists() else plain.with_name(plain.name + ".xz")


def pairs(data: Path, part: str, direction: str, **more: Any) -> firth.TranslationPairs:
    source, target = direction.split("-")
    return firth.TranslationPairs(*(file(data, f"{part}.lc.norm.tok.{side}") for side in (source, target)), **more)


def measure(data: Path, architecture: str, direction: str, run: firth.Run, changes: dict[str, Any]) -> dict[str, Any]:
    method = firth.Seq2Seq(architecture=architecture, **{**SETTINGS[architecture], **changes})
    began = time.perf_counter()
    training = pairs(data, "train", direction, dev=pairs(data, "val", direction))
    model = method.fit(training, run)
    seconds = time.perf_counter() - began
    test = list(pairs(data, "test_2016_flickr", direction))
    sources, right = [pair.source for pair in test], [pair.target for pair in test]
    began = time.perf_counter()
    result = model.translate(sources, beam=BEAM, length_penalty=PENALTY)
    translating = time.perf_counter() - began
    metrics = model.training
    return {
        "architecture": architecture,
        "direction": direction,
        "bleu": bleu(result, right),
        "bleu_13a": bleu(result, right, "13a"),
        "greedy": bleu(model.translate(sources, beam=1), right),
        "copy": bleu(sources, right),
        "seconds": seconds,
        "translating": translating,
        "parameters": metrics["parameters"],
        "tokens_per_second": metrics["tokens_per_second"],
        "epochs": metrics["finished_epochs"],
        "perplexity": metrics["perplexity"],
        "best_at": min(metrics["held_out"], key=lambda result: result["held_out_loss"])["share"],
        "options": method.options(),
        "device": metrics.get("device", "CPU"),
        "examples": [[sources[n], result[n], right[n]] for n in (0, 100, 500)],
    }


def page(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    devices = sorted({result["device"] for result in results.values()})
    yield f"`python benchmarks/translation.py DATA` on {', '.join(devices)}, {time.strftime('%Y-%m-%d')}. Multi30k,"
    yield "29,000 training pairs, test 2016 (1,000). BLEU over the data's own tokens (sacrebleu, `tokenize=none`),"
    yield "beam 5."
    yield ""
    yield "| model | | BLEU | greedy | `13a` | parameters | s to train | epochs | tokens/s | s to translate |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for result in results.values():
        yield (
            f"| {result['architecture']} | {result['direction'].replace('-', ' → ')} | {result['bleu']:.2f} "
            f"| {result['greedy']:.2f} | {result['bleu_13a']:.2f} | {result['parameters'] / 1e6:.1f} M "
            f"| {result['seconds']:.0f} | {result['epochs']} "
            f"| {result['tokens_per_second']:,.0f} | {result['translating']:.1f} |"
        )
    copies = {result["direction"]: result["copy"] for result in results.values()}
    yield ""
    yield "Copying the source gives " + ", ".join(f"{score:.1f} BLEU ({way})" for way, score in copies.items()) + "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", action="append", help="such as transformer:de-en; may be given several times")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another option of Seq2Seq")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of training each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a folder for results instead of benchmarks/results and docs/results")
    arguments = parser.parse_args()
    wanted = arguments.only or [f"{kind}:{way}" for way in DIRECTIONS for kind in SETTINGS]
    changes = {name: json.loads(value) for name, _, value in (item.partition("=") for item in arguments.set)}
    record = (arguments.out or HERE / "results") / "translation.json"
    written = (arguments.out or HERE.parent / "docs" / "results") / "translation.md"
    results: dict[str, dict[str, Any]] = json.loads(record.read_text())["runs"] if record.exists() else {}
    print(f"torch {torch.__version__}, {platform.platform()}, cuda {torch.cuda.is_available()}", flush=True)
    for name in wanted:
        kind, _, way = name.partition(":")
        run = firth.Run(budget=arguments.budget, seed=arguments.seed, report=LogLines(progress=False))
        results[name] = measure(arguments.data, kind, way, run, changes)
        print(json.dumps({key: value for key, value in results[name].items() if key != "options"}), flush=True)
        for path in (record, written):
            path.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"runs": results}, indent=1, ensure_ascii=False) + "\n")
        written.write_text("\n".join([*page(results), ""]), encoding="utf-8")
    print("\n".join(page(results)))


if __name__ == "__main__":
    main()
