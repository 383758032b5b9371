"""Association tests (WEAT) of word vectors of Wikipedia, with the word lists of Caliskan et al. (2017).

    python benchmarks/bias.py DATA [--words 4000000] [--seeds 3]

DATA holds text/wiki17m.txt.xz. Skip-gram is trained on the first words of the text. The last row is the same test with
the targets divided at random: a test of nothing. Result: docs/results/bias.md.
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np

import firth
from firth.core.report import LogLines
from firth.evaluate import AssociationTest, WordSet, associations
from firth.evaluate.layout import markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "results" / "bias.md"
LISTS = {
    "flowers": "aster clover hyacinth marigold poppy azalea crocus iris orchid rose bluebell daffodil lilac pansy "
    "tulip buttercup daisy lily peony violet carnation gladiola magnolia petunia zinnia",
    "insects": "ant caterpillar flea locust spider bedbug centipede fly maggot tarantula bee cockroach gnat mosquito "
    "termite beetle cricket hornet moth wasp blackfly dragonfly horsefly roach weevil",
    "pleasant": "caress freedom health love peace cheer friend heaven loyal pleasure diamond gentle honest lucky "
    "rainbow diploma gift honor miracle sunrise family happy laughter paradise vacation",
    "unpleasant": "abuse crash filth murder sickness accident death grief poison stink assault disaster hatred pollute "
    "tragedy divorce jail poverty ugly cancer kill rotten vomit agony prison",
    "math": "math algebra geometry calculus equations computation numbers addition",
    "art": "poetry art dance literature novel symphony drama sculpture",
    "career": "executive management professional corporation salary office business career",
    "family": "home parents children family cousins marriage wedding relatives",
    "male": "male man boy brother he him his son",
    "female": "female woman girl sister she her hers daughter",
}
TESTS = (("flowers", "insects", "pleasant", "unpleasant"), ("math", "art", "male", "female"),
         ("career", "family", "male", "female"))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    with lzma.open(given.data / "text/wiki17m.txt.xz", "rt", encoding="utf-8") as file:
        tokens = file.read(8 * given.words).split()[: given.words]
    sets = {name: WordSet(name, tuple(words.split())) for name, words in LISTS.items()}
    tests = [AssociationTest("/".join(each), (sets[each[0]], sets[each[1]]), (sets[each[2]], sets[each[3]]))
             for each in TESTS]  # fmt: skip
    mixed = np.random.default_rng(1).permutation([*sets["math"].words, *sets["art"].words]).tolist()
    tests.append(
        AssociationTest(
            "math and art at random/male/female",
            (WordSet("one", tuple(mixed[:8])), WordSet("other", tuple(mixed[8:]))),
            (sets["male"], sets["female"]),
        )
    )
    results = []
    for seed in range(1, given.seeds + 1):
        run = firth.Run(seed=seed, report=LogLines(progress=False))
        vectors = firth.SkipGram(dim=100, tokenizer="whitespace").fit([tokens], run).vectors
        results.append(associations(vectors, tests).tests)
    rows = [
        [
            each[0].name,
            ", ".join(f"{one.effect:+.2f}" for one in each),
            ", ".join(f"{one.p:.2g}" for one in each),
            " ".join(map(str, each[0].words)),
        ]
        for each in zip(*results, strict=True)
    ]
    page = [
        f"`python benchmarks/bias.py DATA`: skip-gram on {len(tokens):,} words of Wikipedia, {given.seeds} seeds.",
        "",
        markdown_table(["test", "effect d", "p", "words with vectors"], rows),
        "",
    ]
    PAGE.write_text("\n".join(page), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
