"""One analogy looked at: king − man + woman step by step, and the parallelogram that its words should make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Hits, Matrix, Vectors, similarity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Corner:
    """A word on the plane of a, b and c, and how far from that plane it lies."""

    word: str
    x: float
    y: float
    off: float
    cosine: float  # to b − a + c


@dataclass(frozen=True)
class Parallelogram:
    """`steps` are b, b − a and b − a + c with what is near to each; in the last the given words are not left out."""

    steps: list[tuple[str, Hits]]
    answers: Hits  # the given words left out
    given: list[Corner]  # a, b, c: on the plane, with their true lengths and angles
    target: Corner  # b − a + c, the fourth corner; on the plane too
    found: list[Corner]  # the answers, seen on that plane


def parallelogram(
    vectors: Vectors, a: str, b: str, c: str, k: int = 5, *, restrict: int | None = None
) -> Parallelogram:
    """`a` is to `b` as `c` is to …? by b − a + c of the unit vectors, as `Vectors.analogy` has it.

    a, b, c and b − a + c lie on one plane: the picture shows them as they are, and the answers by their shadows on it.
    """
    if len({a, b, c}) < 3:
        raise FirthError(
            "duplicate_name", "An analogy needs three different words; got {got}, {b}, {c}.", got=a, b=b, c=c
        )
    answers = vectors.analogy(a, b, c, k, restrict=restrict)
    x, y, z = (row.astype(np.float64) for row in vectors.unit_of([a, b, c]))
    target = y - x + z
    stages = ((b, y), (f"{b} − {a}", y - x), (f"{b} − {a} + {c}", target))
    steps = [(name, vectors.neighbors(row.astype(np.float32), k + 3, restrict=restrict)) for name, row in stages]
    axes = plane(y - x, z - x)

    def corner(word: str, row: Array) -> Corner:
        seen = axes @ (row - x)
        off = float(np.linalg.norm(row - x - seen @ axes))
        return Corner(word, float(seen[0]), float(seen[1]), off, similarity(row, target))

    given = [corner(word, row) for word, row in zip((a, b, c), (x, y, z), strict=True)]
    near: Matrix = vectors.unit_of([hit.key for hit in answers]) if answers else np.zeros((0, vectors.dim), np.float32)
    found = [corner(hit.key, row.astype(np.float64)) for hit, row in zip(answers, near, strict=True)]
    return Parallelogram(steps, answers, given, corner(f"{b} − {a} + {c}", target), found)


def plane(across: Array, up: Array) -> Array:
    """Two directions at a right angle, 2 × dim: the first along `across`, the second on the side of `up`."""
    axes = np.zeros((2, len(across)))
    for place, side in enumerate((across, up)):
        rest = side - side @ axes.T @ axes
        length = float(np.linalg.norm(rest))
        if length > 1e-9:  # words whose differences are parallel make a line
            axes[place] = rest / length
    return axes
