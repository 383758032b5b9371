"""Small experiments on open questions about BERT, on the synthetic corpus: no download, minutes on a CPU.

    python benchmarks/bert_questions.py [--documents 1500] [--epochs 36] [--seeds 2] [--output FILE]

The text: documents of four sentences about one of eight topics, in each sentence three words of the topic, one of them
a word of two senses (bank: water or money). Small networks are trained on it and evaluated on
sentences that do not occur in it. Writes docs/results/bert-questions.md, which the documentation includes. Metrics are
means over the seeds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import firth
from firth.core.report import LogLines
from firth.data.world import World
from firth.data.world.labeled import Sense
from firth.data.world.words import HOMONYMS
from firth.evaluate.layout import markdown_table, percent
from firth.transformers.bert_model import BertModel

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "bert-questions.md"
ASKED = 400  # sentences
SETTINGS: dict[str, Any] = {
    "layers": 2, "dim": 64, "heads": 4, "feedforward_dim": 128,
    "context_length": 64, "vocabulary_size": 340, "dropout": 0.0,
    "batch_tokens": 512, "learning_rate": 4e-3, "weight_decay": 0.01, "held_out": 0.03,
}  # fmt: skip
Figures = dict[str, float]


def text_of(world: World, documents: int) -> tuple[list[str], list[Sense]]:
    """Return documents, and test sentences that occur in none of them."""
    waiting, scores, used = defaultdict(list), list[str](), set[str]()
    stream = iter(world.senses(40 * documents))
    while len(scores) < documents:
        sense = next(stream)
        waiting[sense.sense].append(sense.sentence)
        used.add(sense.sentence)
        if len(waiting[sense.sense]) == 4:
            scores.append(" . ".join(waiting.pop(sense.sense)))
    test_senses = (sense for sense in stream if sense.sentence not in used)
    return scores, [next(test_senses) for _ in range(ASKED)]


# ---- metrics of a model ----


def word_vectors(model: BertModel, test_senses: Sequence[Sense]) -> NDArray[np.float32]:
    """Return the vectors of the ambiguous word in each sentence, (layers + 1, sentences, dim)."""
    scores = []
    for sense in test_senses:
        position = model.read([sense.sentence])[0].tokens.index(sense.word)
        scores.append(model.states(sense.sentence)[:, position])
    return np.stack(scores, axis=1)


def nearest_agree(vectors: NDArray[Any], groups: Sequence[str], labels: Sequence[str]) -> float:
    """Return how often the nearest other vector of a group (by cosine) has the same label."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    closeness = unit @ unit.T
    np.fill_diagonal(closeness, -9)
    closeness[np.array(groups)[:, None] != np.array(groups)] = -9
    names = np.array(labels)
    return float((names == names[closeness.argmax(axis=1)]).mean())


def senses_apart(model: BertModel, test_senses: Sequence[Sense]) -> list[float]:
    """Return, by layer, how often the nearest other sentence of a word has the same sense."""
    groups, labels = [sense.word for sense in test_senses], [sense.sense for sense in test_senses]
    return [nearest_agree(layer, groups, labels) for layer in word_vectors(model, test_senses)]


def blanks_filled(model: BertModel, test_senses: Sequence[Sense]) -> float:
    """Return how often the most probable word for the masked ambiguous word fits the other two."""
    right = 0
    for sense in test_senses:
        words = ["[MASK]" if word == sense.word else word for word in sense.sentence.split()]
        right += sense.sense in HOMONYMS.get(model.fill(" ".join(words), k=1)[0][0][0], ())
    return right / len(test_senses)


@torch.inference_mode()
def seen_kept(model: BertModel, test_senses: Sequence[Sense]) -> float:
    """Return how often the model predicts a visible word as itself."""
    right = 0
    for sense in test_senses:
        read = model.read([sense.sentence])[0]
        position = read.tokens.index(sense.word)
        logits = model.net.masked_logits(model.net(*model.tensors([read.ids]))[position : position + 1])
        right += int(logits.argmax()) == read.ids[position]
    return right / len(test_senses)


def first_vectors(model: Any, test_senses: Sequence[Sense]) -> NDArray[np.float32]:
    """Return the last layer's vector of the first token of each sentence."""
    if isinstance(model, BertModel):
        return np.stack([model.states(sense.sentence)[-1, 0] for sense in test_senses])
    with torch.inference_mode():  # a GPT's `states` do not include the start token
        ids = [torch.tensor([model.ids(sense.sentence)]) for sense in test_senses]
        return np.stack([model.net(each)[0, 0].numpy() for each in ids])


def topics_apart(vectors: NDArray[Any], test_senses: Sequence[Sense]) -> float:
    """Return how often the nearest other sentence has the same topic; chance is 1 in 8."""
    return nearest_agree(vectors, [""] * len(test_senses), [sense.sense for sense in test_senses])


# ---- the experiments ----


class Laboratory:
    """Models, each trained once per seed."""

    def __init__(self, documents: int, epochs: int, seeds: int) -> None:
        self.epochs, self.seeds = epochs, range(1, seeds + 1)
        self.texts = {seed: text_of(World(seed=seed), documents) for seed in self.seeds}
        self.done: dict[Any, Any] = {}

    def bert(self, seed: int, **options: Any) -> BertModel:
        method = firth.BERT(**SETTINGS | {"epochs": self.epochs} | options)
        if (method, seed) not in self.done:
            run = firth.Run(threads=1, seed=seed, report=LogLines(progress=False))
            self.done[method, seed] = method.fit(self.texts[seed][0], run)
        return self.done[method, seed]

    def gpt(self, seed: int) -> Any:
        names = (
            "layers",
            "dim",
            "heads",
            "feedforward_dim",
            "context_length",
            "vocabulary_size",
            "dropout",
            "batch_tokens",
            "weight_decay",
        )
        method = firth.GPT(**{name: SETTINGS[name] for name in names}, learning_rate=4e-3, epochs=self.epochs)
        return method.fit(self.texts[seed][0], firth.Run(threads=1, seed=seed, report=LogLines(progress=False)))

    def test_senses(self, seed: int) -> list[Sense]:
        return self.texts[seed][1]


def mean(rows: Sequence[Figures]) -> Figures:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def masks(laboratory: Laboratory) -> Iterator[str]:
    rows, scores = [], {}
    for share, name in ((0.8, "80% [MASK], 10% random, 10% unchanged"), (1.0, "100% [MASK]")):
        metrics = []
        for seed in laboratory.seeds:
            model, test_senses = (
                laboratory.bert(seed, next_sentence=False, mask_share=share),
                laboratory.test_senses(seed),
            )
            metrics.append(
                {
                    "masked": model.training["masked_accuracy"],
                    "blanks": blanks_filled(model, test_senses),
                    "seen": seen_kept(model, test_senses),
                    "senses": senses_apart(model, test_senses)[-1],
                }
            )
        scores[name] = mean(metrics)
        rows.append([name, *(percent(value) for value in scores[name].values())])
    names = ["", "held-out masked tokens", "blanks filled correctly", "visible word identified", "senses distinguished"]
    yield markdown_table(names, rows)
    ours, whole = scores.values()
    yield (
        f"\nThe network of 100% [MASK] identifies a word that is not masked {percent(whole['seen'])} of the time, "
        f"the one with 80/10/10 {percent(ours['seen'])}."
    )


def first_place(laboratory: Laboratory) -> Iterator[str]:
    scores = []
    for seed in laboratory.seeds:
        test_senses, bert, gpt = laboratory.test_senses(seed), laboratory.bert(seed), laboratory.gpt(seed)
        scores.append(
            {
                "bert": topics_apart(first_vectors(bert, test_senses), test_senses),
                "mean": topics_apart(np.asarray(bert.embed([sense.sentence for sense in test_senses])), test_senses),
                "gpt": topics_apart(first_vectors(gpt, test_senses), test_senses),
                "gpt_mean": topics_apart(np.asarray(gpt.embed([sense.sentence for sense in test_senses])), test_senses),
            }
        )
    metrics = mean(scores)
    rows = [
        ["BERT: sees both sides", percent(metrics["bert"]), percent(metrics["mean"])],
        ["GPT: sees what stands before", percent(metrics["gpt"]), percent(metrics["gpt_mean"])],
    ]
    yield markdown_table(["same topic as the nearest sentence, by", "the first token", "all, mean"], rows)
    yield "\nBy chance: 12%."


def layers(laboratory: Laboratory) -> Iterator[str]:
    scores = []
    for seed in laboratory.seeds:
        model, test_senses = laboratory.bert(seed, next_sentence=False), laboratory.test_senses(seed)
        vectors, apart = word_vectors(model, test_senses), senses_apart(model, test_senses)
        words = [
            nearest_agree(layer, [""] * len(test_senses), [sense.word for sense in test_senses]) for layer in vectors
        ]
        topics = [topics_apart(layer, test_senses) for layer in vectors]
        scores.append(np.array([words, apart, topics]))
    metrics = np.mean(scores, axis=0)
    names = ["the input (token + position)", *(f"layer {number}" for number in range(1, metrics.shape[1]))]
    rows = [[name, *map(percent, metrics[:, number])] for number, name in enumerate(names)]
    yield markdown_table(["the nearest other vector has", "the same word", "its same sense", "the same topic"], rows)


def next_sentences(laboratory: Laboratory) -> Iterator[str]:
    rows = []
    for following, name in ((True, "masked tokens and next sentence"), (False, "masked tokens only")):
        metrics = []
        for seed in laboratory.seeds:
            model, test_senses = laboratory.bert(seed, next_sentence=following), laboratory.test_senses(seed)
            metrics.append(
                {
                    "masked": model.training["masked_accuracy"],
                    "blanks": blanks_filled(model, test_senses),
                    "senses": senses_apart(model, test_senses)[-1],
                    "first": topics_apart(first_vectors(model, test_senses), test_senses),
                    "mean": topics_apart(
                        np.asarray(model.embed([sense.sentence for sense in test_senses])), test_senses
                    ),
                    "next": model.training.get("next_accuracy", float("nan")),
                }
            )
        averages = mean(metrics)
        rows.append([name, *("" if np.isnan(value) else percent(value) for value in averages.values())])
    names = [
        "held-out masked tokens",
        "blanks filled correctly",
        "senses",
        "topic by [CLS]",
        "topic by the mean",
        "next sentence",
    ]
    yield markdown_table(["", *names], rows)


def page(laboratory: Laboratory, documents: int) -> Iterator[str]:
    yield "<!-- written by benchmarks/bert_questions.py -->"
    yield "<!-- begin about -->"
    yield (
        f"{documents:,} documents of four sentences, a network of {SETTINGS['layers']} layers × {SETTINGS['dim']}, "
        f"{laboratory.epochs} epochs, {len(laboratory.seeds)} seed(s), {ASKED} new test sentences. A trivial answer, "
        "the same for every sentence, fills 25% of the blanks and identifies 50% of the senses."
    )
    yield "<!-- end about -->"
    for name, part in (("masks", masks), ("first", first_place), ("layers", layers), ("next", next_sentences)):
        yield f"\n<!-- begin {name} -->"
        yield from part(laboratory)
        yield f"<!-- end {name} -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=36)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--output", type=Path, default=PAGE)
    arguments = parser.parse_args()
    laboratory = Laboratory(arguments.documents, arguments.epochs, arguments.seeds)
    arguments.output.write_text("\n".join(page(laboratory, arguments.documents)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
