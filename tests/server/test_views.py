"""What the views of models show: neighbors, analogies, attention, senses, blanks, next words, answers, codes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from gallery import PAIRS, gallery
from serving import serving

import firth
from firth.core.model import Attends
from firth.data.world import World
from firth.maps.layouts import layout
from firth.server.workbench import maps, placing
from firth.tables.latent_space import known_codes

BANKS = ["the sandy river bank", "the country's central bank"]
Post = Callable[..., httpx.Response]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return gallery(tmp_path_factory.mktemp("views"))


@pytest.fixture(scope="session")
def post(made: dict[str, Path]) -> Iterator[Post]:
    with serving(models=made) as client:
        headers = {"X-Firth-Token": client.settings.token}
        yield lambda path, **body: client.post(f"/api/{path}", json=body, headers=headers)


def ok_json(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_neighbors_in_several_models_and_metrics(post, made):
    result = ok_json(post("neighbors", models=["words", "other"], word="king", k=5))["models"]
    vectors = firth.load(made["words"], firth.SkipGram).vectors
    for metric, hits in result[0]["hits"].items():
        expected = [(key, round(score, 5)) for key, score in vectors.neighbors("king", 5, metric=metric)]
        assert [(hit["key"], round(hit["score"], 5)) for hit in hits] == expected
    by_dot = result[0]["hits"]["dot"]
    assert [hit["ranks"]["dot"] for hit in by_dot] == [1, 2, 3, 4, 5]
    order = [hit.key for hit in vectors.neighbors("king", 200)]
    assert [hit["ranks"]["cosine"] for hit in by_dot] == [
        order.index(hit["key"]) + 1 if hit["key"] in order else None for hit in by_dot
    ]


def test_many_models_can_be_compared(post):
    for path, word in (("neighbors", {"word": "king"}), ("analogy", {"a": "man", "b": "king", "c": "woman"})):
        assert len(ok_json(post(path, models=["words"] * 12, **word))["models"]) == 12


def test_example_keys(made):
    with serving(models={"words": made["words"]}) as client:
        headers = {"X-Firth-Token": client.settings.token}
        begun = client.get("/api/keys", params={"model": "words", "begin": "ki"}, headers=headers).json()["keys"]
        some = client.get("/api/keys", params={"model": "words"}, headers=headers).json()["keys"]
    assert "king" in begun and all(key.startswith("ki") for key in begun)
    assert len(some) == 12 and all(len(key) > 3 for key in some)


def test_a_table_is_used_if_the_model_has_it(post, made):
    words, films = ok_json(post("neighbors", models=["words", "films"], word="u1", table="users"))["models"]
    assert films["table"] == "users" and words["table"] == "words"
    users = firth.load(made["films"], firth.ALS).tables["users"]
    assert [hit["key"] for hit in films["hits"]["cosine"]] == [hit.key for hit in users.neighbors("u1", 10)]
    (main,) = ok_json(post("neighbors", models=["films"], word="film 1"))["models"]
    assert main["table"] == "items" and main["hits"]["cosine"]


def test_keys_with_digits_are_examples_too(made):
    with serving(models={"films": made["films"]}) as client:
        params = {"model": "films", "table": "users"}
        result = client.get("/api/keys", params=params, headers={"X-Firth-Token": client.settings.token}).json()["keys"]
    assert set(result) == {f"u{number}" for number in range(12)}


def test_a_slow_layout_reports_its_progress(made, monkeypatch):
    go_on = threading.Event()

    def slow(vectors, method, run):
        run.report.begin("layout", 4, "steps")
        run.report.step(1)
        assert go_on.wait(60)
        return layout(vectors, "pca", run=run)

    monkeypatch.setattr(maps, "layout", slow)
    monkeypatch.setattr(placing, "WAIT_SECONDS", 0.2)
    with serving(models={"films": made["films"]}) as client:
        request: dict[str, Any] = {"params": {"of": "model/films/users", "method": "tsne"}}
        request["headers"] = {"X-Firth-Token": client.settings.token}
        for _ in range(2):
            waiting = client.get("/api/map/points", **request)
            assert waiting.status_code == 202 and waiting.json()["share"] in (None, 0.25)
        assert waiting.json()["share"] == 0.25
        go_on.set()
        while (answer := client.get("/api/map/points", **request)).status_code == 202:
            pass
        assert answer.status_code == 200 and len(answer.content) == 12 * 2 * 4


def test_an_invalid_layout_is_refused_each_time(made):
    with serving(models={"words": made["words"]}) as client:
        params = {"of": "model/words/words", "method": "magic"}
        for _ in range(2):
            answer = client.get("/api/map/points", params=params, headers={"X-Firth-Token": client.settings.token})
            assert answer.status_code == 400 and answer.json()["code"] == "invalid_value"
            assert "pca, tsne, umap" in answer.json()["error"]


def test_neighbors_are_searched_beyond_the_points_of_a_map(made, monkeypatch, tmp_path):
    monkeypatch.setattr(maps, "MAX_POINTS", 5)
    users = firth.load(made["films"], firth.ALS).tables["users"]
    with firth.Index.create(tmp_path / "index", dim=users.dim) as index:
        index.add(users.keys, users.matrix, {"text": [f"likes of {key}" for key in users.keys]})
    with serving(models={"films": made["films"]}, indexes={"index": tmp_path / "index"}) as client:
        for of in ("model/films/users", "index/index"):
            request: dict[str, Any] = {
                "params": {"of": of, "row": 2, "k": 11},
                "headers": {"X-Firth-Token": client.settings.token},
            }
            assert client.get("/api/map/about", **request).json()["rows"] == 5
            near = client.get("/api/map/neighbors", **request).json()["near"]
            assert [one["key"] for one in near] == [hit.key for hit in users.neighbors(users.keys[2], 11)]
            assert {one["key"]: one["row"] for one in near if one["row"] is not None} == {
                key: row for row, key in enumerate(users.keys[:5]) if row != 2
            }
    assert {one["text"] for one in near} == {f"likes of {key}" for key in users.keys if key != users.keys[2]}


def test_words_that_one_model_does_not_have(post, made):
    rare = next(
        key
        for key in firth.load(made["words"], firth.SkipGram).vectors.keys
        if key not in firth.load(made["other"], firth.SkipGram).vectors
    )
    known, lacking = ok_json(post("neighbors", models=["words", "other"], word=rare))["models"]
    assert known["hits"] and f"'{rare}'" in lacking["error"]
    typo = ok_json(post("neighbors", models=["words"], word="kingg"))["models"][0]
    assert "king" in typo["close"] and "'king'" in typo["error"]


def test_an_analogy_step_by_step(post, made):
    (result,) = ok_json(post("analogy", models=["words"], a="man", b="king", c="woman", k=3))["models"]
    vectors = firth.load(made["words"], firth.SkipGram).vectors
    assert [hit["key"] for hit in result["answers"]] == [hit.key for hit in vectors.analogy("man", "king", "woman", 3)]
    assert [step["name"] for step in result["steps"]] == ["king", "king − man", "king − man + woman"]
    a, b, c = result["given"]
    target = result["target"]
    assert (target["x"], target["y"]) == pytest.approx((b["x"] - a["x"] + c["x"], b["y"] - a["y"] + c["y"]), abs=1e-5)
    (lacking,) = ok_json(post("analogy", models=["words"], a="man", b="kingg", c="woman"))["models"]
    assert "king" in lacking["close"]
    (twice,) = ok_json(post("analogy", models=["words"], a="man", b="man", c="woman"))["models"]
    assert twice["error"]


@pytest.mark.parametrize(("model", "kind"), [("minilm", "both"), ("gpt", "causal"), ("seq2seq", "cross")])
def test_attention_and_its_steps(post, made, model, kind):
    text = PAIRS[0].source if kind == "cross" else "the king sees the queen"
    other = PAIRS[0].target if kind == "cross" else None
    result = ok_json(post("attention", model=model, text=text, other=other))
    opened = firth.load(made[model])
    assert isinstance(opened, Attends)
    expected = opened.attention(text, other)
    assert result["kind"] == kind and (result["layers"], result["heads"]) == expected.weights.shape[:2]
    np.testing.assert_allclose(np.array(result["weights"]) / result["scale"], expected.weights, atol=6e-5)
    assert len(result["queries"]) == expected.weights.shape[2] and len(result["special"]) == expected.weights.shape[3]
    steps = ok_json(post("attention/steps", model=model, text=text, other=other, layer=2, head=1, query=3))
    np.testing.assert_allclose(steps["weights"], expected.weights[1, 0, 2], atol=1e-4)
    np.testing.assert_allclose(np.array(steps["keys"]) @ steps["query"], steps["scores"], atol=1e-2)
    assert steps["allowed"] == [kind != "causal" or position < 3 for position in range(len(result["keys"]))]


def test_attention_of_a_pair(post):
    result = ok_json(post("attention", model="bert", text="the king sleeps", other="a queen"))
    assert set(result["segments"]) == {0, 1} and result["special"][0]


def test_senses_of_bank(post, made):
    result = ok_json(post("senses", model="minilm", texts=[*BANKS, " "], word="bank"))
    expected = firth.load(made["minilm"], firth.BERT).senses(BANKS, "bank")
    np.testing.assert_allclose(result["distances"], expected.distances, atol=1e-4)
    assert [text["text"][text["begin"] : text["end"]] for text in result["occurrences"]] == ["bank", "bank"]
    assert np.shape(result["trajectories"]["points"]) == np.shape(result["centered"]["points"]) == (7, 2, 2)
    np.testing.assert_allclose(np.mean(result["centered"]["points"], axis=1), 0, atol=1e-4)  # centered
    assert result["distances"][-1][0][1] > 3 * result["distances"][0][0][1]
    alone = ok_json(post("senses", model="minilm", texts=["bank", "bank"], word="bank"))
    assert alone["others"] == [None] * 7


def test_masked_words_are_predicted(post, made):
    result = ok_json(post("fill", model="bert", text="the [MASK] sleeps in the [MASK]", k=3))["blanks"]
    expected = firth.load(made["bert"], firth.BERT).fill("the [MASK] sleeps in the [MASK]", 3)
    assert [[each["token"] for each in blank] for blank in result] == [[token for token, _ in row] for row in expected]


def test_the_probability_of_a_next_sentence(post, made):
    pair = ("the king sleeps", "the queen reads a book")
    result = ok_json(post("next-sentence", model="bert", first=pair[0], second=pair[1]))
    (expected,) = firth.load(made["bert"], firth.BERT).next_sentence([pair[0]], [pair[1]])
    assert result == {"probability": pytest.approx(float(expected), abs=1e-6)} and 0 < expected < 1


def test_next_tokens(post, made):
    result = ok_json(post("write", model="gpt", prompt="the king", tokens=3, k=4, temperature=0))["steps"]
    assert len(result) == 3 and all(len(step["candidates"]) == 4 for step in result)
    second = result[0]["candidates"][1]  # another is taken than the likeliest
    after = ok_json(post("write", model="gpt", prompt="the king", generated=[second["id"]], k=4, temperature=0))[
        "steps"
    ][0]
    expected = firth.load(made["gpt"], firth.GPT).generate_tokens("the king", [second["id"]], k=4, temperature=0)[0]
    assert [each["id"] for each in after["candidates"]] == [each.id for each in expected.candidates]


def test_next_tokens_of_a_translation(post, made):
    model = firth.load(made["seq2seq"], firth.Seq2Seq)
    asked = {"model": "seq2seq", "prompt": "the king", "k": 4, "temperature": 0}
    (first,) = ok_json(post("write", **asked))["steps"]
    expected = model.generate_tokens("the king", k=4, temperature=0)[0]
    assert [each["id"] for each in first["candidates"]] == [each.id for each in expected.candidates]
    forced = [first["candidates"][1]["id"]]
    result = ok_json(post("write", **asked, generated=forced))
    (probability,) = (each.probability for each in model.token_probabilities("the king", forced))
    assert result["generated"][0]["probability"] == pytest.approx(probability)


def test_answers(post, made):
    row = next(iter(World(seed=21).questions(1)))
    result = ok_json(post("answer", model="answer", question=row.question, passage=row.passage))
    assert row.passage[result["start"] : result["end"]] == result["text"]
    expected = firth.load(made["answer"], firth.QuestionAnswerer).answer([row.question], [row.passage])[0]
    assert result["text"] == expected.text


def test_latent_codes_are_decoded(post, made):
    result = ok_json(post("latent", model="people"))
    codes = known_codes(firth.load(made["people"], firth.VAE))
    assert (result["dim"], result["rows"], result["side"]) == (3, len(codes), None)
    back = np.array(result["center"]) + np.array(result["points"]) @ np.array(result["axes"])
    assert np.abs(back - codes).max() <= np.abs(codes).max()
    row = ok_json(post("latent/decode", model="people", codes=[codes[0].tolist()]))["rows"][0]
    assert [cell["column"] for cell in row] == ["age", "pay", "city"] and row[2]["levels"][0][0] == row[2]["value"]
    plane = ok_json(post("latent", model="digits"))
    pictures = ok_json(post("latent/decode", model="digits", codes=[[0, 0], [1, 1]]))["pictures"]
    assert plane["side"] == 8 and np.shape(pictures) == (2, 64) and np.min(pictures) >= 0 and np.max(pictures) <= 1


@pytest.mark.parametrize(
    ("path", "body", "status", "part"),  # part: the code, or the field or values that the message states
    [
        ("neighbors", {"models": ["words"], "word": ""}, 422, "word: "),
        ("neighbors", {"models": [], "word": "king"}, 422, "models: "),
        ("neighbors", {"models": ["nobody"], "word": "king"}, 404, "'nobody'"),
        ("neighbors", {"models": ["seq2seq"], "word": "king"}, 400, "seq2seq (seq2seq)"),
        ("neighbors", {"models": ["words"], "word": "k" * 201}, 422, "word: "),
        ("analogy", {"models": ["words"], "a": "man", "b": "king", "c": ""}, 422, "c: "),
        ("attention", {"model": "words", "text": "a"}, 400, "words (skipgram) does not support this; bert, gpt"),
        ("attention", {"model": "bert", "text": "  "}, 400, "empty"),
        ("attention", {"model": "bert", "text": ""}, 422, "text: "),
        ("attention", {"model": "bert", "text": "king " * 100}, 400, "96 tokens; got 100"),
        ("attention", {"model": "bert", "text": "king " * 95}, 400, "96 tokens; got 97"),
        ("attention", {"model": "bert", "text": "a", "other": "king " * 500}, 400, "96 tokens; got 500"),
        ("attention", {"model": "gpt", "text": "a", "other": "b"}, 400, "unsupported_model"),
        ("attention/steps", {"model": "bert", "text": "a", "layer": 9, "head": 1, "query": 1}, 400, "layer must be"),
        ("attention/steps", {"model": "bert", "text": "a", "layer": 0, "head": 1, "query": 1}, 422, "layer: "),
        ("senses", {"model": "words", "texts": BANKS, "word": "bank"}, 400, "words (skipgram)"),
        ("senses", {"model": "minilm", "texts": BANKS, "word": "tree"}, 400, "unknown_key"),
        ("senses", {"model": "minilm", "texts": BANKS[:1], "word": "bank"}, 400, "too_few"),
        ("senses", {"model": "minilm", "texts": BANKS, "word": " "}, 400, "Enter a word"),
        (
            "senses",
            {"model": "minilm", "texts": ["bank " * 11], "word": "bank"},
            400,
            "at most 10 ",
        ),
        ("fill", {"model": "bert", "text": "the king"}, 400, "missing_mask"),
        (
            "fill",
            {"model": "minilm", "text": "the [MASK]"},
            400,
            "minilm (bert)",
        ),
        ("next-sentence", {"model": "minilm", "first": "a", "second": "b"}, 400, "minilm (bert)"),
        ("write", {"model": "bert", "prompt": "a"}, 400, "bert (bert)"),
        ("write", {"model": "gpt", "prompt": "a", "generated": [99999]}, 400, "unknown_token"),
        ("write", {"model": "gpt", "prompt": "king " * 200}, 400, "context"),
        ("write", {"model": "gpt", "prompt": "a", "temperature": -1}, 422, "temperature: "),
        ("answer", {"model": "bert", "question": "who", "passage": "a"}, 400, "finetune question-answerer"),
        ("answer", {"model": "answer", "question": "", "passage": "a"}, 400, "Enter a question"),
        ("latent", {"model": "words"}, 400, "words (skipgram) does not support this; autoencoder and vae"),
        ("latent", {"model": "plain"}, 400, "unsupported_model"),
        ("latent/decode", {"model": "people", "codes": [[0, 1]]}, 400, "A code of people must have 3 values; got 2"),
        ("latent/decode", {"model": "people", "codes": []}, 422, "codes: "),
    ],
)
def test_invalid_requests_are_refused(post, path, body, status, part):
    answer = post(path, **body)
    error = answer.json()
    assert answer.status_code == status and (part == error["code"] or part in error["error"]), answer.text
