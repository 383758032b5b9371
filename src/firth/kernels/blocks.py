"""Weights in blocks of 32, in ggml's layouts: conversion to and from float32.

A block of Q8_0 is a scale d (float16) and 32 signed bytes q: x ≈ d · q. Q4_0 and Q4_1 have 16 bytes of two values each
(the low halves are the first 16 values, the high halves the other 16): x ≈ d · (q − 8), and with a minimum m (float16)
x ≈ d · q + m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
Bytes = NDArray[np.uint8]

WIDTH = 32  # values per block


@dataclass(frozen=True)
class Storage:
    """How the values of a row are stored: `width` values in `size` bytes."""

    name: str
    width: int
    size: int

    def row_bytes(self, columns: int) -> int:
        """The bytes of a row; `columns` must be a multiple of the width."""
        return columns // self.width * self.size


STORAGES = {
    storage.name: storage
    for storage in (
        Storage("F32", 1, 4),
        Storage("F16", 1, 2),
        Storage("BF16", 1, 2),
        Storage("Q8_0", WIDTH, 34),
        Storage("Q4_0", WIDTH, 18),
        Storage("Q4_1", WIDTH, 20),
    )
}


def dequantize(rows: Bytes, storage: str) -> FloatArray:
    """Return stored rows, one row of bytes each, as float32."""
    rows = np.ascontiguousarray(rows)
    if storage == "F32":
        return rows.view("<f4").astype(np.float32)
    if storage == "F16":
        return rows.view("<f2").astype(np.float32)
    if storage == "BF16":
        return (rows.view("<u2").astype(np.uint32) << 16).view(np.float32)
    blocks = rows.reshape(len(rows), -1, STORAGES[storage].size)
    scale = blocks[..., :2].copy().view("<f2").astype(np.float32)  # rows × blocks × 1
    if storage == "Q8_0":
        values = blocks[..., 2:].view(np.int8).astype(np.float32) * scale
    elif storage == "Q4_0":
        values = (unpacked(blocks[..., 2:]).astype(np.float32) - 8) * scale
    else:
        least = blocks[..., 2:4].copy().view("<f2").astype(np.float32)
        values = unpacked(blocks[..., 4:]).astype(np.float32) * scale + least
    return values.reshape(len(rows), -1)


def quantize(values: FloatArray, storage: str) -> Bytes:
    """Return rows of float32 in the given storage, rounded as ggml does; the inverse of `dequantize`."""
    values = np.ascontiguousarray(values, np.float32)
    if storage == "F32":
        return values.view(np.uint8)
    if storage == "F16":
        return values.astype("<f2").view(np.uint8)
    if storage == "BF16":
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").view(np.uint8)  # to nearest, ties to even
    blocks = values.reshape(len(values), -1, WIDTH)
    extremes = blocks.max(-1, keepdims=True), blocks.min(-1, keepdims=True)
    if storage == "Q4_1":
        scale, offset = (extremes[0] - extremes[1]) / np.float32(15), extremes[1]
    else:  # Q4_0 maps the value of largest size to −8, so that all 16 codes are used
        farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
        scale = np.abs(farthest) / np.float32(127) if storage == "Q8_0" else farthest / np.float32(-8)
        offset = np.float32(0)
    with np.errstate(divide="ignore"):
        inverse = np.where(scale == 0, np.float32(0), 1 / scale)
    scaled = (blocks - offset) * inverse
    parts = [scale.astype("<f2").view(np.uint8)]
    if storage == "Q8_0":
        codes = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8).view(np.uint8)
    else:
        codes = np.minimum(15, np.trunc(scaled + np.float32(8.5 if storage == "Q4_0" else 0.5))).astype(np.uint8)
        codes = codes[..., : WIDTH // 2] | codes[..., WIDTH // 2 :] << 4
    if storage == "Q4_1":
        parts.append(extremes[1].astype("<f2").view(np.uint8))
    return np.concatenate([*parts, codes], axis=-1).reshape(len(values), -1)


def unpacked(halves: Bytes) -> Bytes:
    """Return the two 4-bit values of each byte: all low ones, then all high ones."""
    return np.concatenate([halves & 15, halves >> 4], axis=-1)
