"""Invented names: pronounceable, all different, and none of them an English word."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TypeVar

Item = TypeVar("Item")

# No English word of two syllables begins with one of these, so no name can be one.
OPENINGS = ("vr", "vl", "zh", "kv", "zl", "zv", "dv", "mr", "ml", "gv", "dz", "zr", "bz", "tl", "zm", "vz")
MIDDLES = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "nd", "rk", "lm", "st", "sh", "th")
VOWELS = ("a", "e", "i", "o", "u")
ENDINGS = ("n", "r", "l", "m", "s", "k", "th", "nd")


def pick(random: Random, items: tuple[Item, ...] | list[Item]) -> Item:
    """One of `items`; `random.choice` is several times slower."""
    return items[int(random.random() * len(items))]


def sample(random: Random, items: tuple[Item, ...] | list[Item], number: int) -> list[Item]:
    """`number` different places of `items`, in random order."""
    positions: dict[int, None] = {}
    while len(positions) < number:  # drawing again is quick: few of many are asked for, or all of a handful
        positions[int(random.random() * len(items))] = None
    return [items[position] for position in positions]


class Namer:
    """Gives a new name at each call, longer ones as the short ones are used up."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._used: set[str] = set()
        self._longer = 0  # syllables more than asked for

    def __call__(self, syllables: int = 2) -> str:
        """A name of at least `syllables` syllables that was not given before; it ends in a consonant."""
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
        return tuple(self() for _ in range(number))
