"""Servers in a thread of this process, and what they serve."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tiny import tiny_bert

import firth
from firth.data.world import World
from firth.server.running import prepared
from firth.server.settings import Settings


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[httpx.Client]:
    """A client of a server with these settings on a free port; `client.settings` are the settings."""
    told = Settings(**{"port": 0, **settings})
    server, listening, address = prepared(told)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    with httpx.Client(base_url=address, timeout=30) as client:
        client.settings = told  # type: ignore[attr-defined]
        try:
            yield client
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of small models: of words, counting, contextual."""
    folder = tmp_path_factory.mktemp("served")
    sentences = list(World(seed=5).sentences(800))
    made = {
        "words": firth.SkipGram(dim=16, epochs=1).fit(sentences),
        "counts": firth.TfIdf().fit(sentences),
        "bert": tiny_bert(),
    }
    for name, model in made.items():
        model.save(folder / name)
    return {name: folder / name for name in made}


@pytest.fixture(scope="session")
def client(places: dict[str, Path]) -> Iterator[httpx.Client]:
    """Of a server with all of them."""
    with serving(models=places) as found:
        yield found


@pytest.fixture
def api(client: httpx.Client) -> Callable[[], dict[str, str]]:
    """The header that the workbench's page sends."""
    return lambda: {"X-Firth-Token": client.settings.token}  # type: ignore[attr-defined]
