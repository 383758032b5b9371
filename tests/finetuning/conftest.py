from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a cache of its own."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
