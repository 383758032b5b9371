"""Evaluation sets derived from the ground truth: analogies and word similarities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from os import PathLike
from pathlib import Path
from random import Random

from firth.core.errors import FirthError
from firth.data.world.ground_truth import GroundTruth, memberships
from firth.data.world.names import sample
from firth.data.world.words import FAMILY

Analogy = tuple[str, str, str, str]


def analogies(truth: GroundTruth, most: int) -> dict[str, list[Analogy]]:
    """Return analogies a : b = c : d by section; sections whose name begins with `gram` are about grammar."""
    countries, adjectives, verbs = truth.countries, truth.adjectives, truth.verbs
    pairs: dict[str, list[tuple[str, str]]] = {
        "capital-country": [(country.capital, country.country) for country in countries],
        "king-queen": [(country.king, country.queen) for country in countries],
        "family": [(male, female) for male, female, _ in FAMILY],
        "gram-comparative": [(word.forms[0], word.forms[1]) for word in adjectives],
        "gram-superlative": [(word.forms[0], word.forms[2]) for word in adjectives],
        "gram-past-tense": [(word.forms[0], word.forms[1]) for word in verbs],
        "gram-participle": [(word.forms[0], word.forms[3]) for word in verbs],
        "gram-nationality": [(country.country, country.people) for country in countries],
    }
    return {section: _questions(section, table, most) for section, table in pairs.items()}


def _questions(section: str, pairs: list[tuple[str, str]], most: int) -> list[Analogy]:
    """Return all ordered combinations of two pairs, or a random sample of `most` if there are more."""
    if len(pairs) * (len(pairs) - 1) <= most:
        return [first + second for first, second in permutations(pairs, 2)]
    random, sampled = Random(section), dict[Analogy, None]()
    while len(sampled) < most:
        first, second = sample(random, pairs, 2)
        sampled[first + second] = None
    return list(sampled)


def write_analogies(path: str | PathLike[str], sections: Mapping[str, Sequence[Analogy]]) -> None:
    """Write the questions-words format: a line `: section`, then one question per line."""
    lines = []
    for section, questions in sections.items():
        lines.append(f": {section}")
        lines += [" ".join(question) for question in questions]
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def similarities(truth: GroundTruth, random: Random, n: int) -> list[tuple[str, str, float]]:
    """Return `n` different pairs of topic words with the cosine similarity of their topics; half of them share a topic.

    The score is 1 for words of the same topic, 0 for words of different topics, and in between if one is a homonym.
    """
    topics = memberships(truth)
    related: list[tuple[str, str, float]] = []
    unrelated: list[tuple[str, str, float]] = []
    for a, b in combinations(topics, 2):
        shared = len(set(topics[a]) & set(topics[b]))
        score = shared / math.sqrt(len(topics[a]) * len(topics[b]))
        (related if shared else unrelated).append((a, b, round(score, 4)))
    if not 0 <= n <= 2 * len(related):
        raise FirthError(
            "invalid_value",
            "{option} must be between 0 and {maximum:,} pairs; got {got:,}.",
            option="n",
            maximum=2 * len(related),
            got=n,
        )
    return sample(random, related, n - n // 2) + sample(random, unrelated, n // 2)
