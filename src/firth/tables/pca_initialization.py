"""Where autoencoders begin: at PCA. The straight paths of a network are set to the rows' principal components, and the
hidden layers beside them say nothing yet: learning begins with what a plane rebuilds and need only find what is bent.

A VAE begins at probabilistic PCA (Tipping & Bishop 1999), which is the best that a linear VAE can do (Lucas et al.
2019): codes of deviation 1, and a variance around them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from firth.core.components import principal_components
from firth.nets.autoencoder import GAIN, Mirror, RowInput, TableNet
from firth.tables.network_inputs import Cells

Array = NDArray[np.float64]
MAX_MATRIX_CELLS = 1 << 22  # numbers of the matrix that is decomposed; of a larger table, rows are drawn
CATEGORY_LOGIT = 4.0  # the logit of a category that is rebuilt as 1, beside 0 for the others


class PrincipalSubspace(NamedTuple):
    """The rows' first components. Columns: numbers, then each category's levels."""

    mean: Array  # columns
    directions: Array  # dim × columns, orthonormal; those that the rows don't have are 0
    variances: Array  # dim
    residual_variance: Array  # columns: the variance that the plane does not hold


@torch.no_grad()
def initialize_from_pca(net: TableNet, cells: Cells, seed: int) -> None:
    """Sets the weights of a fresh network."""
    subspace = subspace_of(net, cells, seed)
    inward, outward = subspace.directions.T, subspace.directions
    if net.spread is not None and net.deviations is not None:
        min_deviation = net.shape.least_deviation
        noise = max(
            float(subspace.residual_variance.sum()) / max(1, len(subspace.residual_variance) - net.shape.dim),
            min_deviation**2,
        )
        variances = np.maximum(subspace.variances, noise)
        signal = np.sqrt(variances - noise)
        inward, outward = inward * (signal / variances), outward * signal[:, None]
        net.spread.bias.copy_(torch.from_numpy(np.log(noise / variances)))
        # Around what is rebuilt of a drawn code lies what the plane leaves, and within the plane the noise.
        output_variance = (subspace.residual_variance + noise * (subspace.directions**2).sum(axis=0))[
            : len(net.shape.varies)
        ]
        deviations = np.maximum(np.sqrt(output_variance), min_deviation)
        net.deviations.copy_(torch.from_numpy(np.log(deviations) / GAIN))
    set_encoder(net, subspace, inward)
    set_decoder(net, subspace, outward)


def subspace_of(net: TableNet, cells: Cells, seed: int) -> PrincipalSubspace:
    """All rows count, those held out too: what is learned is kept only where it rebuilds these better than PCA that has
    seen them."""
    shape = net.shape
    rows = np.arange(len(cells.ids))
    max_rows = max(2, MAX_MATRIX_CELLS // shape.outputs)
    if len(rows) > max_rows:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:max_rows])
    matrix = one_hot_matrix(cells.numbers[rows] * np.array(shape.varies), cells.ids[rows], shape.levels)
    components = principal_components(matrix)
    count = min(shape.dim, len(components.directions))
    directions, variances = np.zeros((shape.dim, matrix.shape[1])), np.zeros(shape.dim)
    directions[:count], variances[:count] = components.directions[:count], components.variances[:count]
    centred = matrix - components.mean
    residual_variance = (centred - centred @ directions.T @ directions).var(axis=0, ddof=1)
    return PrincipalSubspace(components.mean, directions, variances, residual_variance)


def one_hot_matrix(numbers: Array, ids: NDArray[np.int64], levels: tuple[int, ...]) -> Array:
    """Numbers and one-hot categories, the mean of the column where one is missing."""
    parts = [numbers]
    for column, count in enumerate(levels):
        ids_of_column = ids[:, column]
        parts.append(np.where(ids_of_column[:, None] < 0, np.nan, ids_of_column[:, None] == np.arange(count)))
    matrix = np.hstack(parts)
    missing = np.isnan(matrix)
    counts = np.maximum(1, (~missing).sum(axis=0))
    return np.where(missing, np.where(missing, 0.0, matrix).sum(axis=0) / counts, matrix)


def set_encoder(net: TableNet, subspace: PrincipalSubspace, inward: Array) -> None:
    """`inward`: columns × dim."""
    shape, encoder = net.shape, net.encoder
    count = len(shape.varies)
    blocks = [inward[:count]]
    shift = subspace.mean[:count] @ inward[:count]
    first = count
    for column, levels in enumerate(shape.levels):
        block, mean = inward[first : first + levels], subspace.mean[first : first + levels]
        first += levels
        if shape.embedding:
            blocks.append(embedded(net.input, column, block - mean @ block))
        else:
            blocks.append(block)
            shift = shift + mean @ block
    gaps = list(shape.gaps)
    blocks.append(inward[gaps] * subspace.mean[gaps, None])  # so that a missing number counts as the mean
    encoder.straight.weight.copy_(torch.from_numpy(np.vstack(blocks).T))
    encoder.straight.bias.copy_(torch.from_numpy(-shift))
    if encoder.last is not None:
        encoder.last.weight.zero_()


def embedded(input: RowInput, column: int, targets: Array) -> Array:
    """Sets a category's vectors so that a matrix (length × dim), which is returned, makes `wanted` (levels × dim) of
    them, exactly where they are long enough. Missing is 0: the mean."""
    embedding = input.embeddings[column]
    assert isinstance(embedding, nn.Embedding)
    vectors = embedding.weight
    size, levels = vectors.shape[1], len(targets)
    left_vectors, singular_values, right_vectors = np.linalg.svd(targets, full_matrices=False)
    rank = min(size, int((singular_values > 1e-6 * max(1e-6, singular_values.max(initial=0.0))).sum()))
    scale = math.sqrt(levels)
    vectors[:-1, :rank] = torch.from_numpy(left_vectors[:, :rank] * scale).to(vectors)
    vectors[-1, :rank] = 0.0
    projection = np.zeros((size, targets.shape[1]))
    projection[:rank] = singular_values[:rank, None] * right_vectors[:rank] / scale
    return projection


def set_decoder(net: TableNet, subspace: PrincipalSubspace, outward: Array) -> None:
    """`outward`: dim × columns. Tied, the matrix is the encoder's."""
    decoder = net.decoder
    if isinstance(decoder, Mirror):
        decoder.biases[-1].copy_(torch.from_numpy(subspace.mean))
        return
    output_scale = np.where(np.arange(len(subspace.mean)) < len(net.shape.varies), 1.0, CATEGORY_LOGIT)
    decoder.straight.weight.copy_(torch.from_numpy((outward * output_scale).T))
    decoder.straight.bias.copy_(torch.from_numpy(subspace.mean * output_scale))
    if decoder.last is not None:
        decoder.last.weight.zero_()
