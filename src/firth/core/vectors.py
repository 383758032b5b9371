"""`Vectors`: keys and a float32 matrix, immutable, with the three questions people ask of them."""

from __future__ import annotations

import hashlib
import html
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.arguments import as_floats, check_choice, check_count
from firth.core.errors import FirthError

Matrix = NDArray[np.float32]

METRICS = ("cosine", "dot", "euclidean")
MOST_LETTERS = 60  # of a key that may be misspelt: the forms of a whole text would fill the memory
ROWS = 65536  # whose differences to a vector are held in memory at once


class Hit(NamedTuple):
    """One answer: cosine and dot are similarities, Euclidean is a distance."""

    key: str
    score: float


class Hits(list[Hit]):
    """Answers, best first."""

    def __repr__(self) -> str:
        width = max((len(hit.key) for hit in self), default=0)
        return "\n".join(f"{hit.key:<{width}}  {hit.score:.4f}" for hit in self)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(hit.key)}</td><td>{hit.score:.4f}</td></tr>" for hit in self)
        return f"<table><tr><th>key</th><th>score</th></tr>{rows}</table>"


class Vectors:
    """`vectors["river"]`, `"river" in vectors`, `len(vectors)`; row i of `matrix` belongs to `keys[i]`.

    Keys stand in the order of their source, most frequent first where counts are known:
    `restrict=30000` in a query means the first 30,000 of them. Immutable: threads can share it.
    """

    def __init__(
        self,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        matrix: ArrayLike,
        *,
        missing: str | Callable[[], str] = "",
        compose: Callable[[str], Matrix | None] | None = None,
    ) -> None:
        array = as_floats("Vectors.matrix", matrix)
        if array.ndim != 2:
            raise FirthError("shape_mismatch", "Vectors need a matrix of two dimensions; got {got}.", got=array.ndim)
        self.matrix: Matrix = array.view()
        self.matrix.flags.writeable = False
        self._keys = keys  # a function is called at the first use: a million words open at once
        self._rows: Mapping[str, int] | None = None
        self._unit: Matrix | None = None
        self._missing = missing  # why a key may be missing, and the way out
        self._compose = compose  # makes a vector for a key without a row, where it can (subwords)
        if not callable(keys):
            self._check_keys(keys)

    def _check_keys(self, keys: Sequence[str]) -> None:
        try:
            right = not isinstance(keys, str) and len(keys) >= 0 and all(isinstance(key, str) for key in keys)
        except TypeError:  # no sequence
            right = False
        if not right:
            raise FirthError("invalid_type", "Vectors.keys must be a list of strings, one for each row.")
        if len(keys) != len(self):
            raise FirthError(
                "shape_mismatch",
                "Vectors need one key a row; got {got:,} keys for {n_self:,} rows.",
                got=len(keys),
                n_self=len(self),
            )

    @property
    def keys(self) -> Sequence[str]:
        keys = self._keys  # once: another thread may put the list in its place
        if callable(keys):
            keys = keys()
            self._check_keys(keys)
            self._keys = keys
        return keys

    @property
    def rows(self) -> Mapping[str, int]:
        """Row of each key; of a key that stands twice, the first row."""
        if self._rows is None:
            rows = dict(zip(self.keys, range(len(self)), strict=True))
            if len(rows) < len(self):
                for row in range(len(self) - 1, -1, -1):
                    rows[self.keys[row]] = row
            self._rows = rows
        return self._rows

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def unit(self) -> Matrix:
        """Rows scaled to length 1 (zero rows stay zero), made at the first use."""
        if self._unit is None:
            lengths = row_lengths(self.matrix)
            self._refuse_odd(lengths)
            self._unit = divide_rows(self.matrix, lengths)
            self._unit.flags.writeable = False
        return self._unit

    def unit_of(self, keys: Sequence[str]) -> Matrix:
        """The rows of these keys, of length 1."""
        if all(key in self for key in keys):
            rows: Matrix = self.unit[[self.rows[key] for key in keys]]
            return rows
        return np.stack([self.unit[self.rows[key]] if key in self else unit_rows(self[key][None])[0] for key in keys])

    def _refuse_odd(self, figures: NDArray[Any]) -> None:
        """One figure a row: a mapped file is not read when it is opened, so NaN shows at the first question."""
        odd = np.flatnonzero(~np.isfinite(figures))
        if len(odd):
            raise FirthError(
                "non_finite",
                "The vector of {key!r} (row {row:,}) holds NaN, infinity or numbers too large to compare; leave "
                "such rows out.",
                key=self.keys[odd[0]],
                row=odd[0] + 1,
            )

    def fingerprint(self) -> str:
        """Tells whether two tables hold the same."""
        digest = hashlib.sha256("\n".join(self.keys).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.matrix).data)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.matrix)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self.rows

    def __getitem__(self, key: str) -> Matrix:
        made = self._compose(key) if self._compose and isinstance(key, str) and key not in self.rows else None
        row: Matrix = self.matrix[self.row(key)] if made is None else made
        return row

    def row(self, key: str) -> int:
        """The row of `key`, or an error that says what can be done."""
        if key not in self:
            why = self._why_missing(key)
            raise FirthError("unknown_key", "No vector for {key!r:.80}{why_missing}", key=key, why_missing=why)
        return self.rows[key]

    def _why_missing(self, key: str) -> str:
        missing = self._missing() if callable(self._missing) else self._missing
        close = " or ".join(map(repr, self.close_keys(key))) if isinstance(key, str) else ""
        if not isinstance(key, str) and str(key) in self:
            return f": keys are text, and there is one for {str(key)!r}."
        if close:
            return f"{f' ({missing})' if missing else ''}; there is one for {close}."
        return f" ({missing})." if missing else f"; there are {len(self):,} keys, such as {self._some()}."

    def close_keys(self, key: str, k: int = 3) -> list[str]:
        """Keys that may have been meant: in other case, or one letter away; the first in the table first."""
        forms = {key.lower(), key.capitalize(), key.upper(), key.strip().replace(" ", "_")}
        if 2 < len(key) <= MOST_LETTERS:  # a word of two letters is one letter away from too many
            cuts = [(key[:place], key[place:]) for place in range(len(key) + 1)]
            forms |= {a + b[1:] for a, b in cuts if b}
            forms |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
            letters = set(string.ascii_lowercase) | set(key)
            forms |= {a + letter + rest for a, b in cuts for letter in letters for rest in {b, b[1:]}}
        found = sorted((form for form in forms - {key} if form in self.rows), key=self.rows.__getitem__)
        return found[:k]

    def _some(self) -> str:
        return ", ".join(repr(key) for key in self.keys[:3]) or "none"

    def neighbors(
        self,
        positive: str | Sequence[str] | ArrayLike,
        k: int = 10,
        *,
        negative: str | Sequence[str] = (),
        metric: str = "cosine",
        restrict: int | None = None,
    ) -> Hits:
        """The `k` keys nearest to a key, to several keys together, or to a vector.

        Several keys are averaged as unit vectors, `negative` ones subtracted; the asked keys are left out.
        """
        check_choice("metric", metric, METRICS)
        plus, minus = key_list(positive), key_list(negative)
        if minus is None:
            raise FirthError(
                "invalid_type",
                "negative takes keys; got {got}. Subtract a vector from the query.",
                got=type(negative).__name__,
            )
        if plus is None:
            query = as_floats("The query", positive)
            if query.shape != (self.dim,) or not np.isfinite(query).all():
                raise FirthError(
                    "shape_mismatch",
                    "The query must be a finite vector of {dim} numbers; got shape {got}.",
                    dim=self.dim,
                    got=query.shape,
                )
            plus = []
        elif not plus and not minus:
            raise FirthError("too_few", "neighbors needs at least one key to start from.")
        else:
            query = self._mean_of(plus, minus, metric)
        asked = self._asked(plus + minus)
        scores = self._scores(query, metric, self._last(restrict))
        hits = self._best(scores, k, asked)
        return Hits(Hit(key, -score) for key, score in hits) if metric == "euclidean" else hits

    def _asked(self, keys: list[str]) -> list[int]:
        """The rows of keys, which answers leave out; a key that has a vector and no row is no answer anyway."""
        return [self.rows[key] for key in keys if key in self.rows]

    def _last(self, restrict: int | None) -> int:
        """How many rows, from the first on, a query looks at."""
        return len(self) if restrict is None else min(check_count("restrict", restrict), len(self))

    def _mean_of(self, plus: list[str], minus: list[str], metric: str) -> Matrix:
        if len(plus) == 1 and not minus:
            return self[plus[0]]  # one word is asked as it is, so that dot and Euclidean see its length
        keys = plus + minus
        rows = self.unit_of(keys) if metric == "cosine" else np.stack([self[key] for key in keys])
        rows[len(plus) :] *= -1
        mean: Matrix = rows.mean(axis=0, dtype=np.float32)
        return mean

    def _best(self, scores: Matrix, k: int, asked: Sequence[int]) -> Hits:
        """The `k` largest scores, the asked rows left out."""
        check_count("k", k)
        self._refuse_odd(scores)
        scores[[row for row in asked if row < len(scores)]] = -np.inf
        return Hits(Hit(self.keys[row], float(scores[row])) for row in top_rows(scores, k) if scores[row] > -np.inf)

    def _scores(self, query: Matrix, metric: str, last: int) -> Matrix:
        """Larger is nearer, for each metric; infinite or NaN where numbers are too large for float32."""
        with np.errstate(over="ignore", invalid="ignore"):
            if metric == "cosine":
                scores = self.unit[:last] @ unit_rows(query[None])[0]
            elif metric == "dot":
                scores = self.matrix[:last] @ query
            else:
                parts = (self.matrix[first : min(first + ROWS, last)] - query for first in range(0, last, ROWS))
                scores = -np.concatenate([np.zeros(0), *(np.linalg.norm(part, axis=1) for part in parts)])
            return np.asarray(scores, dtype=np.float32)

    def _cosines(self, unit: Matrix, last: int) -> Matrix:
        """With a vector of length 1."""
        cosines: Matrix = self.unit[:last] @ unit
        return cosines

    def analogy(self, a: str, b: str, c: str, k: int = 1, *, method: str = "add", restrict: int | None = None) -> Hits:
        """`a` is to `b` as `c` is to …? b − a + c ("add", Mikolov et al. 2013) or the product form
        ("mul", Levy & Goldberg 2014, eq. 4); the three given words are left out."""
        last = self._last(restrict)
        x, y, z = self.unit_of([a, b, c])
        cos_a, cos_b, cos_c = (self._cosines(unit, last) for unit in (x, y, z))
        if method == "add":
            length = float(np.linalg.norm(y - x + z))
            scores = (cos_b - cos_a + cos_c) / (length or 1.0)  # the cosine to b − a + c
        elif method == "mul":
            near = [(cosine + 1) / 2 for cosine in (cos_a, cos_b, cos_c)]
            scores = near[1] * near[2] / (near[0] + 1e-3)
        else:
            raise FirthError("invalid_value", "analogy method must be add or mul; got {got!r}.", got=method)
        return self._best(np.asarray(scores, dtype=np.float32), k, self._asked([a, b, c]))

    def similarity(self, a: str, b: str, metric: str = "cosine") -> float:
        """cos = a·b / (|a||b|); dot = a·b; euclidean = √Σ(aᵢ−bᵢ)²."""
        return similarity(self[a], self[b], metric)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} × {self.dim}: {self._some()}, …)"

    def _repr_html_(self) -> str:
        numbers = "".join(f"<th>{column}</th>" for column in range(min(self.dim, 6)))
        rows = "".join(
            f"<tr><td>{html.escape(key)}</td>{''.join(f'<td>{value:.3f}</td>' for value in self.matrix[row, :6])}</tr>"
            for row, key in enumerate(self.keys[:8])
        )
        return f"<p>{len(self):,} vectors of {self.dim}</p><table><tr><th></th>{numbers}</tr>{rows}</table>"


def similarity(a: ArrayLike, b: ArrayLike, metric: str = "cosine") -> float:
    """The textbook definitions; cosine with a zero vector is 0."""
    left, right = (as_floats("A vector", values, np.float64) for values in (a, b))
    check_choice("metric", metric, METRICS)
    if left.ndim != 1 or left.shape != right.shape or not np.isfinite([left, right]).all():
        raise FirthError(
            "shape_mismatch",
            "similarity needs two finite vectors of one length; got {got} and {shape}.",
            got=left.shape,
            shape=right.shape,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if metric == "dot":
            found = float(left @ right)
        elif metric == "euclidean":
            found = float(np.sqrt(np.sum((left - right) ** 2)))
        else:
            lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
            found = float(left @ right) / lengths if lengths else 0.0
    if not np.isfinite(found) or (metric == "cosine" and np.isinf(lengths)):
        raise FirthError("out_of_range", "The {metric} of these vectors is beyond float64.", metric=metric)
    return found


def odd_one_out(vectors: Vectors, keys: Sequence[str]) -> str:
    """The key whose vector is furthest in angle from the mean of all of them."""
    listed = key_list(keys)
    if listed is None:
        raise FirthError("invalid_type", "odd_one_out takes a list of keys; got {got}.", got=type(keys).__name__)
    if len(listed) < 3:
        raise FirthError("too_few", "odd_one_out needs at least 3 keys; got {got}.", got=len(listed))
    rows = vectors.unit_of(listed)
    return listed[int(np.argmin(rows @ rows.mean(axis=0)))]


def unit_rows(matrix: NDArray[Any]) -> Matrix:
    """Each row divided by its length; zero rows stay zero."""
    return divide_rows(matrix, row_lengths(matrix))


def row_lengths(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """√Σxᵢ² of each row, in doubles: a square can be larger or smaller than single precision holds."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return np.sqrt(squares)


def divide_rows(matrix: NDArray[Any], lengths: NDArray[np.float64]) -> Matrix:
    unit = np.empty(matrix.shape, dtype=np.float32)
    np.divide(matrix, np.where(lengths == 0, 1, lengths)[:, None], out=unit, casting="same_kind")
    return unit


def top_rows(scores: Matrix, k: int) -> NDArray[np.intp]:
    """Indices of the `k` largest scores, largest first; equal scores in the order of their rows."""
    if k < len(scores):
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= cut)  # more than k only where scores are equal
    else:
        rows = np.arange(len(scores))
    return rows[np.argsort(-scores[rows], kind="stable")][:k]


def key_list(keys: object) -> list[str] | None:
    """A key or several keys as a list; None when it is not keys but numbers."""
    if isinstance(keys, str):
        return [keys]
    if isinstance(keys, (list, tuple)) and all(isinstance(key, str) for key in keys):
        return list(keys)
    return None
