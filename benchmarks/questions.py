"""Small experiments on open questions about word vectors; prints Markdown, which the documentation includes.

    python benchmarks/questions.py                                       the synthetic corpus: no download
    python benchmarks/questions.py wiki.txt questions-words.txt WS-353-SIM.txt WS-353-REL.txt SIMLEX-999.txt

`--words N` takes the first N words of the text, `--only NAME` (repeatable) selects experiments, `--output FILE` writes
there instead of printing. Times are CPU seconds of all threads, so other load on the machine affects them little.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import firth
from firth.core.report import LogLines
from firth.data.tokens import Tokens, read_tokens
from firth.data.world import World, write_analogies
from firth.evaluate.layout import markdown_table, percent
from firth.kernels.predict import huffman_paths, keep_thresholds
from firth.words.window_training import GROUP_MIN_VOCABULARY, MOST_SOFTMAX_WORDS, Group

Table = tuple[list[str], list[list[str]]]
SOFTMAX_TOKENS = 2000  # enough to time it: at a large vocabulary an epoch would take hours
TEXT_SIZES = (250_000, 1_000_000, 4_000_000, 16_000_000)
NEGATIVES = (2, 5, 10, 20)


class EqualWeight(firth.SkipGram):
    """Skip-gram whose four windows share samples with the weight of `negatives` samples, not twice that."""

    group = Group(4, drawn=1.2, counted=1.0)


class OneWindow(firth.SkipGram):
    """Skip-gram whose windows are trained one by one: only the pairs of a window share samples."""

    group = Group()


@dataclass(frozen=True)
class Scores:
    """Means over the seeds."""

    semantic: float
    syntactic: float
    total: float
    pairs: tuple[float, ...]  # Spearman, one for each file of pairs
    seconds: float  # of processor time an epoch
    deviation: float = 0.0  # standard deviation of the total over the seeds


@dataclass
class Laboratory:
    """A text, questions about it, and each model trained once."""

    tokens: Tokens
    questions: list[firth.evaluate.Section]
    pairs: dict[str, list[firth.evaluate.Pair]]
    seeds: int
    base: dict[str, Any]  # options of every method here

    def __post_init__(self) -> None:
        self.done: dict[firth.Method, Scores] = {}
        self.asked = (0, 0)

    def scores(self, method: firth.Method) -> Scores:
        if method not in self.done:
            print(f"training model {len(self.done) + 1}", file=sys.stderr)
            runs = [self.one(method, seed) for seed in range(1, self.seeds + 1)]
            self.done[method] = mean(runs)
        return self.done[method]

    def one(self, method: firth.Method, seed: int) -> Scores:
        model, seconds = timed_fit(method, self.tokens, seed)
        models = firth.evaluate.analogies(model.vectors, self.questions)
        self.asked = (models.semantic.answered, models.syntactic.answered)
        pairs = tuple(firth.evaluate.word_similarity(model.vectors, each).spearman for each in self.pairs.values())
        epochs = model.training["finished_epochs"]
        return Scores(models.semantic.accuracy, models.syntactic.accuracy, models.accuracy, pairs, seconds / epochs)

    def skipgram(self, **options: Any) -> Scores:
        return self.scores(firth.SkipGram(**{**self.base, **options}))

    def cbow(self, **options: Any) -> Scores:
        return self.scores(firth.CBOW(**{**self.base, **options}))

    def beginning(self, words: int) -> Laboratory:
        """The same questions about the first words of the text, whose rare words are dropped again."""
        names = self.tokens.vocabulary.tokens
        text = " ".join(names[i] for i in self.tokens.ids[:words])
        return Laboratory(read_tokens([text], min_count=5), self.questions, self.pairs, self.seeds, self.base)

    @cached_property
    def header(self) -> list[str]:
        return ["semantic", "syntactic", "total", *self.pairs, "CPU s / epoch"]

    def row(self, scores: Scores) -> list[str]:
        answers = [percent(share) for share in (scores.semantic, scores.syntactic, scores.total)]
        answers[-1] += f" ±{100 * scores.deviation:.1f}" if self.seeds > 1 else ""
        return [*answers, *(f"{rho:.3f}" for rho in scores.pairs), f"{scores.seconds:.2f}"]

    def table(self, what: str, rows: dict[str, Scores]) -> str:
        body = [[name, *self.row(scores)] for name, scores in rows.items()]
        return markdown_table([what, *self.header], body, numbers=range(1, len(self.header) + 1))


def semantic(lab: Laboratory) -> Iterator[str]:
    """Semantic or syntactic: what do CBOW and skip-gram favor?"""
    models = {"skip-gram": lab.skipgram(), "CBOW": lab.cbow()}
    yield lab.table("method", models)
    skip, bag = models.values()
    yield (
        f"Out of {lab.asked[0]:,} semantic and {lab.asked[1]:,} syntactic questions, skip-gram answers "
        f"{points(skip.semantic, bag.semantic)} of the semantic ones than CBOW and "
        f"{points(skip.syntactic, bag.syntactic)} of the syntactic ones."
    )


def huffman(lab: Laboratory) -> Iterator[str]:
    """What does Huffman's tree save over log₂V?"""
    counts = lab.tokens.vocabulary.counts
    lengths = np.diff(huffman_paths(counts).starts)
    expected_counts = counts * (keep_thresholds(counts, firth.SkipGram().subsample) / (2**32 - 1))
    flat = float(np.log2(len(counts)))
    rows = []
    for name, weights in (("all words", counts), ("after subsampling", expected_counts)):
        share = weights / weights.sum()
        path, entropy = float(share @ lengths), float(-share @ np.log2(share))
        rows.append([name, f"{path:.2f}", f"{entropy:.2f}", f"{flat:.2f}", f"{1 - path / flat:.0%}"])
    header = ["steps per word", "Huffman", "entropy", "log₂V", "saved"]
    yield f"A vocabulary of {len(counts):,} words:"
    yield markdown_table(header, rows, numbers=range(1, 5))
    losses = {f"skip-gram, {loss}": lab.skipgram(loss=loss) for loss in ("negative", "hierarchical")}
    losses |= {f"CBOW, {loss}": lab.cbow(loss=loss) for loss in ("negative", "hierarchical")}
    yield lab.table("method, loss", losses)
    quick, tree = losses["skip-gram, negative"], losses["skip-gram, hierarchical"]
    yield (
        f"An epoch with the tree takes {tree.seconds / quick.seconds:.1f} times as long as with five negative samples "
        f"and answers {points(tree.total, quick.total)} of the questions."
    )
    yield softmax_time(lab, tree)


def softmax_time(lab: Laboratory, tree: Scores) -> str:
    """The exact softmax on the beginning of the text: its time for a word does not depend on the number of words."""
    few = Tokens(lab.tokens.ids[:SOFTMAX_TOKENS], np.array([0, SOFTMAX_TOKENS]), lab.tokens.vocabulary, SOFTMAX_TOKENS)
    method = firth.SkipGram(**{**lab.base, "loss": "softmax", "epochs": 1, "max_vocabulary": MOST_SOFTMAX_WORDS})
    model, seconds = timed_fit(method, few, seed=1)
    exact = seconds / SOFTMAX_TOKENS * 1e6
    times = exact / (tree.seconds / len(lab.tokens.ids) * 1e6)
    return (
        f"The exact softmax over {len(model.vectors):,} words takes {exact:,.0f} CPU seconds per million "
        f"words, {times:,.0f} times as long as the tree."
    )


def subsampling(lab: Laboratory) -> Iterator[str]:
    """What does subsampling do?"""
    vocabulary = lab.tokens.vocabulary
    counts = vocabulary.counts
    thresholds = (0.0, 1e-3, 1e-4, 1e-5)
    shares = {t: keep_thresholds(counts, t) / (2**32 - 1) for t in thresholds}
    models = {named(t): lab.skipgram(subsample=t) for t in thresholds}
    body = [
        [name, percent(float(shares[t] @ counts / counts.sum())), *lab.row(scores)]
        for t, (name, scores) in zip(thresholds, models.items(), strict=True)
    ]
    header = ["subsample", "words kept", *lab.header]
    yield markdown_table(header, body, numbers=range(1, len(header)))
    yield "Share of a word's occurrences that is kept, by frequency rank:"
    ranks = [rank for rank in (0, 1, 9, 99, 999, 9999) if rank < len(counts)]
    words = [
        [
            vocabulary.tokens[rank],
            f"{rank + 1:,}",
            f"{counts[rank] / counts.sum():.3%}",
            *(percent(float(shares[t][rank])) for t in thresholds[1:]),
        ]
        for rank in ranks
    ]
    header = ["word", "rank", "share of the text", *(named(t) for t in thresholds[1:])]
    yield markdown_table(header, words, numbers=range(1, len(header)))
    off, on = models["off"], models["0.001"]
    yield (
        f"At 0.001 an epoch takes {on.seconds / off.seconds:.0%} of the time without subsampling, and "
        f"{points(on.total, off.total)} of the questions are answered."
    )


def window(lab: Laboratory) -> Iterator[str]:
    """Does the window size matter?"""
    models = {size: lab.skipgram(window=size) for size in (1, 2, 5, 10)}
    yield lab.table("window", {str(size): scores for size, scores in models.items()})
    names = ["the semantic questions", "the syntactic questions", *lab.pairs]
    small, large = ([scores.semantic, scores.syntactic, *scores.pairs] for scores in (models[2], models[10]))
    grown = ", ".join(f"{name} by {b - a:+.3f}" for name, a, b in zip(names, small, large, strict=True))
    yield f"From a window of 2 to one of 10, the scores change: {grown}."


def negatives(lab: Laboratory) -> Iterator[str]:
    """What do shared negatives change?"""
    grouped = len(lab.tokens.vocabulary) >= GROUP_MIN_VOCABULARY
    models = {"fresh for each pair, weight 5": lab.skipgram(share_negatives=False)}
    models["fresh for each pair, weight 10"] = lab.skipgram(share_negatives=False, negatives=10)
    models["shared by a window, weight 5"] = lab.scores(OneWindow(**lab.base))
    models["shared by a window, weight 10"] = lab.scores(OneWindow(**lab.base, negatives=10))
    if grouped:
        models["shared by four windows, weight 5"] = lab.scores(EqualWeight(**lab.base))
        models["shared by four windows, weight 10 (the default)"] = lab.skipgram()
    yield lab.table("negative samples", models)
    for weight in (5, 10):
        fresh = models[f"fresh for each pair, weight {weight}"]
        shared = next(scores for name, scores in reversed(models.items()) if f"weight {weight}" in name)
        yield (
            f"At weight {weight}, an epoch with shared samples is {fresh.seconds / shared.seconds:.1f} times as fast "
            f"and answers {points(shared.total, fresh.total)} of the questions."
        )
    one, two = (models[f"fresh for each pair, weight {weight}"] for weight in (5, 10))
    yield f"Ten fresh samples instead of five answer {points(two.total, one.total)}."


def text_sizes(lab: Laboratory) -> Iterator[str]:
    """How many negative samples for a text of which size?"""
    rows = []
    for size in [size for size in TEXT_SIZES if size < len(lab.tokens.ids)]:
        part = lab.beginning(size)
        scores = [part.scores(firth.SkipGram(dim=lab.base["dim"], negatives=k)) for k in NEGATIVES]
        best = max(range(len(NEGATIVES)), key=lambda k: scores[k].total)
        for name, values in (
            ("analogies", [percent(one.total) + f" ±{100 * one.deviation:.1f}" for one in scores]),
            *((name, [f"{one.pairs[i]:.3f}" for one in scores]) for i, name in enumerate(lab.pairs)),
        ):
            rows.append([f"{size:,}", name, *values])
        print(f"{size:,} words: {NEGATIVES[best]} negative samples", file=sys.stderr)
    yield markdown_table(["words", "score", *map(str, NEGATIVES)], rows, numbers=range(2, 2 + len(NEGATIVES)))


def gradient(lab: Laboratory) -> Iterator[str]:
    """What does the true gradient of CBOW's mean change?"""
    models = {
        "true (rate 0.15)": lab.cbow(exact_gradient=True, learning_rate=0.15),
        f"word2vec's (rate {firth.CBOW().learning_rate:g})": lab.cbow(),
    }
    yield lab.table("gradient", models)
    true, word2vecs = models.values()
    yield f"With the true gradient {points(true.total, word2vecs.total)} of the questions are answered."


EXPERIMENTS: tuple[Callable[[Laboratory], Iterator[str]], ...] = (
    semantic,
    huffman,
    subsampling,
    window,
    negatives,
    text_sizes,
    gradient,
)


def timed_fit(method: firth.Method, tokens: Tokens, seed: int) -> tuple[Any, float]:
    began = time.process_time()
    model = method.fit(tokens, firth.Run(seed=seed, report=LogLines(progress=False)))
    return model, time.process_time() - began


def mean(runs: list[Scores]) -> Scores:
    semantic, syntactic, total, seconds = (
        float(np.mean([getattr(run, name) for run in runs])) for name in ("semantic", "syntactic", "total", "seconds")
    )
    pairs = tuple(np.mean([run.pairs for run in runs], axis=0).tolist())
    deviation = statistics.stdev(run.total for run in runs) if len(runs) > 1 else 0.0
    return Scores(semantic, syntactic, total, pairs, seconds, deviation)


def points(a: float, b: float) -> str:
    return f"{abs(a - b) * 100:.1f} points {'more' if a >= b else 'fewer'}"


def named(threshold: float) -> str:
    return f"{threshold:g}" if threshold else "off"


def laboratory(settings: argparse.Namespace, folder: Path) -> tuple[Laboratory, str]:
    """The text and its questions, and one line that says what they are."""
    base: dict[str, Any] = {"dim": 50 if settings.quick else 100, "epochs": 2 if settings.quick else 5}
    if settings.text is None:
        world = World(seed=1)
        tokens = read_tokens(world.sentences(20_000 if settings.quick else 25_000), min_count=5)
        write_analogies(folder / "questions.txt", world.analogies())
        questions = firth.evaluate.read_questions(folder / "questions.txt")
        pairs = {"topics": [firth.evaluate.Pair(*pair) for pair in world.similarities()]}
        source = "the synthetic corpus (seed 1)"
    else:
        text = beginning(settings.text, settings.words, folder) if settings.words else settings.text
        tokens = read_tokens(text, min_count=5)
        questions = firth.evaluate.read_questions(settings.questions)
        pairs = {path.stem.removeprefix("EN-"): firth.evaluate.read_pairs(path) for path in settings.pairs}
        source = f"{'the beginning of ' if settings.words else ''}{settings.text.name}"
    lab = Laboratory(tokens, questions, pairs, settings.seeds, base)
    seeds = "one seed" if settings.seeds == 1 else f"the mean of {settings.seeds} seeds"
    options = ", ".join(f"{name}={value}" for name, value in base.items())
    return lab, f"{tokens.raw_tokens:,} words of {source}; {options}, other options at their defaults; {seeds}."


def beginning(path: Path, words: int, folder: Path) -> Path:
    """A file of the first `words` words, lines kept."""
    cut = folder / path.name
    left = words
    with path.open(encoding="utf-8") as source, cut.open("w", encoding="utf-8") as target:
        for line in source:
            taken = line.split(maxsplit=left)[:left]
            target.write(" ".join(taken) + "\n")
            left -= len(taken)
            if not left:
                break
    return cut


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs="?", help="a text; none = the synthetic corpus")
    parser.add_argument("questions", type=Path, nargs="?", help="analogies in the questions-words format")
    parser.add_argument("pairs", type=Path, nargs="*", help="files of word pairs with scores")
    parser.add_argument("--words", type=int, default=0, help="take only so many words from the text's beginning")
    parser.add_argument("--seeds", type=int, default=1, help="runs that each score is the mean of")
    names = [experiment.__name__ for experiment in EXPERIMENTS]  # text_sizes needs a text of some size
    parser.add_argument("--only", action="append", choices=names, help="an experiment; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer epochs and dimensions: to try the script itself")
    parser.add_argument("--output", type=Path, help="the Markdown file to write")
    settings = parser.parse_args()
    if settings.text is not None and settings.questions is None:
        parser.error("a text needs its questions: TEXT QUESTIONS [PAIRS …]")
    with tempfile.TemporaryDirectory() as folder:
        lab, description = laboratory(settings, Path(folder))
        # File names without folders, because this output is published.
        command = " ".join(["python benchmarks/questions.py", *(Path(word).name for word in sys.argv[1:])])
        parts = [f"<!-- Written by: {command} -->", "<!-- begin about -->", description, "<!-- end about -->"]
        for experiment in EXPERIMENTS:
            name = experiment.__name__
            if name not in (settings.only or names) or (name == "text_sizes" and settings.text is None):
                continue
            title = f"**{experiment.__doc__}**"
            parts += [title, f"<!-- begin {name} -->", *experiment(lab), f"<!-- end {name} -->"]
    result = "\n\n".join(parts) + "\n"
    if settings.output:
        settings.output.write_text(result, encoding="utf-8")
    else:
        print(result)


if __name__ == "__main__":
    main()
