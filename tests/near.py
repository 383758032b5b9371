"""`pytest.approx` for comparisons in which only a part is approximate."""

from __future__ import annotations

from typing import Any

import pytest


def near(value: Any, **tolerance: Any) -> Any:
    """`pytest.approx(value)`, for type checkers a number: inside tuples and lists its class differs from a float's."""
    return pytest.approx(value, **tolerance)
