"""splitmix64 (Steele, Lea & Flood 2014): the hash behind all random decisions, as cpp/ computes it."""

from __future__ import annotations

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ / golden ratio: the step between consecutive states


def mix(x: int) -> int:
    """Return the finalizer of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)
