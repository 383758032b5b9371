"""Random names that are pronounceable, different from each other, and not English words."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TypeVar

Item = TypeVar("Item")

# No English word of two syllables begins with one of these, so no name is an English word.
OPENINGS = ("vr", "vl", "zh", "kv", "zl", "zv", "dv", "mr", "ml", "gv", "dz", "zr", "bz", "tl", "zm", "vz")
MIDDLES = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "nd", "rk", "lm", "st", "sh", "th")
VOWELS = ("a", "e", "i", "o", "u")
ENDINGS = ("n", "r", "l", "m", "s", "k", "th", "nd")


def pick(random: Random, items: tuple[Item, ...] | list[Item]) -> Item:
    """Return a random item; `random.choice` is several times slower."""
    return items[int(random.random() * len(items))]


def sample(random: Random, items: tuple[Item, ...] | list[Item], number: int) -> list[Item]:
    """Return the items at `number` different random positions, in random order."""
    positions: dict[int, None] = {}
    while len(positions) < number:  # rejection is fast here: few of many items are drawn, or all of a few
        positions[int(random.random() * len(items))] = None
    return [items[position] for position in positions]


class Namer:
    """Generates a new name at each call; names get longer when short ones are used up."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._used: set[str] = set()
        self._longer = 0  # syllables in addition to the requested ones

    def __call__(self, syllables: int = 2) -> str:
        """Return a new name of at least `syllables` syllables that ends in a consonant."""
        random = self._random
        for tries in count(1):
            parts = [pick(random, OPENINGS), pick(random, VOWELS)]
            for _ in range(syllables - 1 + self._longer):
                parts += [pick(random, MIDDLES), pick(random, VOWELS)]
            name = "".join([*parts, pick(random, ENDINGS)])
            if name not in self._used:
                break
            self._longer += tries % 4 == 0
        self._used.add(name)
        return name

    def several(self, number: int) -> tuple[str, ...]:
        """Return several new names."""
        return tuple(self() for _ in range(number))
