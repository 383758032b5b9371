"""The truncated singular value decomposition of a sparse matrix: A ≈ U_k Σ_k V_kᵀ, the best approximation of rank k
(Eckart & Young 1936).

Small matrices are decomposed exactly, by LAPACK. For large matrices, a random block and its products with powers of AAᵀ
span a small space that contains the first singular vectors (Halko, Martinsson & Tropp 2011). All powers are used, not
only the last (block Krylov: Musco & Musco 2015, algorithm 2), which needs far fewer products for the same error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.kernels.sparse import CSRMatrix
from firth.training.sparse_products import Multiplies, multipliers

MAX_EXACT_CELLS = 1 << 22  # larger matrices use the randomized solver
BLOCK = 32  # columns per product: fewer allow more powers in the same space, more make products efficient
MIN_BLOCK, STEPS = 8, 16  # smallest block, and the number of steps that fill a small space
CHUNK = 512  # columns per chunk of wide products, to bound memory
PROBES = 10  # random vectors for the error bound, which fails with probability 10^−PROBES
POWERS = 8  # of the residual, for the same bound: each tightens it
MIN_RELATIVE_VALUE = 2e-6  # singular values below this fraction of the first are float32 rounding errors

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class SVD:
    """A truncated SVD: `left` (rows × k) and `right` (columns × k) have orthonormal columns; Aᵀ left = right · values.

    `values` are in descending order. The entry of largest magnitude in each column of `left` is positive, which makes
    runs comparable.
    """

    left: Matrix
    values: Numbers
    right: Matrix
    norm: float  # Frobenius norm ‖A‖
    bound: float  # upper bound on the operator norm of A − A_k; it fails in one case of 10^PROBES

    @property
    def explained(self) -> Numbers:
        """The share of ‖A‖² that each singular value explains."""
        return self.values**2 / self.norm**2

    @property
    def error(self) -> float:
        """The Frobenius norm ‖A − A_k‖, which is exact because A_k is a projection of A."""
        return math.sqrt(max(0.0, self.norm**2 - float((self.values**2).sum())))


def truncated_svd(matrix: Any, k: int, run: Run = Run(), oversample: int | None = None) -> SVD:
    """Return the first `k` singular values and vectors of a scipy.sparse matrix, or fewer if its rank is lower.

    The randomized solver uses a space of k + `oversample` dimensions, by default `default_oversample(k)`.
    """
    matrix = as_rows(matrix)
    if k < 1:
        raise FirthError("too_few", "k must be at least 1; got {got}.", got=k)
    if not np.isfinite(matrix.data).all():
        raise FirthError(
            "non_finite", "The matrix contains NaN or infinity. Replace these entries before decomposing it."
        )
    norm = math.sqrt(float(np.square(matrix.data, dtype=np.float64).sum()))
    if norm == 0:
        shape = " × ".join(f"{size:,}" for size in matrix.shape)
        raise FirthError(
            "empty_data", "All entries of the {shape} matrix are zero, so there is nothing to decompose.", shape=shape
        )
    width = k + (default_oversample(k) if oversample is None else oversample)
    svd = (
        exact(matrix, k, norm)
        if math.prod(matrix.shape) <= MAX_EXACT_CELLS
        else randomized(matrix, k, width, norm, run)
    )
    if len(svd.values) < k:
        run.report.note(
            f"The matrix has rank {len(svd.values)}: only {len(svd.values)} of the {k} requested dimensions exist.",
            "low_rank",
        )
    return svd


def default_oversample(k: int) -> int:
    """Return the default oversampling: accurate last dimensions need a space about twice as large as k.

    With tf-idf, whose singular values decay slowly, the error is then within 0.5% of the best (pure noise: 1.6%); with
    a space of 1.13 k it is 3 to 12% above (pure noise: 3 to 20%).
    """
    return k + 128


def as_rows(matrix: Any) -> Any:
    """Return the matrix in compressed sparse rows of float32."""
    from scipy import sparse

    return sparse.csr_matrix(matrix, dtype=np.float32)


def exact(matrix: Any, k: int, norm: float) -> SVD:
    """Return the SVD by LAPACK."""
    left, values, right = np.linalg.svd(matrix.toarray().astype(np.float64), full_matrices=False)
    rank = min(k, int((values > MIN_RELATIVE_VALUE * values[0]).sum()))
    bound = float(values[rank]) if rank < len(values) else 0.0
    return signed(left[:, :rank], values[:rank], right[:rank].T, norm, bound)


def signed(left: NDArray[Any], values: Numbers, right: NDArray[Any], norm: float, bound: float) -> SVD:
    """Return the SVD with normalized signs; float32 arrays are changed in place."""
    left, right = (np.ascontiguousarray(table, dtype=np.float32) for table in (left, right))
    signs = np.where(left.max(axis=0) < -left.min(axis=0), np.float32(-1), np.float32(1))
    left *= signs
    right *= signs
    return SVD(left, values, right, norm, bound)


def randomized(matrix: Any, k: int, width: int, norm: float, run: Run) -> SVD:
    """Return the SVD by block Krylov iteration on the shorter side of the matrix."""
    with multipliers(rows_of(matrix), rows_of(matrix.T.tocsr()), run) as (rows, columns):
        return block_krylov(rows, columns, matrix.shape, k, width, norm, run)


def block_krylov(
    rows: Multiplies, columns: Multiplies, shape: tuple[int, int], k: int, width: int, norm: float, run: Run
) -> SVD:
    """Return the SVD of a matrix and its transpose that only multiply."""
    turned = shape[0] > shape[1]
    wide, tall = (columns, rows) if turned else (rows, columns)  # rows and columns, seen from the shorter side

    def square(block: Matrix) -> Matrix:  # AAᵀ × block, or AᵀA × block if A is transposed
        out = np.empty_like(block)
        for first in range(0, block.shape[1], CHUNK):
            part = np.ascontiguousarray(block[:, first : first + CHUNK])
            out[:, first : first + CHUNK] = wide.times(tall.times(part))
        return out

    size, rng = min(shape), np.random.default_rng(run.seed)
    basis, inside = krylov(square, size, min(width, size), rng, run)
    short = basis @ top(inside, k)[1].astype(np.float32)
    del basis
    # A second Rayleigh–Ritz step within the space: its columns are now sorted by size, so that rounding errors of the
    # large ones no longer affect the small ones. `eigh` reads the triangle with the entries of the smaller columns.
    squares, turn = top((short.T @ square(short)).astype(np.float64), k)
    short = short @ turn[:, squares > MIN_RELATIVE_VALUE**2 * squares[0]].astype(np.float32)
    left, values, right = tall_left(short, square, tall) if turned else short_left(short, tall)
    rank = int((values > MIN_RELATIVE_VALUE * values[0]).sum())
    left, values, right = left[:, :rank], values[:rank], right[:, :rank]
    probes = rng.standard_normal((shape[1], PROBES), dtype=np.float32)
    residual_norm = math.sqrt(max(0.0, norm**2 - float((values**2).sum())))
    return signed(left, values, right, norm, min(residual_norm, residual_bound(rows, columns, left, probes)))


def short_left(left: Matrix, tall: Multiplies) -> tuple[Matrix, Numbers, Matrix]:
    """Return the SVD if U is on the shorter side; AᵀU = VΣ gives V and Σ."""
    right = tall.times(left)
    values = np.sqrt(np.einsum("ij,ij->j", right, right, dtype=np.float64))
    if (np.diff(values) > 0).any():  # nearly equal values may be out of order; otherwise no copy is made
        order = np.argsort(-values, kind="stable")
        left, values, right = left[:, order], values[order], right[:, order]
    right /= np.where(values > 0, values, 1).astype(np.float32)
    return left, values, right


def tall_left(short: Matrix, square: Callable[[Matrix], Matrix], tall: Multiplies) -> tuple[Matrix, Numbers, Matrix]:
    """Return the SVD if U is on the longer side, with half a power more, so that AᵀU = VΣ holds here too.

    Let P be the columns of `short` and s the lengths of their images. Then W = AP/s is orthonormal and AᵀW = AᵀAP/s;
    the singular value decomposition VΣE of the latter gives U = WEᵀ.
    """
    product = square(short)
    squares = np.einsum("ij,ij->j", short, product, dtype=np.float64)
    lengths = np.sqrt(np.maximum(squares, MIN_RELATIVE_VALUE**2 * squares.max()))  # rounding can make zeros negative
    product /= lengths.astype(np.float32)
    squares, turn = top((product.T @ product).astype(np.float64), len(lengths))
    values = np.sqrt(np.maximum(squares, 0))
    right = product @ (turn / np.where(values > 0, values, 1)).astype(np.float32)
    return tall.times(short @ (turn / lengths[:, None]).astype(np.float32)), values, right


def residual_bound(rows: Multiplies, columns: Multiplies, left: Matrix, probes: Matrix) -> float:
    """Return an upper bound on the operator norm of E = A − UUᵀA, from random vectors ω.

    ‖B‖ <= 10 √(2/π) max ‖Bω‖ except in one case of 10^PROBES (Halko et al. 2011, eq. 4.3). With B = (EEᵀ)^q E, whose
    norm is ‖E‖^(2q + 1), the factor is replaced by its (2q + 1)-th root.
    """
    logarithm = math.log(10 * math.sqrt(2 / math.pi))
    for power in range(POWERS + 1):
        images = rows.times(probes)
        images -= left @ (left.T @ images)
        largest = float(np.linalg.norm(images, axis=0).max())
        if largest == 0:
            return 0.0
        logarithm += math.log(largest)
        if power < POWERS:
            probes = columns.times(images / largest)
    return math.exp(logarithm / (2 * POWERS + 1))


def rows_of(matrix: Any) -> CSRMatrix:
    """Return a scipy.sparse matrix as the `CSRMatrix` of the kernels."""
    return CSRMatrix(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data)


def krylov(
    square: Callable[[Matrix], Matrix], size: int, width: int, rng: np.random.Generator, run: Run
) -> tuple[Matrix, Numbers]:
    """Return an orthonormal basis Q (size × width) of a random block and its products with powers of M = AAᵀ, and the
    upper triangle of QᵀMQ."""
    basis = np.empty((size, width), dtype=np.float32, order="F")  # filled block by block
    inside = np.zeros((width, width))
    block, filled = np.empty((size, 0), dtype=np.float32), 0
    step = max(MIN_BLOCK, min(BLOCK, width // STEPS))
    run.report.begin("decomposing", width, "vectors")
    try:
        while filled < width:
            block = completed(block, basis[:, :filled], min(step, width - filled), rng)
            end = filled + block.shape[1]
            basis[:, filled:end] = block
            product = square(block)
            done = basis[:, :end]
            scale = float(np.linalg.norm(product, axis=0).max())
            parts = done.T @ product
            inside[:end, filled:end] = parts
            block, filled = orthonormal(product - done @ parts, done, scale), end
            run.report.step(filled)
    finally:
        run.report.end()
    return basis, inside


def completed(block: Matrix, done: Matrix, columns: int, rng: np.random.Generator) -> Matrix:
    """Return the block with exactly `columns` columns, cut or filled up with random ones.

    Products with M add no new direction once its rank is exhausted, or if a singular value has a higher multiplicity
    than the block has columns.
    """
    if block.shape[1] >= columns:
        return np.ascontiguousarray(block[:, :columns])
    random_columns = rng.standard_normal((len(block), columns - block.shape[1]), dtype=np.float32)
    others = np.hstack([done, block])
    random_columns -= others @ (others.T @ random_columns)
    fresh = orthonormal(random_columns, others, 1.0)
    return np.ascontiguousarray(np.hstack([block, fresh]))


def orthonormal(block: Matrix, done: Matrix, scale: float) -> Matrix:
    """Return orthonormal columns, largest first, that span the part of `block` orthogonal to `done`.

    Columns that are small relative to `scale` are rounding errors and left out. The eigenvectors of the block's Gram
    matrix are applied twice, because the first pass has an error of float32 precision times the block's condition
    number (Stathopoulos & Wu 2002).
    """
    min_value = 1e-5 * scale
    for _ in range(2):
        block = block - done @ (done.T @ block)
        gram = (block.T @ block).astype(np.float64)
        values, vectors = np.linalg.eigh(gram)
        columns = np.flatnonzero(values > min_value**2)[::-1]
        block = block @ (vectors[:, columns] / np.sqrt(values[columns])).astype(np.float32)
        min_value = 0.0
    return block


def top(symmetric: Numbers, k: int) -> tuple[Numbers, Numbers]:
    """Return the `k` largest eigenvalues in descending order and their eigenvectors.

    Only the upper triangle of `symmetric` is read, and the matrix is overwritten.
    """
    from scipy.linalg import eigh

    size = len(symmetric)
    last = (max(0, size - k), size - 1)
    values, vectors = eigh(symmetric, lower=False, overwrite_a=True, check_finite=False, subset_by_index=last)
    return values[::-1], vectors[:, ::-1]
