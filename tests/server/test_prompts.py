"""Prompts over HTTP: by name and as text, defaults of server and model, token ids, search, models without prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from encoder_folders import write_folder
from sentence_transformers import SentenceTransformer
from serving import serving
from tiny import texts, tiny_bert

import firth

PROMPTS = {"query": "the king asks: ", "passage": "from the forest: "}
TEXTS = ["a river", "the old king sleeps"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("served")
    base = tiny_bert()
    base.with_settings(prompts=PROMPTS).save(directory / "bert")
    base.with_settings(prompts=PROMPTS, default_prompt="passage").save(directory / "passages")
    base.with_pooling(include_prompt=False).with_settings(prompts=PROMPTS).save(directory / "without")
    base.save(directory / "plain")
    firth.SkipGram(dim=8, epochs=1).fit(texts()[:200]).save(directory / "words")
    model = firth.load(directory / "bert")
    lines = list(dict.fromkeys(texts()[:80]))
    with firth.Index.create(
        directory / "index", dim=32, metric="dot", model=model, model_path=str(directory / "bert")
    ) as index:
        index.add([str(number) for number in range(len(lines))], embed(model, lines, "passage"), {"text": lines})
    return directory


def embed(model: Any, inputs: list[str], prompt: str | None = None, **settings: Any) -> np.ndarray:
    return np.asarray(model.embed(inputs, prompt=prompt, device="cpu", **settings))


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    models = {name: folder / name for name in ("bert", "passages", "without", "plain", "words")}
    with serving(models=models, indexes={"texts": folder / "index"}, precision="float32") as found:
        yield found


def posted(client: httpx.Client, path: str = "/embed", **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("name", ["bert", "passages", "without", "plain"])
@pytest.mark.parametrize("prompt", ["query", "document", None])
def test_embed_with_a_named_prompt(name: str, prompt: str | None, client: httpx.Client, folder: Path) -> None:
    got = posted(client, inputs=TEXTS, model=name, prompt_name=prompt, normalize=False)
    np.testing.assert_allclose(got, embed(firth.load(folder / name), TEXTS, prompt), atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "without"])
def test_embed_with_a_prompt_as_text(name: str, client: httpx.Client, folder: Path) -> None:
    got = posted(client, inputs=TEXTS, model=name, prompt="a queen: ", normalize=False)
    np.testing.assert_allclose(got, embed(firth.load(folder / name), TEXTS, prompt_text="a queen: "), atol=1e-5)


def test_requests_with_other_prompts_share_a_batch(client: httpx.Client, folder: Path) -> None:
    model: Any = firth.load(folder / "without")
    prompted = [
        posted(client, inputs=TEXTS, model="without", prompt_name=name, normalize=False) for name in ("query", "")
    ]
    np.testing.assert_allclose(prompted[0], embed(model, TEXTS, "query"), atol=1e-5)
    np.testing.assert_allclose(prompted[1], embed(model, TEXTS, ""), atol=1e-5)


def test_token_ids_have_the_prompt_before_them(client: httpx.Client, folder: Path) -> None:
    model: Any = firth.load(folder / "bert")
    ids = model.tokenizer.ids_batch(TEXTS)
    for given in (ids, [each[1:-1] for each in ids]):  # with and without special tokens
        got = posted(client, inputs=given, model="bert", prompt_name="query", normalize=False)
        np.testing.assert_allclose(got, embed(model, TEXTS, "query"), atol=1e-5)


def test_openai_has_the_default_prompt_of_the_server(folder: Path) -> None:
    with serving(
        models={"bert": folder / "bert", "words": folder / "words"}, prompt="query", precision="float32"
    ) as found:
        asked = openai.OpenAI(base_url=f"{found.base_url}/v1", api_key="none")
        got = [each.embedding for each in asked.embeddings.create(model="bert", input=TEXTS).data]
        named = asked.embeddings.create(model="bert", input=TEXTS, extra_body={"prompt_name": "passage"}).data
        assert len(asked.embeddings.create(model="words", input=TEXTS).data) == 2  # has no prompts
    model = firth.load(folder / "bert")
    np.testing.assert_allclose(got, embed(model, TEXTS, "query"), atol=1e-5)
    np.testing.assert_allclose([each.embedding for each in named], embed(model, TEXTS, "passage"), atol=1e-5)


def test_the_openai_client_against_an_mpnet_with_a_prompt(tmp_path: Path) -> None:
    """The vectors are those of sentence-transformers with the same prompt."""
    write_folder(tmp_path / "net", "mpnet", "Model")
    transformer = SentenceTransformer(str(tmp_path / "net"), device="cpu", prompts=PROMPTS)
    transformer.save(str(tmp_path / "mpnet"))
    with serving(models={"mpnet": tmp_path / "mpnet"}, prompt="query", precision="float32") as found:
        asked = openai.OpenAI(base_url=f"{found.base_url}/v1", api_key="none").embeddings
        default = asked.create(model="mpnet", input=TEXTS).data
        named = asked.create(model="mpnet", input=TEXTS, extra_body={"prompt_name": "passage"}).data
        plain = asked.create(model="mpnet", input=TEXTS, extra_body={"prompt": ""}).data
    for rows, prompt in ((default, "query"), (named, "passage"), (plain, None)):
        expected = transformer.encode(TEXTS, prompt_name=prompt)
        np.testing.assert_allclose([row.embedding for row in rows], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "settings"),
    [({}, {"prompt": "query"}), ({"prompt_name": "passage"}, {"prompt": "passage"}), ({"prompt": ""}, {"prompt": ""}),
     ({"prompt": "a queen: "}, {"prompt_text": "a queen: "})],
)  # fmt: skip
def test_search_uses_the_prompt_for_queries(
    body: dict[str, str], settings: dict[str, str], client: httpx.Client, folder: Path
) -> None:
    model: Any = firth.load(folder / "bert")
    found = posted(client, "/search", query="a river", mode="vector", k=5, **body)["hits"]
    query = model.embed("a river", device="cpu", **settings)
    scores = np.sort(embed(model, list(dict.fromkeys(texts()[:80])), "passage") @ query)[::-1][:5]
    np.testing.assert_allclose([hit["score"] for hit in found], scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"model": "bert", "prompt_name": "ask"}, "prompt_name"),
        ({"model": "words", "prompt_name": "query"}, "prompt_name"),
        ({"model": "words", "prompt": "x "}, "prompt"),
    ],
)
def test_prompts_that_do_not_exist(body: dict[str, str], field: str, client: httpx.Client) -> None:
    answer = client.post("/embed", json={"inputs": TEXTS, **body})
    assert answer.status_code == 400
    answer = client.post("/v1/embeddings", json={"input": TEXTS, **body})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field
