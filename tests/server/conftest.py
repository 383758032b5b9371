"""What servers serve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from serving import serving
from tiny import tiny_bert

import firth
from firth.data.world import World


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
    with serving(models=places, queue_tokens=1 << 30) as found:
        yield found


@pytest.fixture
def api(client: httpx.Client) -> Callable[[], dict[str, str]]:
    """The header that the workbench's page sends."""
    return lambda: {"X-Firth-Token": client.settings.token}  # type: ignore[attr-defined]
