"""`Vectors`: keys and a float32 matrix, with queries for neighbors, analogies and similarity."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.arguments import as_floats, check_choice, check_count
from firth.core.errors import FirthError
from firth.core.keywords import checks_keywords
from firth.core.notebook import html_lines, html_table

Matrix = NDArray[np.float32]

METRICS = ("cosine", "dot", "euclidean")
MOST_LETTERS = 60  # of a key that is corrected: the variants of a long text would not fit into memory
#: What gensim's KeyedVectors calls it.
GENSIM = {
    "doesnt_match": "firth.odd_one_out(vectors, keys)",
    "fill_norms": "unit",
    "get_vector": "vectors[key]",
    "index_to_key": "keys",
    "key_to_index": "rows",
    "most_similar": "neighbors",
    "save_word2vec_format": "firth.write_vectors(vectors, path)",
    "similar_by_vector": "neighbors(vector)",
    "similar_by_word": "neighbors",
    "vector_size": "dim",
    "vectors": "matrix",
}
ROWS = 65536  # rows per block of a Euclidean query, which needs their differences in memory


class Hit(NamedTuple):
    """One result of a query. Cosine and dot product are similarities; Euclidean is a distance."""

    key: str
    score: float


class Hits(list[Hit]):
    """Results of a query, best first."""

    def __repr__(self) -> str:
        width = max((len(hit.key) for hit in self), default=0)
        return "\n".join(f"{hit.key:<{width}}  {hit.score:.4f}" for hit in self)

    def _repr_html_(self) -> str:
        return html_table(["key", "score"], [[hit.key, f"{hit.score:.4f}"] for hit in self], numbers=(1,))


class Vectors:
    """`vectors["river"]`, `"river" in vectors`, `len(vectors)`; row i of `matrix` belongs to `keys[i]`.

    Keys are in the order of their source, most frequent first if counts are known; `restrict=30000` limits a query to
    the first 30,000 of them. Instances are immutable and can be shared between threads.
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
            raise FirthError("shape_mismatch", "Vectors.matrix must have 2 dimensions; got {got}.", got=array.ndim)
        self.matrix: Matrix = array.view()
        self.matrix.flags.writeable = False
        self._keys = keys  # a function is called at first use, so that large models open quickly
        self._rows: Mapping[str, int] | None = None
        self._unit: Matrix | None = None
        self._missing = missing  # explains why a key may be missing, and what to do
        self._compose = compose  # builds a vector for a key without a row (from subwords)
        if not callable(keys):
            self._check_keys(keys)

    def _check_keys(self, keys: Sequence[str]) -> None:
        try:
            valid = not isinstance(keys, str) and len(keys) >= 0 and all(isinstance(key, str) for key in keys)
        except TypeError:  # not a sequence
            valid = False
        if not valid:
            raise FirthError("invalid_type", "Vectors.keys must be a list of strings, one per row.")
        if len(keys) != len(self):
            raise FirthError(
                "shape_mismatch",
                "Vectors need one key per row; got {got:,} keys for {rows:,} rows.",
                got=len(keys),
                rows=len(self),
            )

    @property
    def keys(self) -> Sequence[str]:
        """The key of each row."""
        keys = self._keys  # read once: another thread may replace it by the list
        if callable(keys):
            keys = keys()
            self._check_keys(keys)
            self._keys = keys
        return keys

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each key; the first one if a key occurs twice."""
        if self._rows is None:
            rows = dict(zip(self.keys, range(len(self)), strict=True))
            if len(rows) < len(self):
                for row in range(len(self) - 1, -1, -1):
                    rows[self.keys[row]] = row
            self._rows = rows
        return self._rows

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.matrix.shape[1])

    @property
    def unit(self) -> Matrix:
        """The rows scaled to length 1; zero rows stay zero. Computed at first use."""
        if self._unit is None:
            lengths = row_lengths(self.matrix)
            self._check_finite(lengths)
            self._unit = divide_rows(self.matrix, lengths)
            self._unit.flags.writeable = False
        return self._unit

    def unit_of(self, keys: Sequence[str]) -> Matrix:
        """The vectors of these keys, scaled to length 1."""
        if all(key in self for key in keys):
            rows: Matrix = self.unit[[self.rows[key] for key in keys]]
            return rows
        return np.stack([self.unit[self.rows[key]] if key in self else unit_rows(self[key][None])[0] for key in keys])

    def _check_finite(self, values: NDArray[Any]) -> None:
        """Refuse NaN and infinity in `values`, one per row: memory-mapped files are not read when they are opened."""
        rows = np.flatnonzero(~np.isfinite(values))
        if len(rows):
            raise FirthError(
                "non_finite",
                "The vector of {key!r} (row {row:,}) contains NaN, infinity or numbers too large to compare. Remove "
                "such rows.",
                key=self.keys[rows[0]],
                row=rows[0] + 1,
            )

    def fingerprint(self) -> str:
        """A hash of keys and matrix, equal for equal tables."""
        digest = hashlib.sha256("\n".join(self.keys).encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(self.matrix).data)
        return digest.hexdigest()

    def __getattr__(self, name: str) -> Any:
        if name in GENSIM:
            raise AttributeError(f"Vectors has no attribute {name!r}; use {GENSIM[name]}")
        return object.__getattribute__(self, name)  # raises the original error, also of a property

    def __len__(self) -> int:
        return len(self.matrix)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self.rows

    def __getitem__(self, key: str) -> Matrix:
        composed = self._compose(key) if self._compose and isinstance(key, str) and key not in self.rows else None
        vector: Matrix = self.matrix[self.row(key)] if composed is None else composed
        return vector

    def row(self, key: str) -> int:
        """The row of `key`. Raises an error that suggests similar keys if there is none."""
        if key not in self:
            reason = self._why_missing(key)
            raise FirthError("unknown_key", "No vector for {key!r:.80}{reason}", key=key, reason=reason)
        return self.rows[key]

    def _why_missing(self, key: str) -> str:
        missing = self._missing() if callable(self._missing) else self._missing
        close = " or ".join(map(repr, self.close_keys(key))) if isinstance(key, str) else ""
        if not isinstance(key, str) and str(key) in self:
            return f": keys are strings, and {str(key)!r} exists."
        if close:
            return f"{f' ({missing})' if missing else ''}. Did you mean {close}?"
        return f" ({missing})." if missing else f"; the {len(self):,} keys include {self._examples()}."

    def close_keys(self, key: str, k: int = 3) -> list[str]:
        """Keys that may have been meant: in another case, or one edit away, in the order of the table."""
        forms = {key.lower(), key.capitalize(), key.upper(), key.strip().replace(" ", "_")}
        if 2 < len(key) <= MOST_LETTERS:  # too many words are one edit away from a word of two letters
            cuts = [(key[:position], key[position:]) for position in range(len(key) + 1)]
            forms |= {a + b[1:] for a, b in cuts if b}
            forms |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
            letters = set(string.ascii_lowercase) | set(key)
            forms |= {a + letter + rest for a, b in cuts for letter in letters for rest in {b, b[1:]}}
        return sorted((form for form in forms - {key} if form in self.rows), key=self.rows.__getitem__)[:k]

    def _examples(self) -> str:
        return ", ".join(repr(key) for key in self.keys[:3]) or "none"

    @checks_keywords
    def neighbors(
        self,
        positive: str | Sequence[str] | ArrayLike,
        k: int = 10,
        *,
        negative: str | Sequence[str] = (),
        metric: str = "cosine",
        restrict: int | None = None,
    ) -> Hits:
        """Return the `k` nearest keys to a key, to several keys, or to a vector.

        Several keys are averaged as unit vectors and `negative` ones are subtracted. The query keys are excluded from
        the results. `restrict` limits the search to the first rows.
        """
        check_choice("metric", metric, METRICS)
        plus, minus = key_list(positive), key_list(negative)
        if minus is None:
            raise FirthError(
                "invalid_type",
                "negative must be keys; got {got}. Subtract a vector from the query instead.",
                got=type(negative).__name__,
            )
        if plus is None:
            query = as_floats("The query", positive)
            if query.shape != (self.dim,):
                raise FirthError(
                    "shape_mismatch",
                    "The query must be a vector with {dim} dimensions; got shape {got}.",
                    dim=self.dim,
                    got=query.shape,
                )
            check_finite_vector("The query", query)
            plus = []
        elif not plus and not minus:
            raise FirthError("too_few", "neighbors needs at least one key.")
        else:
            query = self._mean_of(plus, minus, metric)
        excluded = self._rows_of(plus + minus)
        scores = self._scores(query, metric, self._last(restrict))
        hits = self._best(scores, k, excluded)
        return Hits(Hit(key, -score) for key, score in hits) if metric == "euclidean" else hits

    def _rows_of(self, keys: list[str]) -> list[int]:
        """The rows of the query keys; a key whose vector is composed has none."""
        return [self.rows[key] for key in keys if key in self.rows]

    def _last(self, restrict: int | None) -> int:
        """The number of rows that a query searches."""
        return len(self) if restrict is None else min(check_count("restrict", restrict), len(self))

    def _mean_of(self, plus: list[str], minus: list[str], metric: str) -> Matrix:
        if len(plus) == 1 and not minus:
            return self[plus[0]]  # not scaled: dot product and Euclidean distance depend on its length
        keys = plus + minus
        rows = self.unit_of(keys) if metric == "cosine" else np.stack([self[key] for key in keys])
        rows[len(plus) :] *= -1
        mean: Matrix = rows.mean(axis=0, dtype=np.float32)
        return mean

    def _best(self, scores: Matrix, k: int, excluded: Sequence[int]) -> Hits:
        """The `k` largest scores, without the excluded rows."""
        check_count("k", k)
        self._check_finite(scores)
        scores[[row for row in excluded if row < len(scores)]] = -np.inf
        return Hits(Hit(self.keys[row], float(scores[row])) for row in top_rows(scores, k) if scores[row] > -np.inf)

    def _scores(self, query: Matrix, metric: str, last: int) -> Matrix:
        """One score per row, larger for nearer; infinite or NaN where numbers exceed float32."""
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
        """Cosines with a vector of length 1."""
        cosines: Matrix = self.unit[:last] @ unit
        return cosines

    @checks_keywords
    def analogy(self, a: str, b: str, c: str, k: int = 1, *, method: str = "add", restrict: int | None = None) -> Hits:
        """Return the `k` best answers to "`a` is to `b` as `c` is to ?".

        The method is "add", b − a + c (Mikolov et al. 2013), or "mul", the product form (Levy & Goldberg 2014, eq. 4).
        The three given keys are excluded.
        """
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
            raise FirthError("invalid_value", "method must be add or mul; got {got!r}.", got=method)
        return self._best(np.asarray(scores, dtype=np.float32), k, self._rows_of([a, b, c]))

    def similarity(self, a: str, b: str, metric: str = "cosine") -> float:
        """Similarity of two keys: cosine a·b / (|a||b|), dot product a·b, or Euclidean distance √Σ(aᵢ−bᵢ)²."""
        return similarity(self[a], self[b], metric)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} × {self.dim}: {self._examples()}, …)"

    def _repr_html_(self) -> str:
        header = ["key", *map(str, range(min(self.dim, 6)))]
        rows = [[key, *(f"{value:.3f}" for value in self.matrix[row, :6])] for row, key in enumerate(self.keys[:8])]
        title = html_lines(f"{len(self):,} vectors × {self.dim} dimensions")
        return title + html_table(header, rows, numbers=range(1, 7))


def check_finite_vector(name: str, vector: NDArray[Any]) -> None:
    """Refuse a vector with NaN or infinite numbers."""
    rows = np.flatnonzero(~np.isfinite(vector))
    if len(rows):
        raise FirthError(
            "non_finite",
            "{name} must be finite; got {got} in dimension {dimension}.",
            name=name,
            got=vector[rows[0]],
            dimension=int(rows[0]),
        )


def similarity(a: ArrayLike, b: ArrayLike, metric: str = "cosine") -> float:
    """Cosine, dot product or Euclidean distance of two vectors. The cosine with a zero vector is 0."""
    left, right = (as_floats("A vector", values, np.float64) for values in (a, b))
    check_choice("metric", metric, METRICS)
    if left.ndim != 1 or left.shape != right.shape:
        raise FirthError(
            "shape_mismatch",
            "similarity needs two vectors of the same length; got shapes {got} and {other}.",
            got=left.shape,
            other=right.shape,
        )
    for name, values in (("a", left), ("b", right)):
        check_finite_vector(name, values)
    with np.errstate(over="ignore", invalid="ignore"):
        if metric == "dot":
            value = float(left @ right)
        elif metric == "euclidean":
            value = float(np.sqrt(np.sum((left - right) ** 2)))
        else:
            lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
            value = float(left @ right) / lengths if lengths else 0.0
    if not np.isfinite(value) or (metric == "cosine" and np.isinf(lengths)):
        raise FirthError("out_of_range", "The {metric} of these vectors exceeds float64.", metric=metric)
    return value


def odd_one_out(vectors: Vectors, keys: Sequence[str]) -> str:
    """Return the key whose vector has the smallest cosine with the mean of all given keys."""
    listed = key_list(keys)
    if listed is None:
        raise FirthError("invalid_type", "odd_one_out needs a list of keys; got {got}.", got=type(keys).__name__)
    if len(listed) < 3:
        raise FirthError("too_few", "odd_one_out needs at least 3 keys; got {got}.", got=len(listed))
    rows = vectors.unit_of(listed)
    return listed[int(np.argmin(rows @ rows.mean(axis=0)))]


def unit_rows(matrix: NDArray[Any]) -> Matrix:
    """Rows scaled to length 1; zero rows stay zero."""
    return divide_rows(matrix, row_lengths(matrix))


def row_lengths(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """√Σxᵢ² of each row, in float64: squares may overflow or underflow float32."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return np.sqrt(squares)


def divide_rows(matrix: NDArray[Any], lengths: NDArray[np.float64]) -> Matrix:
    """Return rows divided by their lengths; rows of zeros stay zero."""
    unit = np.empty(matrix.shape, dtype=np.float32)
    np.divide(matrix, np.where(lengths == 0, 1, lengths)[:, None], out=unit, casting="same_kind")
    return unit


def top_rows(scores: Matrix, k: int) -> NDArray[np.intp]:
    """Rows of the `k` largest scores, largest first; ties in the order of the rows."""
    if k < len(scores):
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= cut)  # more than k only if there are ties
    else:
        rows = np.arange(len(scores))
    return rows[np.argsort(-scores[rows], kind="stable")][:k]


def key_list(keys: object) -> list[str] | None:
    """One or several keys as a list; None for anything else, such as a vector."""
    if isinstance(keys, str):
        return [keys]
    if isinstance(keys, (list, tuple)) and all(isinstance(key, str) for key in keys):
        return list(keys)
    return None
