"""How a method is run."""

import os
from typing import Any

import pytest
from refusing import refuses

from firth import Run
from firth.core.run import available_cores, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 0),
        ("1", 1),
        ("500MB", 500_000_000),
        ("2GB", 2_000_000_000),
        ("2 GB", 2_000_000_000),
        (" 1.5gb ", 1_500_000_000),
        ("4KiB", 4096),
        ("1GiB", 2**30),
        ("3 mib", 3 * 2**20),
        ("100b", 100),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size
    assert Run(memory=text).memory_bytes == size


@pytest.mark.parametrize("text", ["0", "-1GB", "GB", "2XB", "inf", "nan", " ", "1e999", "two", "0.1B", "2GBB", "1 2"])
def test_sizes_that_are_none(text: str) -> None:
    with refuses("invalid_value", option="memory"):
        Run(memory=text)


def test_cores() -> None:
    assert Run(threads=3).cores == 3
    assert Run().cores == available_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"seed": -1}, ("invalid_value", {"method": "Run", "name": "seed", "got": -1})),
        ({"seed": 2**63}, ("invalid_value", {"method": "Run", "name": "seed", "got": 9223372036854775808})),
        ({"seed": 10**400}, ("invalid_value", {"method": "Run", "name": "seed"})),
        ({"threads": -1}, ("invalid_value", {"method": "Run", "name": "threads", "got": -1})),
        ({"device": "tpu"}, ("invalid_value", {"method": "Run", "name": "device", "got": "tpu"})),
        ({"budget": float("nan")}, ("invalid_value", {"method": "Run", "name": "budget"})),
        ({"checkpoint_every": -5}, ("invalid_value", {"method": "Run", "name": "checkpoint_every", "got": -5})),
    ],
)
def test_settings_outside_their_range(settings: dict[str, object], rule: tuple[str, dict[str, Any]]) -> None:
    with refuses(rule[0], **rule[1]):
        Run(**settings)  # type: ignore[arg-type]


def test_two_runs_of_the_same_settings_are_equal_whatever_they_report_to() -> None:
    from firth.core.report import JsonLines, Silence

    assert Run(seed=3, report=Silence()) == Run(seed=3, report=JsonLines())
    assert Run(seed=3) != Run(seed=4)
