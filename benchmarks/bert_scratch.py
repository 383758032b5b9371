"""A BERT trained from scratch on 30 MB of text, compared with the untrained network and the mean of skip-gram.

    python benchmarks/bert_scratch.py DATA [--device auto|cpu|cuda] [--budget 480] [--size small] [--seed 1]
                                      [--megabytes 0] [--examples 0] [--out FOLDER] [--keep FOLDER]

DATA holds text/wiki-raw.txt.xz and sentences/sst2, mrpc (train, dev) and stsb-en-dev.csv, stsb-en-test.csv. All three
are trained on that text only; masked tokens and next sentences are evaluated on the last 5% of its documents.

SST-2 and MRPC: a logistic regression on frozen vectors, for a pair on |u − v| and u · v; the networks also read a pair
as one input (`together`), as in pre-training. The penalty and, for the networks, the layer and the pooling are selected
by 5-fold cross-validation on the training set, in the same way for all; the dev set is used once, with the selection.
STS-B: Spearman between cosine and score on the test set, for the mean of the last layer and for the layer and pooling
that are best on the dev set.

`--megabytes` and `--examples` use less data, for a quick test. `--keep` saves the network, or loads a saved one.
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
from torch import Tensor

import firth
from firth.core.report import JsonLines
from firth.core.scores import correlation, ranks
from firth.data.sentences import read_sentences
from firth.evaluate.sentences import SentencePair, cosines, read_sentence_pairs
from firth.nets.encoder import Encoder
from firth.transformers.bert_model import BertModel
from firth.transformers.bert_pretraining import MULTIPLE, Pretraining, set_rows
from firth.transformers.pooling import Pooling

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results" / "bert-scratch.md"
PENALTIES = (1e4, 3e3, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)  # scikit-learn's 1/C
FOLDS = 5
MEAN, WORDS = "mean", "skip-gram, mean"
CHOSEN = {"sst2_chosen": "SST-2", "mrpc_chosen": "MRPC", "stsb_chosen": "STS-B"}
Ways = dict[str, NDArray[Any]]  # rows of texts, by pooling
Embed = Callable[[Sequence[str]], Ways]
Together = Callable[[Sequence[tuple[str, str]]], Ways]  # for pairs read as one input


def rows_of(path: Path, **settings: Any) -> list[list[str]]:
    results = path if path.exists() else path.with_name(path.name + ".xz")
    with (lzma.open if results.suffix == ".xz" else open)(results, "rt", encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, **settings))


def sst2(data: Path, part: str) -> list[tuple[str, int]]:
    rows = rows_of(data / "sentences" / "sst2" / f"{part}.tsv", delimiter="\t", quoting=csv.QUOTE_NONE)[1:]
    return [(text, int(label)) for text, label in rows]


def mrpc(data: Path, part: str) -> list[tuple[str, str, int]]:
    path = data / "sentences" / "mrpc" / f"{part}_cleaned.tsv"  # quotes have no meaning in this file
    rows = rows_of(path, delimiter="\t", quoting=csv.QUOTE_NONE)[1:]
    return [(row[3].strip('"'), row[4].strip('"'), int(row[0])) for row in rows]


def penalised(x: Tensor, truth: Tensor) -> list[Tensor]:
    """Weights of logistic regressions with an L2 penalty, one for each of PENALTIES; the bias, last, is free.

    Newton's steps, from the strongest penalty on, each from where the one before ended. `x` ends in a column of ones.
    """
    weights, results = x.new_zeros(x.shape[1]), []
    free = torch.ones_like(weights)
    free[-1] = 0

    def loss(at: Tensor, penalty: float) -> Tensor:
        scores = x @ at
        return (torch.nn.functional.softplus(scores) - truth * scores).sum() + penalty * (free * at * at).sum() / 2

    for penalty in PENALTIES:
        here = loss(weights, penalty)
        for _ in range(30):
            chance = torch.sigmoid(x @ weights)
            slope = x.T @ (chance - truth) + penalty * free * weights
            bend = x.T @ (x * (chance * (1 - chance))[:, None]) + torch.diag(penalty * free + 1e-9)
            step = torch.linalg.solve(bend, slope)
            while (there := loss(weights - step, penalty)) > here and float(step.abs().max()) > 1e-7:
                step = step / 2  # a full Newton step may overshoot
            weights, gain, here = weights - step, float(here - there), there
            if gain < 1e-6 * float(here):
                break
        results.append(weights)
    return results


def scaled(rows: Tensor, by: Tensor) -> Tensor:
    """Return features standardized by `by`, with a column of ones."""
    deviation = by.std(0)
    x = torch.where(deviation > 1e-9, (rows - by.mean(0)) / deviation.clamp(min=1e-9), 0.0)
    return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def probe(ways: Ways, truth: NDArray[Any], queries: Ways, device: str) -> tuple[NDArray[np.bool_], dict[str, Any]]:
    """What a logistic regression says to `asked`, with the way and the penalty that are best on folds of the rest."""
    target = torch.tensor(truth, dtype=torch.float64, device=device)
    fold = torch.tensor(np.random.default_rng(1).permutation(len(truth)) % FOLDS, device=device)
    right: dict[tuple[str, int], float] = {}
    for way, rows in ways.items():
        x = torch.tensor(rows, dtype=torch.float64, device=device)
        for part in range(FOLDS):
            inside = fold != part
            given, held = scaled(x[inside], x[inside]), scaled(x[~inside], x[inside])
            for number, weights in enumerate(penalised(given, target[inside])):
                hits = ((held @ weights > 0) == (target[~inside] > 0)).sum()
                right[way, number] = right.get((way, number), 0.0) + float(hits) / len(truth)
    way, number = max(right, key=lambda key: (right[key], -key[1]))
    x, y = (torch.tensor(part[way], dtype=torch.float64, device=device) for part in (ways, queries))
    weights = penalised(scaled(x, x), target)[number]
    answers = (scaled(y, x) @ weights > 0).cpu().numpy()
    return answers, {"way": way, "penalty": PENALTIES[number], "folds": right[way, number]}


def pair_features(u: Ways, v: Ways) -> Ways:
    return {way: np.concatenate([np.abs(u[way] - v[way]), u[way] * v[way]], axis=1) for way in u}


def agreement(embed: Embed, pairs: Sequence[SentencePair]) -> dict[str, float]:
    """Return the correlation of cosines with human scores, for each pooling."""
    rows = embed([pair.a for pair in pairs] + [pair.b for pair in pairs])
    scores = ranks(np.array([pair.score for pair in pairs]))
    results = {way: 100 * correlation(ranks(cosines(each)), scores) for way, each in rows.items()}
    return {way: figure for way, figure in results.items() if not np.isnan(figure)}  # a constant has no correlation


def judged(embed: Embed, together: Together | None, data: Path, examples: int, device: str) -> dict[str, Any]:
    most = examples or None
    train, dev = sst2(data, "train")[:most], sst2(data, "dev")[:most]
    inputs, queries = (embed([text for text, _ in part]) for part in (train, dev))
    truth = np.array([label for _, label in dev])
    answers, selected = probe(inputs, np.array([label for _, label in train]), queries, device)
    results: dict[str, Any] = {"sst2": float((answers == truth).mean()), "sst2_chosen": selected}
    features = []
    for part in (pairs_train := mrpc(data, "train")[:most]), (pairs_dev := mrpc(data, "dev")[:most]):
        apart = pair_features(*(embed([str(row[side]) for row in part]) for side in (0, 1)))
        features.append(apart | (together([row[:2] for row in part]) if together else {}))
    answers, selected = probe(features[0], np.array([row[2] for row in pairs_train]), features[1], device)
    truth = np.array([row[2] for row in pairs_dev])
    results |= {"mrpc": float((answers == truth).mean()), "mrpc_chosen": selected}
    results["mrpc_f1"] = float(2 * (answers & (truth == 1)).sum() / (answers.sum() + truth.sum()))
    before, described = (
        agreement(embed, read_sentence_pairs(data / "sentences" / f"stsb-en-{part}.csv")[:most])
        for part in ("dev", "test")
    )
    best = max(before, key=lambda way: before[way])
    return results | {
        "stsb": described[MEAN],
        "stsb_best": described[best],
        "stsb_chosen": {"way": best, "dev": before[best]},
    }


def majority(data: Path, examples: int) -> dict[str, float]:
    """Return the baseline that always predicts the most frequent training label."""
    results = {}
    for name, read in (("sst2", sst2), ("mrpc", mrpc)):
        labels = [np.array([row[-1] for row in read(data, part)[: examples or None]]) for part in ("train", "dev")]
        results[name] = float((labels[1] == (labels[0].mean() >= 0.5)).mean())
    return results


def reading(model: BertModel) -> Embed:
    """Return every layer with every pooling, and the mean of the first and last layer."""
    last = model.size.layers

    def embed(texts: Sequence[str]) -> Ways:
        results: Ways = {}
        for how in ("mean", "cls", "max"):
            every = Pooling(how=how, layers=tuple(range(last + 1)), combine="concat")
            rows = np.asarray(model.embed(texts, pooling=every)).reshape(len(texts), last + 1, -1)
            for layer in range(last, 0 if how == "cls" else -1, -1):  # [CLS] is the same in every input
                results[MEAN if (how, layer) == ("mean", last) else f"{how}, layer {layer}"] = rows[:, layer]
            if how == "mean":
                results["mean, first and last layer"] = (rows[:, 1] + rows[:, last]) / 2
        return results

    return embed


def fitting(model: BertModel, a: str, b: str) -> tuple[str, str]:
    """Return a pair whose longer text is truncated to fit."""
    while len(model.tokenizer.engine.encode(a, b).ids) > model.size.max_positions:
        a, b = (a.rpartition(" ")[0], b) if len(a) > len(b) else (a, b.rpartition(" ")[0])
    return a, b


def reading_pairs(model: BertModel, device: str) -> Together:
    """Return every layer's [CLS] vector and mean for two texts in one input."""

    @torch.inference_mode()
    def embed(pairs: Sequence[tuple[str, str]]) -> Ways:
        model.net.to(device)
        results: dict[str, list[Tensor]] = {}
        for begin in range(0, len(pairs), 256):
            read = model.read([fitting(model, a, b) for a, b in pairs[begin : begin + 256]])
            given = model.tensors([each.ids for each in read], [each.type_ids for each in read])
            starts = given[-1].starts.long()
            for layer, rows in enumerate(model.net.states(*given)[1:], start=1):
                sums = torch.cat([rows.new_zeros(1, rows.shape[1]), rows.double().cumsum(0)])[starts]
                means = (sums[1:] - sums[:-1]) / (starts[1:] - starts[:-1])[:, None]
                for how, one in (("cls", rows[starts[:-1]]), ("mean", means)):
                    results.setdefault(f"together, {how}, layer {layer}", []).append(one.float().cpu())
        model.net.cpu()
        return {way: torch.cat(parts).numpy() for way, parts in results.items()}

    return embed


def held_out(model: BertModel, net: Encoder, corpus: Any, run: Any) -> dict[str, float]:
    """Return the metrics of a network on the held-out documents."""
    words = len(model.tokenizer)
    set_rows(net, words, -(-words // MULTIPLE) * MULTIPLE)
    task = Pretraining(model.method, net, read_sentences(model.tokenizer, corpus, run), model.tokenizer, run)
    results = task.evaluate_held_out(sys.maxsize)
    set_rows(net.cpu(), words, words)
    return results


def frequency(model: BertModel, corpus: Any, run: Any) -> float:
    """Return the accuracy on masked tokens of always predicting the most frequent token."""
    task = Pretraining(model.method, model.net, read_sentences(model.tokenizer, corpus, run), model.tokenizer, run)
    counts = [
        np.bincount(part.ids[part.starts[0] : part.starts[-1]], minlength=len(model.tokenizer)) * task.masking.maskable
        for part in (task.sentences, task.held_out)
    ]
    model.net.cpu()
    return float(counts[1][counts[0].argmax()] / counts[1].sum())


def page(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("bert-scratch-*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        training = results["training"]
        yield (
            f"`python benchmarks/bert_scratch.py DATA`: {results['megabytes']:.0f} MB of Wikipedia, "
            f"{results['device']}, "
            f"{training['seconds']:.0f} s, size {results['size']} ({training['parameters'] / 1e6:.1f} M weights), "
            f"{training['steps']:,} steps at {training['tokens_per_second']:,.0f} tokens/s.\n"
        )
        tasks = "SST-2 | MRPC (F1) | MRPC, folds | STS-B, last layer's mean | STS-B, selected"
        yield f"| | masked tokens | next sentence | {tasks} |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        for name, row in results["rows"].items():
            cells = [f"{row[key]:.1%}" if key in row else "" for key in ("masked_accuracy", "next_accuracy", "sst2")]
            both = (
                f"{row['mrpc']:.1%}" + (f" ({row['mrpc_f1']:.2f})" if "mrpc_f1" in row else "") if "mrpc" in row else ""
            )
            folds = f"{row['mrpc_chosen']['folds']:.1%}" if "mrpc_chosen" in row else ""
            cells += [both, folds, *(f"{row[key]:.1f}" if key in row else "" for key in ("stsb", "stsb_best"))]
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""
        selected = [
            f"{name}: " + ", ".join(f"{row[key]['way']} ({task})" for key, task in CHOSEN.items())
            for name, row in results["rows"].items()
            if all(key in row for key in CHOSEN) and name != WORDS
        ]
        yield f"Pooling and layer selected on other data: {'; '.join(selected)}."
        yield "MRPC's dev data has 398 pairs, so one point is four of them. The folds are those of the 3,551 pairs on"
        yield "which pooling and layer were selected; each row has its best.\n"


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
            vocabulary_size=arguments.vocabulary, weight_decay=0.01, epochs=100_000,
        )  # fmt: skip
        if arguments.keep and arguments.keep.exists():
            model = firth.load(arguments.keep)
        else:
            model = method.fit(corpus, run)
            if arguments.keep:
                model.save(arguments.keep)
        torch.manual_seed(arguments.seed)
        fresh = Encoder(len(model.tokenizer), model.size)
        untrained = BertModel(method, fresh, model.tokenizer, model.pooling, {})
        words = firth.SkipGram(epochs=10).fit(corpus, firth.Run(seed=arguments.seed, report=JsonLines()))
        metrics = {name: figure for name, figure in model.training.items() if name != "epochs"}
        rows: dict[str, dict[str, Any]] = {
            "most frequent": {"masked_accuracy": frequency(model, corpus, run), "next_accuracy": 0.5}
            | majority(arguments.data, arguments.examples),
            "untrained network": held_out(untrained, fresh, corpus, run),
            WORDS: {},
            "BERT, trained": {name: metrics[name] for name in ("masked_accuracy", "next_accuracy") if name in metrics},
        }
        results = {
            "device": torch.cuda.get_device_name() if device == "cuda" else "CPU", "size": arguments.size,
            "megabytes": path.stat().st_size / 1e6, "rows": rows, "training": metrics,
        }  # fmt: skip
        arguments.out.mkdir(parents=True, exist_ok=True)
        readers: dict[str, tuple[Embed, Together | None]] = {
            "BERT, trained": (reading(model), reading_pairs(model, device)),
            "untrained network": (reading(untrained), reading_pairs(untrained, device)),
            WORDS: (lambda texts: {MEAN: np.asarray(words.embed(texts))}, None),
        }
        for name, (embed, together) in readers.items():
            rows[name] |= judged(embed, together, arguments.data, arguments.examples, device)
            print(json.dumps({name: rows[name]}), flush=True)
            (arguments.out / f"bert-scratch-{device}.json").write_text(json.dumps(results, indent=1) + "\n")
    if arguments.out == HERE / "results":
        PAGE.write_text("\n".join(page(arguments.out)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
