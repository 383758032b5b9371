"""A BERT from nothing but a text of 30 MB: what its vectors know, beside the same net untrained and a skip-gram's mean.

    python benchmarks/bert_scratch.py DATA [--device auto|cpu|cuda] [--budget 480] [--size small] [--seed 1]
                                      [--megabytes 0] [--examples 0] [--out FOLDER] [--keep FOLDER]

DATA holds text/wiki-raw.txt.xz and sentences/sst2, mrpc (train, dev) and stsb-en-test.csv. All three learn from that
text alone; the last 5% of its documents are held out, on which masked tokens and next sentences are counted. SST-2 and
MRPC: a logistic regression on frozen vectors, the mean of a text's tokens, of a pair |u − v| and u · v; accuracy on
dev. STS-B: Spearman between cosine and score. `--megabytes` and `--examples` take less of the data, to try it.
Results: FOLDER/bert-scratch-DEVICE.json (default benchmarks/results), and docs/results/bert-scratch.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

import firth
from firth.core.report import JsonLines
from firth.core.scores import correlation, ranks
from firth.data.sentences import read_sentences
from firth.learners.bert import BertModel
from firth.learners.pretrain import MULTIPLE, Pretraining, set_rows
from firth.nets.bert import Bert

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results" / "bert-scratch.md"
Embed = Callable[[Sequence[str]], NDArray[np.float32]]


def rows_of(path: Path, **settings: Any) -> list[list[str]]:
    found = path if path.exists() else path.with_name(path.name + ".xz")
    with (lzma.open if found.suffix == ".xz" else open)(found, "rt", encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, **settings))


def sst2(data: Path, part: str) -> list[tuple[str, int]]:
    rows = rows_of(data / "sentences" / "sst2" / f"{part}.tsv", delimiter="\t", quoting=csv.QUOTE_NONE)[1:]
    return [(text, int(label)) for text, label in rows]


def mrpc(data: Path, part: str) -> list[tuple[str, str, int]]:
    path = data / "sentences" / "mrpc" / f"{part}_cleaned.tsv"  # its quotes are not those of csv
    rows = rows_of(path, delimiter="\t", quoting=csv.QUOTE_NONE)[1:]
    return [(row[3].strip('"'), row[4].strip('"'), int(row[0])) for row in rows]


def probe(inputs: NDArray[Any], truth: NDArray[Any], asked: NDArray[Any]) -> NDArray[np.bool_]:
    """Logistic regression with an L2 penalty (C = 1) on features of mean 0 and deviation 1."""
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    x, given = ((np.asarray(part, np.float64) - mean) / deviation for part in (inputs, asked))
    signs = 2.0 * truth - 1

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, bias = weights[:-1], weights[-1]
        margins = signs * (x @ w + bias)
        pull = -signs / (1 + np.exp(np.clip(margins, -500, 500)))
        return float(np.logaddexp(0, -margins).sum() + w @ w / 2), np.append(x.T @ pull + w, pull.sum())

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return np.asarray(given @ found[:-1] + found[-1] > 0)


def judged(embed: Embed, data: Path, examples: int) -> dict[str, float]:
    most = examples or None
    train, dev = sst2(data, "train")[:most], sst2(data, "dev")[:most]
    inputs, asked = (embed([text for text, _ in part]) for part in (train, dev))
    truth = np.array([label for _, label in dev])
    found = {"sst2": float((probe(inputs, np.array([label for _, label in train]), asked) == truth).mean())}
    features = []
    for part in (pairs_train := mrpc(data, "train")[:most]), (pairs_dev := mrpc(data, "dev")[:most]):
        u, v = (embed([row[side] for row in part]) for side in (0, 1))
        features.append(np.concatenate([np.abs(u - v), u * v], axis=1))
    answers = probe(features[0], np.array([row[2] for row in pairs_train]), features[1])
    truth = np.array([row[2] for row in pairs_dev])
    found["mrpc"] = float((answers == truth).mean())
    found["mrpc_f1"] = float(2 * (answers & (truth == 1)).sum() / (answers.sum() + truth.sum()))
    rows = rows_of(data / "sentences" / "stsb-en-test.csv")[:most]
    u, v = (embed([row[side] for row in rows]) for side in (0, 1))
    cosine = (u * v).sum(1) / np.maximum(np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1), 1e-9)
    found["stsb"] = 100 * correlation(ranks(cosine), ranks(np.array([float(row[2]) for row in rows])))
    return found


def majority(data: Path, examples: int) -> dict[str, float]:
    """Always the label that is most frequent in the training part."""
    found = {}
    for name, read in (("sst2", sst2), ("mrpc", mrpc)):
        labels = [np.array([row[-1] for row in read(data, part)[: examples or None]]) for part in ("train", "dev")]
        found[name] = float((labels[1] == (labels[0].mean() >= 0.5)).mean())
    return found


def reading(model: BertModel) -> Embed:
    """The model's own pooling; texts longer than its context lose their last words (counted on stderr)."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        fitting, cut = [], 0
        for text in texts:
            words, whole = text.split(), True
            while len(model.tokenizer.encode(" ".join(words)).ids) > model.size.places:
                words, whole = words[: len(words) * 9 // 10], False
            cut += not whole
            fitting.append(" ".join(words))
        if cut:
            print(f"{cut} of {len(texts)} texts were cut", file=sys.stderr)
        return np.asarray(model.embed(fitting))

    return embed


def held_out(model: BertModel, net: Bert, corpus: Any, run: Any) -> dict[str, float]:
    """What a net says to the held-out part."""
    words = len(model.tokenizer)
    set_rows(net, words, -(-words // MULTIPLE) * MULTIPLE)
    task = Pretraining(model.method, net, read_sentences(model.tokenizer, corpus, run), model.tokenizer, run)
    found = task.judge(sys.maxsize)
    set_rows(net.cpu(), words, words)
    return found


def frequency(model: BertModel, corpus: Any, run: Any) -> float:
    """Masked tokens found by always saying the most frequent token."""
    task = Pretraining(model.method, model.net, read_sentences(model.tokenizer, corpus, run), model.tokenizer, run)
    counts = [
        np.bincount(part.ids[part.starts[0] : part.starts[-1]], minlength=len(model.tokenizer)) * task.masking.hideable
        for part in (task.sentences, task.held_out)
    ]
    model.net.cpu()
    return float(counts[1][counts[0].argmax()] / counts[1].sum())


def page(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("bert-scratch-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        training = found["training"]
        yield (
            f"`python benchmarks/bert_scratch.py DATA`: {found['megabytes']:.0f} MB of Wikipedia, {found['device']}, "
            f"{training['seconds']:.0f} s, size {found['size']} ({training['parameters'] / 1e6:.1f} M weights), "
            f"{training['steps']:,} steps at {training['tokens_per_second']:,.0f} tokens/s.\n"
        )
        yield "| | masked tokens | next sentence | SST-2 | MRPC (F1) | STS-B |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for name, row in found["rows"].items():
            cells = [f"{row[key]:.1%}" if key in row else "" for key in ("masked_accuracy", "next_accuracy", "sst2")]
            both = (
                f"{row['mrpc']:.1%}" + (f" ({row['mrpc_f1']:.2f})" if "mrpc_f1" in row else "") if "mrpc" in row else ""
            )
            cells += [both, f"{row['stsb']:.1f}" if "stsb" in row else ""]
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--budget", type=float, default=480.0)
    parser.add_argument("--size", default="small")
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--batch-tokens", type=int, default=65_536)
    parser.add_argument("--vocabulary", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=0.0)
    parser.add_argument("--examples", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    device = arguments.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wiki-raw.txt"
        with lzma.open(arguments.data / "text" / "wiki-raw.txt.xz", "rb") as file:
            path.write_bytes(file.read(int(arguments.megabytes * 1e6) or -1))
        corpus = firth.Corpus(path, unit="block")
        run = firth.Run(device=device, budget=arguments.budget, seed=arguments.seed, report=JsonLines())
        method = firth.BERT(
            size=arguments.size, batch_tokens=arguments.batch_tokens, learning_rate=arguments.learning_rate,
            vocabulary=arguments.vocabulary, weight_decay=0.01, epochs=100_000,
        )  # fmt: skip
        model = method.fit(corpus, run)
        if arguments.keep:
            model.save(arguments.keep)
        torch.manual_seed(arguments.seed)
        fresh = Bert(len(model.tokenizer), model.size)
        untrained = BertModel(method, fresh, model.tokenizer, model.pooling, {})
        words = firth.SkipGram(epochs=10).fit(corpus, firth.Run(seed=arguments.seed, report=JsonLines()))
        figures = model.training
        told = {name: figures[name] for name in ("masked_accuracy", "next_accuracy") if name in figures}
        rows: dict[str, dict[str, float]] = {
            "most frequent": {"masked_accuracy": frequency(model, corpus, run), "next_accuracy": 0.5}
            | majority(arguments.data, arguments.examples),
            "the net untrained": held_out(untrained, fresh, corpus, run),
            "skip-gram, mean": {},
            "BERT, trained": told,
        }
        for name, embed in (
            ("the net untrained", reading(untrained)),
            ("skip-gram, mean", lambda texts: np.asarray(words.embed(texts))),
            ("BERT, trained", reading(model)),
        ):
            rows[name] = rows[name] | judged(embed, arguments.data, arguments.examples)
            print(json.dumps({name: rows[name]}), flush=True)
        found = {
            "device": torch.cuda.get_device_name() if device == "cuda" else "CPU", "size": arguments.size,
            "megabytes": path.stat().st_size / 1e6, "rows": rows, "training": figures,
        }  # fmt: skip
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"bert-scratch-{device}.json").write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text("\n".join(page(arguments.out)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
