"""Walking in the space of a compressing model's codes: where rows lie on a plane of it, and what a point stands for."""

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
MAX_LEVELS = 4  # categories of a column that are told with their probabilities


class Plane(NamedTuple):
    """Two directions of the codes: a point (x, y) stands for `center + x · axes[0] + y · axes[1]`."""

    center: Array
    axes: Array  # 2 × dim, orthonormal; of codes of one number the second is 0
    points: Array  # rows × 2
    explained: float  # the share of the codes' variance that is seen


class Cell(NamedTuple):
    """One column of a decoded row."""

    column: str
    value: float | str | None
    low: float | None = None  # of a number: what the model met
    high: float | None = None
    levels: tuple[tuple[str, float], ...] = ()  # of a category: the likeliest, with their probabilities


def known_codes(model: AutoencoderModel, data: Any = None) -> Array:
    """The codes of rows: of `data`, or those that the model has kept."""
    if data is not None:
        return np.asarray(model.transform(data), np.float64)
    if isinstance(model, VAEModel):
        return np.asarray(model.known[0], np.float64)
    if model.points is not None:
        return np.asarray(model.points.matrix, np.float64)
    raise FirthError(
        "unsupported_model", "This autoencoder has not kept the codes of its rows: give it a table; a vae keeps some."
    )


def code_plane(codes: Array) -> Plane:
    """The codes themselves where they have two numbers, else their first two principal components."""
    dim = codes.shape[1]
    if dim <= 2:
        axes = np.eye(2)[:, :dim]
        return Plane(np.zeros(dim), axes, codes @ axes.T, 1.0)
    components = principal_components(codes)
    total = float(components.variances.sum())
    axes = np.zeros((2, dim))  # a single direction where all codes lie on one line
    axes[: len(components.directions[:2])] = components.directions[:2]
    explained = float(components.variances[:2].sum()) / total if total else 1.0
    return Plane(components.mean, axes, (codes - components.mean) @ axes.T, explained)


@torch.inference_mode()
def decoded_cells(model: AutoencoderModel, codes: Any) -> list[list[Cell]]:
    """The rows that codes stand for, cell by cell: numbers as expected, categories with how likely each is."""
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
    """Rows of pixels, from 0 to 1 between the least and the most that was met."""
    table = model.inverse(codes)
    low, high = min(limits.low for limits in model.layout.limits), max(limits.high for limits in model.layout.limits)
    pixels = np.stack([table.numbers(name) for name in table.names], axis=1)
    return np.asarray(np.clip((pixels - low) / ((high - low) or 1.0), 0, 1))


def picture_side(model: AutoencoderModel) -> int | None:
    """The side of the square picture that rows are, if they are one: 5 × 5 numbers or more, most of which begin at one
    value and many of which end at one, as pixels do."""
    layout = model.layout
    side = math.isqrt(len(layout.columns))
    if side < 5 or side * side != len(layout.columns) or len(layout.numbers) != len(layout.columns):
        return None
    lows, highs = np.array([(limits.low, limits.high) for limits in layout.limits]).T
    pixels = np.mean(lows == lows.min()) >= 0.75 and np.mean(highs == highs.max()) >= 0.25
    return side if pixels or layout.shared_scale else None
