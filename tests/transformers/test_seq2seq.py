"""Seq2Seq on the invented language: solved nearly perfectly; and what translating promises."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from refusing import refuses, warns_code

import firth
from firth.core.model import Attends, Embeds, Parts, Translates
from firth.data.world import World
from firth.data.world.language import ADJECTIVES
from firth.evaluate.translation import bleu
from firth.transformers.translation_model import Translator

torch.set_num_threads(1)
WORLD = [tuple(pair) for pair in World(seed=11).translations(6300)]
TRAIN = WORLD[:6000]
TEST = [pair for pair in WORLD[6000:] if pair not in set(TRAIN)]
SOURCES, TARGETS = [source for source, _ in TEST], [target for _, target in TEST]
SETTINGS = {
    "transformer": {"layers": 2, "dim": 64, "epochs": 5, "batch_tokens": 1000, "learning_rate": 3e-3},
    "lstm": {"layers": 1, "dim": 96, "epochs": 4, "batch_tokens": 600, "learning_rate": 5e-3, "max_grad_norm": 5.0},
}


@pytest.fixture(scope="module", params=SETTINGS)
def model(request) -> Translator:
    settings: dict[str, Any] = {"vocabulary_size": 400, "context_length": 64, "dropout": 0.0, **SETTINGS[request.param]}
    return firth.Seq2Seq(architecture=request.param, **settings).fit(TRAIN, firth.Run(threads=1))


def test_the_invented_language_is_learned(model):
    """Its grammar moves verbs and adjectives and makes words agree: a copy of the source will not do."""
    translations = model.translate(SOURCES)
    exact = np.mean([text == target for text, target in zip(translations, TARGETS, strict=True)])
    assert len(TEST) > 250 and exact >= 0.95 and bleu(translations, TARGETS) >= 95
    assert bleu(SOURCES, TARGETS) < 1


def test_figures_tell_of_the_run(model):
    metrics = model.training
    assert (metrics["pairs"], metrics["held_out_pairs"]) == (5880, 120) and metrics["vocabulary"] == 400
    assert metrics["perplexity"] < 1.5 < metrics["held_out"][0]["perplexity"]
    assert metrics["held_out_loss"] == pytest.approx(
        min(measurement["held_out_loss"] for measurement in metrics["held_out"]), rel=1e-4
    )


def test_token_by_token_equals_greedy_search(model):
    """The steps without sampling are greedy search, and their probabilities give its score."""
    for source, found in zip(SOURCES[:5], model.translations(SOURCES[:5], beam=1, length_penalty=0), strict=True):
        steps = model.generate_tokens(source, tokens=40, k=3, temperature=0)
        ids = [step.token.id for step in steps]
        assert model.tokenizer.decode(ids[:-1]) == found.text and ids[-1] == model.decoding.end
        assert all(step.token == step.candidates[0] and len(step.candidates) == 3 for step in steps)
        probabilities = [each.probability for each in model.token_probabilities(source, ids)]
        np.testing.assert_allclose(np.log(probabilities).sum(), found.score, atol=1e-3)
        np.testing.assert_allclose(probabilities, [step.token.probability for step in steps], rtol=1e-4)
        (third,) = model.generate_tokens(source, ids[:2], temperature=0)
        assert third.token.id == ids[2] and third.token.probability == pytest.approx(steps[2].token.probability)
    sampled = [model.generate_tokens("", tokens=5, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]
    for arguments, code, values in (
        (("x", [100_000]), "unknown_token", {"got": 100_000}),
        (("x", (), 0), "invalid_value", {"tokens": 0}),
        (("x", [9] * 64, 1), "text_too_long", {"got": 64, "limit": 64}),
    ):
        with refuses(code, **values):
            model.generate_tokens(*arguments)


def test_a_beam_finds_what_is_at_least_as_likely_as_greedy_search_does(model):
    greedy, beam = (
        np.array([translation.score for translation in model.translations(SOURCES[:100], beam=beam, length_penalty=0)])
        for beam in (1, 4)
    )
    assert (beam >= greedy - 1e-4).mean() > 0.97 and beam.mean() >= greedy.mean() - 1e-5


def test_neighbors_in_a_batch_change_nothing(model):
    together = model.translations(SOURCES[:20])
    alone = [model.translations([text])[0] for text in SOURCES[:20]]
    assert [translation.text for translation in together] == [translation.text for translation in alone]
    np.testing.assert_allclose([f.score for f in together], [f.score for f in alone], atol=1e-4)


def test_it_shows_where_each_token_looks(model):
    source, target = TEST[0]
    attention = model.attention(source, target)
    shape = (model.method.layers, 4 if model.method.architecture == "transformer" else 1)
    assert attention.weights.shape == (*shape, len(attention.queries), len(attention.keys))
    np.testing.assert_allclose(attention.weights.sum(-1), 1, atol=1e-5)
    assert "".join(attention.keys) == source + "</s>" and "".join(attention.queries) == target + "</s>"
    own = model.attention(source)
    assert "".join(own.queries) == model.translate([source])[0] + "</s>"
    assert not np.allclose(attention.weights[..., 0, :], attention.weights[..., -1, :], atol=0.01)


def test_the_first_noun_is_looked_for_where_it_stands(model):
    """ "some dogs …" and "a big dog …": the noun comes first in the other language, and second or third in English."""
    hits = []
    for source, target in TEST[:40]:
        attention = model.attention(source, target)
        noun = source.split()[2 if len(source.split()) > 3 and source.split()[1] in ADJECTIVES else 1]
        ends = np.cumsum([len(key) for key in attention.keys])
        begin = source.index(" " + noun)
        inside = (ends > begin) & (ends - [len(key) for key in attention.keys] < begin + 1 + len(noun))
        weights = attention.weights.max(axis=(0, 1))[0]  # of the first token, by the head that looks there most
        hits.append(weights[inside].max() > 2 / len(attention.keys))
    assert np.mean(hits) > 0.8


def test_it_embeds_by_the_mean_of_the_encoder(model):
    rows = model.embed(["the dog sees a cat", "", "the dog saw a cat", "some poets will greet the king"])
    assert rows.shape == (4, model.method.dim * (1 if model.method.architecture == "transformer" else 2))
    assert np.isfinite(rows).all() and rows.dtype == np.float32
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert unit[0] @ unit[2] > unit[0] @ unit[3]
    np.testing.assert_allclose(model.embed(["the dog sees a cat"])[0], rows[0], atol=1e-5)


def test_saved_and_loaded_it_translates_the_same(model, tmp_path):
    model.save(tmp_path / "m")
    again = firth.load(tmp_path / "m", firth.Seq2Seq)
    assert again.translations(SOURCES[:9]) == model.translations(SOURCES[:9])
    assert isinstance(again, Translates) and isinstance(again, Attends) and isinstance(again, Embeds)
    assert firth.SubwordTokenizer.load(tmp_path / "m" / "tokenizer.json").ids == model.tokenizer.ids


def test_it_goes_on_from_a_model(model):
    again = type(model.method)(**{**model.method.options(), "epochs": 1}).fit(TRAIN[:300], firth.Run(threads=1), model)
    assert again.tokenizer.ids == model.tokenizer.ids
    assert again.training["held_out"][0]["perplexity"] < 2  # a fresh one begins with about 400


def test_bad_input_is_refused_by_name(model, tmp_path):
    with refuses("invalid_value", option="beam", limit=400, got=401):
        model.translate(["the dog sees a cat"], beam=401)
    with refuses("invalid_value", option="beam", got=0):
        model.translate(["the dog sees a cat"], beam=0)
    with refuses("text_too_long", detail="Text", number=2, limit=64):
        model.translate(["the dog", "the dog sees a cat " * 20])
    with refuses("text_too_long", detail="Translation", number=1):
        model.attention("the dog", "zu " * 100)
    with refuses("invalid_type"):
        model.translate("the dog")
    with refuses("invalid_value", option="length_penalty", got=-1):
        model.translate(["the dog"], length_penalty=-1)
    assert model.translate(["", "  ", SOURCES[0]]) == ["", "", model.translate([SOURCES[0]])[0]]
    assert model.translate([]) == [] and model.embed([]).shape[0] == 0
    parts = model.parts()
    other = firth.BPE(size=300).train(SOURCES)
    with refuses("invalid_tokenizer", n_tokenizer=300, rows=400):
        Translator.from_parts(model.method, Parts(parts.arrays, {"tokenizer": json.loads(other.to_json())}), {})


def test_what_finds_no_end_is_told():
    few = firth.Seq2Seq(layers=1, dim=8, heads=2, epochs=1, vocabulary_size=300).fit(TRAIN[:50], firth.Run(threads=1))
    with warns_code("translation_cut") as issued:
        few.translate(["the dog sees a cat"], beam=1)
    assert "1 of 1" in str(issued[0])
    assert not few.translations(["the dog sees a cat"], beam=1)[0].ended


def test_settings_and_data_are_checked():
    with refuses("invalid_value", option="Seq2Seq.dim", got=10, heads=4):
        firth.Seq2Seq(dim=10).fit(TRAIN[:5])
    assert firth.Seq2Seq(dim=10, architecture="lstm").dim == 10  # it has no heads
    with refuses("empty_data"):
        firth.Seq2Seq(dim=8).fit([("a", ""), ("", "b")])
    with refuses("text_too_long", limit=4), warnings.catch_warnings():
        warnings.simplefilter("ignore", firth.FirthWarning)
        firth.Seq2Seq(dim=8, context_length=4).fit(TRAIN[:5])
    start = object()
    with refuses("incompatible_start", got=start):
        firth.Seq2Seq(dim=8).fit(TRAIN[:5], start=start)  # type: ignore[arg-type]
    with warns_code("empty_pairs") as issued:
        start = firth.Seq2Seq(dim=8, layers=1, epochs=1, vocabulary_size=261, heads=1).fit([*TRAIN[:3], ("a", "")])
    assert any("1 of 4 pairs" in str(warning) for warning in issued)
    with refuses("incompatible_start", existing="layers=1, heads=1"):
        firth.Seq2Seq(dim=8).fit(TRAIN[:5], start=start)
