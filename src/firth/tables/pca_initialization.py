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
from firth.nets.autoencoder import GAIN, RowInput, TableNet, TiedDecoder
from firth.tables.network_inputs import Cells

Array = NDArray[np.float64]
PLACES = 1 << 22  # numbers of the matrix that is decomposed; of a larger table, rows are drawn
SHARP = 4.0  # the logit of a category that is rebuilt as 1, beside 0 for the others


class Plane(NamedTuple):
    """The rows' first components. Columns: numbers, then each category's levels."""

    mean: Array  # columns
    directions: Array  # dim × columns, orthonormal; those that the rows don't have are 0
    variances: Array  # dim
    left: Array  # columns: the variance that the plane does not hold


@torch.no_grad()
def begin_at_pca(net: TableNet, cells: Cells, seed: int) -> None:
    """Sets the weights of a fresh network."""
    plane = plane_of(net, cells, seed)
    inward, outward = plane.directions.T, plane.directions
    if net.spread is not None and net.deviations is not None:
        least = net.shape.least_deviation
        noise = max(float(plane.left.sum()) / max(1, len(plane.left) - net.shape.dim), least**2)
        variances = np.maximum(plane.variances, noise)
        signal = np.sqrt(variances - noise)
        inward, outward = inward * (signal / variances), outward * signal[:, None]
        net.spread.bias.copy_(torch.from_numpy(np.log(noise / variances)))
        # Around what is rebuilt of a drawn code lies what the plane leaves, and within the plane the noise.
        around = (plane.left + noise * (plane.directions**2).sum(axis=0))[: len(net.shape.varies)]
        deviations = np.maximum(np.sqrt(around), least)
        net.deviations.copy_(torch.from_numpy(np.log(deviations) / GAIN))
    set_encoder(net, plane, inward)
    set_decoder(net, plane, outward)


def plane_of(net: TableNet, cells: Cells, seed: int) -> Plane:
    """All rows count, those held out too: what is learned is kept only where it rebuilds these better than PCA that has
    seen them."""
    shape = net.shape
    rows = np.arange(len(cells.ids))
    most = max(2, PLACES // shape.outputs)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:most])
    matrix = spread_out(cells.numbers[rows] * np.array(shape.varies), cells.ids[rows], shape.levels)
    found = principal_components(matrix)
    kept = min(shape.dim, len(found.directions))
    directions, variances = np.zeros((shape.dim, matrix.shape[1])), np.zeros(shape.dim)
    directions[:kept], variances[:kept] = found.directions[:kept], found.variances[:kept]
    centred = matrix - found.mean
    left = (centred - centred @ directions.T @ directions).var(axis=0, ddof=1)
    return Plane(found.mean, directions, variances, left)


def spread_out(numbers: Array, ids: NDArray[np.int64], levels: tuple[int, ...]) -> Array:
    """Numbers and one-hot categories, the mean of the column where one is missing."""
    parts = [numbers]
    for column, count in enumerate(levels):
        here = ids[:, column]
        parts.append(np.where(here[:, None] < 0, np.nan, here[:, None] == np.arange(count)))
    matrix = np.hstack(parts)
    missing = np.isnan(matrix)
    known = np.maximum(1, (~missing).sum(axis=0))
    return np.where(missing, np.where(missing, 0.0, matrix).sum(axis=0) / known, matrix)


def set_encoder(net: TableNet, plane: Plane, inward: Array) -> None:
    """`inward`: columns × dim."""
    shape, encoder = net.shape, net.encoder
    count = len(shape.varies)
    parts = [inward[:count]]
    shift = plane.mean[:count] @ inward[:count]
    first = count
    for column, levels in enumerate(shape.levels):
        part, mean = inward[first : first + levels], plane.mean[first : first + levels]
        first += levels
        if shape.embedding:
            parts.append(embedded(net.input, column, part - mean @ part))
        else:
            parts.append(part)
            shift = shift + mean @ part
    gaps = list(shape.gaps)
    parts.append(inward[gaps] * plane.mean[gaps, None])  # so that a missing number counts as the mean
    encoder.straight.weight.copy_(torch.from_numpy(np.vstack(parts).T))
    encoder.straight.bias.copy_(torch.from_numpy(-shift))
    if encoder.last is not None:
        encoder.last.weight.zero_()


def embedded(input: RowInput, column: int, wanted: Array) -> Array:
    """Sets a category's vectors so that a matrix (length × dim), which is returned, makes `wanted` (levels × dim) of
    them, exactly where they are long enough. Missing is 0: the mean."""
    embedding = input.embeddings[column]
    assert isinstance(embedding, nn.Embedding)
    vectors = embedding.weight
    size, levels = vectors.shape[1], len(wanted)
    left, lengths, right = np.linalg.svd(wanted, full_matrices=False)
    kept = min(size, int((lengths > 1e-6 * max(1e-6, lengths.max(initial=0.0))).sum()))
    scale = math.sqrt(levels)
    vectors[:-1, :kept] = torch.from_numpy(left[:, :kept] * scale).to(vectors)
    vectors[-1, :kept] = 0.0
    found = np.zeros((size, wanted.shape[1]))
    found[:kept] = lengths[:kept, None] * right[:kept] / scale
    return found


def set_decoder(net: TableNet, plane: Plane, outward: Array) -> None:
    """`outward`: dim × columns. Tied, the matrix is the encoder's."""
    decoder = net.decoder
    if isinstance(decoder, TiedDecoder):
        decoder.biases[-1].copy_(torch.from_numpy(plane.mean))
        return
    sharp = np.where(np.arange(len(plane.mean)) < len(net.shape.varies), 1.0, SHARP)
    decoder.straight.weight.copy_(torch.from_numpy((outward * sharp).T))
    decoder.straight.bias.copy_(torch.from_numpy(plane.mean * sharp))
    if decoder.last is not None:
        decoder.last.weight.zero_()
