"""`World`: all of it by seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from random import Random

import numpy as np

from firth.core.errors import FirthError
from firth.data.world import evaluation_sets, labeled, society, text
from firth.data.world.ground_truth import Country, GroundTruth, make_ground_truth
from firth.data.world.labeled import LabeledText, Question, Sense
from firth.data.world.language import Language, Translation, make_language, translation
from firth.data.world.society import Friendships, Rows, SyntheticRatings
from firth.data.world.stream import Stream


@dataclass(frozen=True)
class World:
    """An invented world of `size` countries. Another seed is another world: other names, other facts.

    Each method depends on the seed and its own arguments alone. What takes `n` is a `Stream`: made while it is read,
    the same each time, `n` first of the same endless sequence.

        world = World(seed=7)
        corpus = world.sentences(40_000)
        world.analogies()["capital-country"]
    """

    seed: int = 1
    size: int = 24  # countries

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise FirthError(
                "invalid_value", "{option} must be at least 0; got {got}.", option="World.seed", got=self.seed
            )
        if self.size < 2:
            raise FirthError(
                "invalid_value", "{option} must be at least 2 countries; got {got}.", option="World.size", got=self.size
            )

    @cached_property
    def ground_truth(self) -> GroundTruth:
        return make_ground_truth(self.seed, self.size)

    @property
    def countries(self) -> tuple[Country, ...]:
        """Each with its capital, king, queen and what else belongs to it."""
        return self.ground_truth.countries

    @cached_property
    def language(self) -> Language:
        """The made-up language of `translations`."""
        return make_language(self.seed)

    def sentences(self, n: int) -> Stream[str]:
        """Sentences about everything: about 9 words each, in lower case, separated by single spaces."""
        return Stream(self._key("sentences"), n, text.sentence(self.ground_truth))

    def analogies(self, most: int = 2000) -> dict[str, list[evaluation_sets.Analogy]]:
        """Questions (a, b, c, d), a : b = c : d, by section; at most `most` a section."""
        return evaluation_sets.analogies(self.ground_truth, most)

    def similarities(self, n: int = 500) -> list[tuple[str, str, float]]:
        """Pairs of words, and how much of their topics they share (0 … 1)."""
        return evaluation_sets.similarities(self.ground_truth, Random(self._key("similarities")), n)

    def topics(self, n: int) -> Stream[LabeledText]:
        """Documents of about 60 words labelled by their topic."""
        return Stream(self._key("topics"), n, labeled.topic_document(self.ground_truth))

    def sentiment(self, n: int) -> Stream[LabeledText]:
        """Reviews labelled positive or negative."""
        return Stream(self._key("sentiment"), n, labeled.review(self.ground_truth))

    def senses(self, n: int) -> Stream[Sense]:
        """Sentences with a word of two senses, such as bank, and the one that is meant."""
        return Stream(self._key("senses"), n, labeled.sense(self.ground_truth))

    def questions(self, n: int) -> Stream[Question]:
        """Questions, each with a passage and the answer's span in it."""
        return Stream(self._key("questions"), n, labeled.question(self.ground_truth))

    def translations(self, n: int) -> Stream[Translation]:
        """Sentences in English and in the world's own language."""
        return Stream(self._key("translations"), n, partial(translation, self.language))

    def friendships(self, people: int = 300, communities: int = 5, friends: int = 6) -> Friendships:
        """A graph of `people` with known communities."""
        _at_least("communities", communities, 1)
        _at_least("friends", friends, 1)
        _at_least("people", people, communities)
        return society.friendships(self._random("friendships"), people, communities, friends)

    def ratings(self, users: int = 400, items: int = 200, each: int = 30) -> SyntheticRatings:
        """Ratings of about `each` items a user, with the tastes behind them."""
        for name, value in (("users", users), ("items", items), ("each", each)):
            _at_least(name, value, 1)
        return society.ratings(self._random("ratings"), users, items, each)

    def rows(self, n: int) -> Rows:
        """A table of people: numbers, categories and missing values, with the dependencies `society.rows` lists."""
        _at_least("n", n, 0)
        return society.rows(self._random("rows"), self.ground_truth, n)

    def _key(self, source: str) -> str:
        return f"{source}/{self.seed}/{self.size}"

    def _random(self, source: str) -> np.random.Generator:
        return np.random.default_rng(list(self._key(source).encode()))


def _at_least(name: str, value: int, low: int) -> None:
    if value < low:
        raise FirthError("invalid_value", "{name} must be at least {low}; got {got}.", name=name, low=low, got=value)
