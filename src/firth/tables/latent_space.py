"""The latent space of an autoencoder: a plane through the codes, and decoding of its points."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.components import principal_components
from firth.core.errors import FirthError
from firth.tables.autoencoder_model import AutoencoderModel, VAEModel
from firth.tables.column_codes import CategoryColumn, NumberColumn

Array = NDArray[np.float64]
MAX_LEVELS = 4  # categories of a column listed with their probabilities


class Plane(NamedTuple):
    """A plane in the latent space: the point (x, y) is the code `center + x · axes[0] + y · axes[1]`."""

    center: Array
    axes: Array  # 2 × dim, orthonormal; with dim 1 the second axis is 0
    points: Array  # rows × 2
    explained: float  # share of the codes' variance within the plane


class Cell(NamedTuple):
    """One column of a decoded row."""

    column: str
    value: float | str | None
    low: float | None = None  # range of a number in the training data
    high: float | None = None
    levels: tuple[tuple[str, float], ...] = ()  # most probable categories with their probabilities


def known_codes(model: AutoencoderModel, data: Any = None) -> Array:
    """Return the codes of `data`, or the codes that the model stores."""
    if data is not None:
        return np.asarray(model.transform(data), np.float64)
    if isinstance(model, VAEModel):
        return np.asarray(model.training_codes[0], np.float64)
    if model.points is not None:
        return np.asarray(model.points.matrix, np.float64)
    raise FirthError(
        "unsupported_model", "This autoencoder does not store the codes of its rows. Pass a table, or train a VAE."
    )


def code_plane(codes: Array) -> Plane:
    """Return the plane of the codes: the codes themselves up to dim 2, otherwise two principal components."""
    dim = codes.shape[1]
    if dim <= 2:
        axes = np.eye(2)[:, :dim]
        return Plane(np.zeros(dim), axes, codes @ axes.T, 1.0)
    components = principal_components(codes)
    total = float(components.variances.sum())
    axes = np.zeros((2, dim))  # the second axis stays 0 if all codes lie on one line
    axes[: len(components.directions[:2])] = components.directions[:2]
    explained = float(components.variances[:2].sum()) / total if total else 1.0
    return Plane(components.mean, axes, (codes - components.mean) @ axes.T, explained)


@torch.inference_mode()
def decoded_cells(model: AutoencoderModel, codes: Any) -> list[list[Cell]]:
    """Return the decoded rows cell by cell: expected numbers, and categories with their probabilities."""
    outputs = model.outputs(codes)
    layout = model.layout
    numbers = outputs[:, : len(layout.numbers)].numpy()
    limits = dict(zip((column.name for column in layout.numbers), layout.limits, strict=True))
    positions = {column.name: position for position, column in enumerate(layout.numbers)}
    probabilities_of = {
        column.name: torch.softmax(logits, dim=1).numpy()
        for column, logits in zip(layout.categories, model.logits(outputs), strict=True)
    }
    rows: list[list[Cell]] = [[] for _ in range(len(outputs))]
    for column in layout.columns:
        if isinstance(column, NumberColumn):
            values = column.values(numbers[:, [positions[column.name]]]).to_pylist()
            low, high, _ = limits[column.name]
            for row, value in zip(rows, values, strict=True):
                row.append(Cell(column.name, value, low, high))
        elif isinstance(column, CategoryColumn):
            for row, probabilities in zip(rows, probabilities_of[column.name], strict=True):
                best = np.argsort(-probabilities, kind="stable")[:MAX_LEVELS]
                levels = tuple((column.levels[position], float(probabilities[position])) for position in best)
                row.append(Cell(column.name, levels[0][0] if levels else None, levels=levels))
        else:
            for row in rows:
                row.append(Cell(column.name, None))
    return rows


def decoded_pictures(model: AutoencoderModel, codes: Any) -> Array:
    """Return decoded rows of pixels, scaled from the range of the training data to 0 to 1."""
    table = model.inverse(codes)
    low, high = min(limits.low for limits in model.layout.limits), max(limits.high for limits in model.layout.limits)
    pixels = np.stack([table.numbers(name) for name in table.names], axis=1)
    return np.asarray(np.clip((pixels - low) / ((high - low) or 1.0), 0, 1))


def picture_side(model: AutoencoderModel) -> int | None:
    """Return the side length if rows are square images, otherwise None.

    An image has at least 5 × 5 numeric columns, most of which share one minimum and many one maximum, as pixels do.
    """
    layout = model.layout
    side = math.isqrt(len(layout.columns))
    if side < 5 or side * side != len(layout.columns) or len(layout.numbers) != len(layout.columns):
        return None
    lows, highs = np.array([(limits.low, limits.high) for limits in layout.limits]).T
    pixels = np.mean(lows == lows.min()) >= 0.75 and np.mean(highs == highs.max()) >= 0.25
    return side if pixels or layout.shared_scale else None
