"""The command line's help and the public API change only on purpose."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("file", ["help.txt", "api.txt"])
def test_it_is_as_recorded(file):
    from golden.snapshot import SNAPSHOTS

    expected = (GOLDEN / file).read_text(encoding="utf-8").splitlines()
    found = SNAPSHOTS[file]().splitlines()
    changes = list(difflib.unified_diff(expected, found, "recorded", "now", lineterm="", n=1))
    assert not changes, "\n".join(["python tests/golden/snapshot.py records it anew:", *changes[:60]])
