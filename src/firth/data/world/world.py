"""`World`: a synthetic corpus generated from a seed."""

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
from firth.data.world.society import Friendships, SyntheticRatings, SyntheticTable
from firth.data.world.stream import Stream


@dataclass(frozen=True)
class World:
    """A synthetic corpus about `size` countries, with known ground truth. Each seed has its own names and facts.

    The result of a method depends only on the seed and its arguments. Methods with an argument `n` return a `Stream`,
    which is generated while it is read: the first `n` items of an infinite, reproducible sequence.

        world = World(seed=7)
        corpus = world.sentences(40_000)
        world.analogies()["capital-country"]
    """

    seed: int = 1
    size: int = 24  # countries

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise FirthError(
                "invalid_value",
                "{option} must be at least {minimum}; got {got}.",
                option="World.seed",
                minimum=0,
                got=self.seed,
            )
        if self.size < 2:
            raise FirthError(
                "invalid_value",
                "{option} must be at least {minimum} countries; got {got}.",
                option="World.size",
                minimum=2,
                got=self.size,
            )

    @cached_property
    def ground_truth(self) -> GroundTruth:
        """Everything that the texts state."""
        return make_ground_truth(self.seed, self.size)

    @property
    def countries(self) -> tuple[Country, ...]:
        """The countries with their capitals, kings, queens and other names."""
        return self.ground_truth.countries

    @cached_property
    def language(self) -> Language:
        """The constructed language of `translations`."""
        return make_language(self.seed)

    def sentences(self, n: int) -> Stream[str]:
        """Return sentences about everything, with about 9 words each, in lower case."""
        return Stream(self._key("sentences"), n, text.sentence(self.ground_truth))

    def analogies(self, most: int = 2000) -> dict[str, list[evaluation_sets.Analogy]]:
        """Return analogies (a, b, c, d), a : b = c : d, by section, with at most `most` per section."""
        return evaluation_sets.analogies(self.ground_truth, most)

    def similarities(self, n: int = 500) -> list[tuple[str, str, float]]:
        """Return pairs of words with the similarity of their topics (0 … 1)."""
        return evaluation_sets.similarities(self.ground_truth, Random(self._key("similarities")), n)

    def topics(self, n: int) -> Stream[LabeledText]:
        """Return documents of about 60 words, labeled with their topic."""
        return Stream(self._key("topics"), n, labeled.topic_document(self.ground_truth))

    def sentiment(self, n: int) -> Stream[LabeledText]:
        """Return reviews labeled positive or negative."""
        return Stream(self._key("sentiment"), n, labeled.review(self.ground_truth))

    def senses(self, n: int) -> Stream[Sense]:
        """Return sentences with a homonym, such as bank, and its sense."""
        return Stream(self._key("senses"), n, labeled.sense(self.ground_truth))

    def questions(self, n: int) -> Stream[Question]:
        """Return questions, each with a passage and the span of the answer."""
        return Stream(self._key("questions"), n, labeled.question(self.ground_truth))

    def translations(self, n: int) -> Stream[Translation]:
        """Return sentences in English and in the constructed language."""
        return Stream(self._key("translations"), n, partial(translation, self.language))

    def friendships(self, people: int = 300, communities: int = 5, friends: int = 6) -> Friendships:
        """Return a graph of `people` with known communities."""
        _at_least("communities", communities, 1)
        _at_least("friends", friends, 1)
        _at_least("people", people, communities)
        return society.friendships(self._random("friendships"), people, communities, friends)

    def ratings(self, users: int = 400, items: int = 200, each: int = 30) -> SyntheticRatings:
        """Return ratings of about `each` items per user, with the preferences behind them."""
        for name, value in (("users", users), ("items", items), ("each", each)):
            _at_least(name, value, 1)
        return society.ratings(self._random("ratings"), users, items, each)

    def rows(self, n: int) -> SyntheticTable:
        """Return a table of people with numbers, categories and missing values; `society.rows` lists its structure."""
        _at_least("n", n, 0)
        return society.rows(self._random("rows"), self.ground_truth, n)

    def _key(self, source: str) -> str:
        return f"{source}/{self.seed}/{self.size}"

    def _random(self, source: str) -> np.random.Generator:
        return np.random.default_rng(list(self._key(source).encode()))


def _at_least(name: str, value: int, low: int) -> None:
    if value < low:
        raise FirthError(
            "invalid_value", "{option} must be at least {minimum}; got {got}.", option=name, minimum=low, got=value
        )
