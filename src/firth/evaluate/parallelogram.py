"""One analogy in detail: the steps of king − man + woman, and the parallelogram of its words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Hits, Matrix, Vectors, similarity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Corner:
    """The projection of a word onto the plane of a, b and c, and its distance from that plane."""

    word: str
    x: float
    y: float
    off: float
    cosine: float  # to b − a + c


@dataclass(frozen=True)
class Parallelogram:
    """An analogy with its intermediate results.

    `steps` are b, b − a and b − a + c with the nearest keys of each; a, b and c are not excluded there.
    """

    steps: list[tuple[str, Hits]]
    answers: Hits  # without a, b and c
    inputs: list[Corner]  # a, b, c: in the plane, with true distances and angles
    target: Corner  # b − a + c, the fourth corner; in the plane too
    answer_corners: list[Corner]  # the answers, projected onto the plane


def parallelogram(
    vectors: Vectors, a: str, b: str, c: str, k: int = 5, *, restrict: int | None = None
) -> Parallelogram:
    """Answer "`a` is to `b` as `c` is to …?" by b − a + c of the unit vectors, as `Vectors.analogy` does.

    a, b, c and b − a + c lie in one plane and are drawn without distortion; the answers are projected onto it.
    """
    if len({a, b, c}) < 3:
        raise FirthError("duplicate_name", "An analogy needs three different words; got {a}, {b}, {c}.", a=a, b=b, c=c)
    answers = vectors.analogy(a, b, c, k, restrict=restrict)
    x, y, z = (row.astype(np.float64) for row in vectors.unit_of([a, b, c]))
    target = y - x + z
    stages = ((b, y), (f"{b} − {a}", y - x), (f"{b} − {a} + {c}", target))
    steps = [(name, vectors.neighbors(row.astype(np.float32), k + 3, restrict=restrict)) for name, row in stages]
    axes = plane(y - x, z - x)

    def corner(word: str, row: Array) -> Corner:
        projection = axes @ (row - x)
        off = float(np.linalg.norm(row - x - projection @ axes))
        return Corner(word, float(projection[0]), float(projection[1]), off, similarity(row, target))

    inputs = [corner(word, row) for word, row in zip((a, b, c), (x, y, z), strict=True)]
    rows: Matrix = vectors.unit_of([hit.key for hit in answers]) if answers else np.zeros((0, vectors.dim), np.float32)
    answer_corners = [corner(hit.key, row.astype(np.float64)) for hit, row in zip(answers, rows, strict=True)]
    return Parallelogram(steps, answers, inputs, corner(f"{b} − {a} + {c}", target), answer_corners)


def plane(first: Array, second: Array) -> Array:
    """Return an orthonormal basis (2, dim) of the plane of two vectors, by Gram-Schmidt."""
    axes = np.zeros((2, len(first)))
    for number, side in enumerate((first, second)):
        rest = side - side @ axes.T @ axes
        length = float(np.linalg.norm(rest))
        if length > 1e-9:  # parallel vectors span a line only
            axes[number] = rest / length
    return axes
