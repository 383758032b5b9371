"""Sentence vectors of a weakly trained BERT: single sentences against consecutive ones; needs no GPU.

    python benchmarks/sentence_pairs.py DATA [--seeds 3] [--sentences 10000] [--blocks 20000]

DATA holds text/wiki-raw.txt.xz and sentences/stsb-en-dev.csv, -test.csv. For each seed a BERT of size tiny (2 layers of
128) is trained for one epoch on masked words of some paragraphs of wiki-raw. SentenceEncoder then continues from it with
the same number of sentences: one by one (two dropout passes of a sentence are a positive pair) or each beside the one
that follows it in its paragraph. The rate is selected by STS-B dev, separately for each seed; the metric is Spearman's
ρ × 100 on the test set. tf-idf of the same sentences is the baseline. Result: docs/results/sentence-pairs.md.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.sentence_training import neighbours, paragraphs, part_of, scored, sentences, spearman, stsb  # noqa: E402

import firth  # noqa: E402
from firth.core.report import LogLines  # noqa: E402
from firth.evaluate.layout import markdown_table  # noqa: E402

PAGE = HERE.parent / "docs" / "results" / "sentence-pairs.md"
RATES = (1e-4, 3e-4)


def tuned(part: firth.SimilarPairs, base: Any, run: firth.Run) -> Any:
    """Return the model with the rate that is best on the dev data."""
    models = [
        firth.SentenceEncoder(learning_rate=rate, batch_size=64, epochs=1, max_length=64).fit(part, run, base)
        for rate in RATES
    ]
    return max(models, key=lambda model: model.training["spearman"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=20_000, help="paragraphs that the BERT is trained on")
    given = parser.parse_args()
    dev, test = scored(stsb(given.data, "dev", 0)), stsb(given.data, "test", 0)
    blocks = [" ".join(parts) for parts in itertools.islice(paragraphs(given.data), given.blocks)]
    single = sentences(given.data, given.sentences)
    followed = neighbours(given.data, given.sentences // 2)
    method = firth.BERT(size="tiny", context_length=64, epochs=1, next_sentence=False, vocabulary_size=8000)
    rows: dict[str, list[float]] = {"the start": [], "single sentences": [], "consecutive sentences": []}
    for seed in range(1, given.seeds + 1):
        run = firth.Run(seed=seed, report=LogLines(progress=False))
        base = method.fit(firth.Corpus(blocks), run)
        rows["the start"].append(spearman(base, test))
        for name, texts in (("single sentences", single), ("consecutive sentences", followed)):
            model = tuned(part_of(texts, given.sentences, dev), base, run)
            rows[name].append(spearman(model, test))
        print(seed, rows, flush=True)
    rows["tf-idf"] = [spearman(firth.TfIdf().fit(single), test)]
    cells = [
        [name, f"{statistics.mean(each):.1f}" + (f" ±{statistics.stdev(each):.1f}" if len(each) > 1 else "")]
        for name, each in rows.items()
    ]
    page = [
        markdown_table(["training data", "STS-B test"], cells, numbers=[1]),
        "",
        f"A BERT of size tiny after one epoch over {len(blocks):,} paragraphs; {len(single):,} sentences; Spearman's ρ × "
        f"100, mean and standard deviation of {given.seeds} seeds; `python benchmarks/sentence_pairs.py DATA`.",
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
