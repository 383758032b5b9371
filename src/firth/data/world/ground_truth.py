"""The ground truth of a synthetic corpus: its countries, and the words that belong together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

from firth.data.world.names import Namer, pick, sample
from firth.data.world.words import ADJECTIVES, HOMONYMS, THINGS, TOPICS, VERBS

ADJECTIVES_USED, VERBS_USED = 16, 16
THINGS_EACH = 6  # nouns per adjective or verb
ENGLISH_EACH, INVENTED_EACH = 10, 6  # words per topic, without homonyms


@dataclass(frozen=True)
class Country:
    """A country and the names that belong only to it."""

    country: str
    people: str  # the adjective of the country
    capital: str
    king: str
    queen: str
    forest: str
    mountain: str
    saint: str
    lake: str

    @cached_property
    def slots(self) -> dict[str, str]:
        """The names by field, to fill in sentence templates."""
        return asdict(self)


class Inflected(NamedTuple):
    """The forms of a word, and the nouns it is used with."""

    forms: tuple[str, ...]
    things: tuple[str, ...]


@dataclass(frozen=True)
class GroundTruth:
    """Everything that the texts of a synthetic corpus state."""

    countries: tuple[Country, ...]
    adjectives: tuple[Inflected, ...]  # forms: base, comparative, superlative
    verbs: tuple[Inflected, ...]  # forms: base, past, third person, -ing
    topics: dict[str, tuple[str, ...]]  # words that belong to a single topic
    persons: tuple[str, ...]  # names of people other than kings and queens


def make_ground_truth(seed: int, size: int) -> GroundTruth:
    """Make the countries, people, animals and other facts that the texts are about."""
    random = Random(f"world/{seed}/{size}")
    name = Namer(random)
    countries = []
    for _ in range(size):
        country = name()
        countries.append(Country(country, country + pick(random, ("ish", "ian", "ese")), *name.several(7)))
    return GroundTruth(
        countries=tuple(countries),
        adjectives=_inflected(random, ADJECTIVES, ADJECTIVES_USED),
        verbs=_inflected(random, VERBS, VERBS_USED),
        topics={
            topic: (*sample(random, words, ENGLISH_EACH), *name.several(INVENTED_EACH))
            for topic, words in TOPICS.items()
        },
        persons=name.several(2 * size),
    )


def _inflected(random: Random, table: tuple[tuple[str, ...], ...], count: int) -> tuple[Inflected, ...]:
    selected = sample(random, table, count)
    return tuple(Inflected(forms, tuple(sample(random, THINGS, THINGS_EACH))) for forms in selected)


def memberships(truth: GroundTruth) -> dict[str, tuple[str, ...]]:
    """Return the topics of each topic word: one, or two for a homonym."""
    topics: dict[str, tuple[str, ...]] = dict(HOMONYMS)
    topics.update((word, (topic,)) for topic, words in truth.topics.items() for word in words)
    return topics
