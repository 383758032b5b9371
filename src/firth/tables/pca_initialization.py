"""Initialization of autoencoders from PCA.

The linear skip connections of the network are set to the principal components of the rows, and the hidden layers beside
them output 0, so that training only has to find the nonlinear part.

A VAE is initialized from probabilistic PCA (Tipping & Bishop 1999), the optimum of a linear VAE (Lucas et al. 2019):
codes with a standard deviation of 1, and a noise variance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from firth.core.components import principal_components
from firth.nets.autoencoder import GAIN, RowInput, TableNet, TiedDecoder
from firth.tables.network_inputs import Cells

Array = NDArray[np.float64]
MAX_MATRIX_CELLS = 1 << 22  # of the decomposed matrix; rows of larger tables are sampled
CATEGORY_LOGIT = 4.0  # logit of a category whose one-hot value is reconstructed as 1


class PrincipalSubspace(NamedTuple):
    """The first principal components of the rows. Columns: numbers, then the one-hot categories."""

    mean: Array  # columns
    directions: Array  # dim × columns, orthonormal; 0 beyond the rank
    variances: Array  # dim
    residual_variance: Array  # columns: variance outside the subspace


@torch.no_grad()
def initialize_from_pca(net: TableNet, cells: Cells, seed: int) -> None:
    """Set the weights of a new network."""
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
        # The output variance at a sampled code: the residual, and the noise within the subspace.
        output_variance = (subspace.residual_variance + noise * (subspace.directions**2).sum(axis=0))[
            : len(net.shape.varies)
        ]
        deviations = np.maximum(np.sqrt(output_variance), min_deviation)
        net.deviations.copy_(torch.from_numpy(np.log(deviations) / GAIN))
    set_encoder(net, subspace, inward)
    set_decoder(net, subspace, outward)


def subspace_of(net: TableNet, cells: Cells, seed: int) -> PrincipalSubspace:
    """Return the principal subspace of all rows, including held-out ones.

    So trained weights are selected only if they reconstruct held-out rows better than a PCA fitted on them.
    """
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
    """Return numbers and one-hot categories side by side; missing cells are the column mean."""
    parts = [numbers]
    for column, count in enumerate(levels):
        ids_of_column = ids[:, column]
        parts.append(np.where(ids_of_column[:, None] < 0, np.nan, ids_of_column[:, None] == np.arange(count)))
    matrix = np.hstack(parts)
    missing = np.isnan(matrix)
    counts = np.maximum(1, (~missing).sum(axis=0))
    return np.where(missing, np.where(missing, 0.0, matrix).sum(axis=0) / counts, matrix)


def set_encoder(net: TableNet, subspace: PrincipalSubspace, inward: Array) -> None:
    """Set the encoder's linear path to the matrix `inward` (columns × dim) of centered rows."""
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
    blocks.append(inward[gaps] * subspace.mean[gaps, None])  # makes a missing number count as the mean
    encoder.straight.weight.copy_(torch.from_numpy(np.vstack(blocks).T))
    encoder.straight.bias.copy_(torch.from_numpy(-shift))
    if encoder.last is not None:
        encoder.last.weight.zero_()


def embedded(input: RowInput, column: int, targets: Array) -> Array:
    """Set the embeddings of a column, and return the matrix (size × dim) that maps them to `targets` (levels × dim).

    The map is exact if the embeddings are long enough for the rank of `targets`. The embedding of missing is 0, which
    stands for the mean.
    """
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
    """Set the decoder's linear path to the matrix `outward` (dim × columns); a tied decoder has only its bias."""
    decoder = net.decoder
    if isinstance(decoder, TiedDecoder):
        decoder.biases[-1].copy_(torch.from_numpy(subspace.mean))
        return
    output_scale = np.where(np.arange(len(subspace.mean)) < len(net.shape.varies), 1.0, CATEGORY_LOGIT)
    decoder.straight.weight.copy_(torch.from_numpy((outward * output_scale).T))
    decoder.straight.bias.copy_(torch.from_numpy(subspace.mean * output_scale))
    if decoder.last is not None:
        decoder.last.weight.zero_()
