"""`--prompt` of embed, index build and search, and the prompts of roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import texts, tiny_bert

import firth

PROMPTS = {"query": "the king asks: ", "passage": "from the forest: "}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("prompts")
    model = tiny_bert().with_settings(prompts=PROMPTS, similarity="dot")
    model.save(directory / "model")
    firth.SkipGram(dim=8, epochs=1).fit(texts()[:200]).save(directory / "words")
    (directory / "text.txt").write_text("\n".join(dict.fromkeys(texts()[:60])))
    return directory


def rows(done: Any) -> np.ndarray:
    return np.array([json.loads(line)["vector"] for line in done.stdout.splitlines()], np.float32)


@pytest.mark.parametrize("name", ["query", "document", None])
def test_embed(name: str | None, call: Any, folder: Path) -> None:
    model, lines = firth.load(folder / "model"), (folder / "text.txt").read_text().splitlines()
    flags = ("--prompt", name) if name else ()
    before = {"query": PROMPTS["query"], "document": PROMPTS["passage"]}.get(name or "", "")
    expected = model.embed([before + line for line in lines])  # type: ignore[attr-defined]
    np.testing.assert_allclose(rows(call("embed", folder / "model", folder / "text.txt", *flags)), expected, atol=1e-6)


def test_shards_of_another_prompt_are_another_run(call: Any, refused: Any, folder: Path, tmp_path: Path) -> None:
    command = ("embed", folder / "model", folder / "text.txt", "-o", tmp_path / "shards")
    assert call(*command, "--prompt", "query").exit_code == 0
    refused("other_run", *command, "--prompt", "passage")


def test_index_and_search_use_the_prompts_of_their_roles(call: Any, folder: Path, tmp_path: Path) -> None:
    model, lines = firth.load(folder / "model"), (folder / "text.txt").read_text().splitlines()
    done = call("index", "build", folder / "model", folder / "text.txt", "-o", tmp_path / "index")
    assert done.exit_code == 0, done.output
    index = firth.Index.open(tmp_path / "index")
    assert index.space.metric == "dot"  # the similarity of the model
    document = model.embed(lines, prompt="passage")  # type: ignore[attr-defined]
    for flags, prompt in (((), "query"), (("--prompt", "passage"), "passage")):
        found = json.loads(call("search", tmp_path / "index", "a river", "--mode", "vector", *flags, "--json").stdout)
        query = model.embed("a river", prompt=prompt)  # type: ignore[attr-defined]
        np.testing.assert_allclose([hit["score"] for hit in found], np.sort(document @ query)[::-1][:10], rtol=1e-4)


def test_prompts_that_do_not_exist(refused: Any, folder: Path, tmp_path: Path) -> None:
    output = ("-o", tmp_path / "out.npy")
    refused("invalid_value", "embed", folder / "model", folder / "text.txt", *output, "--prompt", "ask", got="ask")
    refused("unsupported_model", "embed", folder / "words", folder / "text.txt", *output, "--prompt", "query")
    command = ("index", "build", folder / "model", folder / "text.txt", "-o", tmp_path / "index", "--prompt", "ask")
    refused("invalid_value", *command, option="prompt")


def test_info_shows_prompts(call: Any, folder: Path) -> None:
    fields = json.loads(call("info", folder / "model", "--json").stdout)["pooling"]
    assert fields["prompts"] == PROMPTS and fields["similarity"] == "dot" and fields["include_prompt"] is True
