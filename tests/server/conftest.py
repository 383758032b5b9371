"""What the servers of these tests serve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serving import Client, serving
from tiny import tiny_bert, tiny_gpt

import firth
from firth.data.world import World


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of small models: word vectors, counts, contextual, fine-tuned, static, table."""
    folder = tmp_path_factory.mktemp("served")
    world = World(seed=21)
    sentences = list(world.sentences(800))
    base = tiny_bert()
    rows = [{"text": example.text, "label": example.label} for example in world.sentiment(60)]
    made = {
        "words": firth.SkipGram(dim=16, epochs=1).fit(sentences),
        "counts": firth.TfIdf().fit(sentences),
        "bert": base,
        "gpt": tiny_gpt(places=32),
        "tuned": firth.TextClassifier(epochs=1, dropout=0.0).fit(firth.Examples(rows), firth.Run(), base),
        "static": firth.Distil(dim=8).fit(start=base),
        "table": firth.PCA(dim=2).fit([[1.0, 2.0, 3.0], [2.0, 1.0, 0.0], [0.0, 1.0, 5.0]]),
    }
    for name, model in made.items():
        model.save(folder / name)
    return {name: folder / name for name in made}


@pytest.fixture(scope="session")
def indexed(places: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of sentences with the word vector model."""
    folder = tmp_path_factory.mktemp("index") / "texts"
    model = firth.load(places["words"], firth.SkipGram)
    sentences = list(World(seed=21).sentences(200))
    keys = [f"d{number}" for number in range(len(sentences))]
    with firth.Index.create(folder, dim=16, model=model, model_path=str(places["words"])) as index:
        years = [2000 + number % 20 for number in range(len(sentences))]
        index.add(keys, model.embed(sentences), {"text": sentences, "year": years})
    return folder


@pytest.fixture(scope="session")
def client(places: dict[str, Path], indexed: Path) -> Iterator[Client]:
    """A client of a server with all models."""
    with serving(models=places, indexes={"texts": indexed}) as found:
        yield found


@pytest.fixture
def api(client: Client) -> Callable[[], dict[str, str]]:
    """The header that the workbench sends."""
    return lambda: {"X-Firth-Token": client.settings.token}
