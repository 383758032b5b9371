"""Native kernels that take and return arrays, each with a readable NumPy reference implementation (its twin)."""

from __future__ import annotations

from firth.kernels._native import active_isa, instruction_sets

__all__ = ["active_isa", "instruction_sets"]
