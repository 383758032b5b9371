"""What is true in a world: its countries, and which words go together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

from firth.data.world.names import Namer, pick, sample
from firth.data.world.words import ADJECTIVES, HOMONYMS, THINGS, TOPICS, VERBS

ADJECTIVES_USED, VERBS_USED = 16, 16
THINGS_EACH = 6  # things that one adjective describes or one verb acts on
ENGLISH_EACH, INVENTED_EACH = 10, 6  # words of a topic, homonyms aside


@dataclass(frozen=True)
class Country:
    """A country and what belongs to it and to no other."""

    country: str
    people: str  # the adjective: of this country
    capital: str
    king: str
    queen: str
    forest: str
    mountain: str
    saint: str
    lake: str

    @cached_property
    def slots(self) -> dict[str, str]:
        return asdict(self)


class Inflected(NamedTuple):
    """A word's forms, and the things it is said of."""

    forms: tuple[str, ...]
    things: tuple[str, ...]


@dataclass(frozen=True)
class GroundTruth:
    """All truths that the texts of a world state."""

    countries: tuple[Country, ...]
    adjectives: tuple[Inflected, ...]  # forms: base, comparative, superlative
    verbs: tuple[Inflected, ...]  # forms: base, past, third person, -ing
    topics: dict[str, tuple[str, ...]]  # words of one topic only
    persons: tuple[str, ...]  # names of commoners


def make_ground_truth(seed: int, size: int) -> GroundTruth:
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
    """The topics of each topic word: one, or two for a word of two senses."""
    topics: dict[str, tuple[str, ...]] = dict(HOMONYMS)
    topics.update((word, (topic,)) for topic, words in truth.topics.items() for word in words)
    return topics
