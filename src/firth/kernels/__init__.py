"""Arrays in, arrays out: native kernels and their readable NumPy twins."""

from __future__ import annotations

from firth.kernels._native import chosen_isa, instruction_sets

__all__ = ["chosen_isa", "instruction_sets"]
