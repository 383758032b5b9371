"""How a method is run."""

import os

import pytest

from firth import FirthError, Run
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
    with pytest.raises(FirthError, match="memory must be a size such as 500MB or 2GB; got"):
        Run(memory=text)


def test_cores() -> None:
    assert Run(threads=3).cores == 3
    assert Run().cores == available_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"seed": -1}, r"Run\.seed must be at least 0"),
        ({"seed": 2**63}, r"Run\.seed must be at most"),
        ({"seed": 10**400}, r"Run\.seed must be at most"),
        ({"threads": -1}, r"Run\.threads must be at least 0"),
        ({"device": "tpu"}, r"Run\.device must be one of auto, cpu, cuda; got 'tpu'"),
        ({"budget": float("nan")}, r"Run\.budget must be a finite number"),
        ({"checkpoint_every": -5}, r"Run\.checkpoint_every must be at least 0"),
    ],
)
def test_settings_outside_their_range(settings: dict[str, object], rule: str) -> None:
    with pytest.raises(FirthError, match=rule):
        Run(**settings)  # type: ignore[arg-type]


def test_two_runs_of_the_same_settings_are_equal_whatever_they_report_to() -> None:
    from firth.core.report import JsonLines, Silence

    assert Run(seed=3, report=Silence()) == Run(seed=3, report=JsonLines())
    assert Run(seed=3) != Run(seed=4)
