"""Native kernels that take and return arrays, each with a readable NumPy reference implementation (its twin)."""

from __future__ import annotations

from firth.kernels._native import chosen_isa, instruction_sets

__all__ = ["chosen_isa", "instruction_sets"]
