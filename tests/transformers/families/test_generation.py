"""Loaded encoder-decoders generate what transformers' `generate` does, from the same folder and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from encoder_decoders import (
    BEGIN,
    CONFIGS,
    END,
    NAMES,
    PAD,
    VOCABULARY,
    hugging_face,
    new_tokenizer,
    save_tokenizer,
)  # fmt: skip
from refusing import refuses, warns_code

import firth
from firth.transformers.translation_model import Translator

RANDOM = np.random.default_rng(3)
SOURCES = [" ".join(f"w{id}" for id in RANDOM.integers(3, VOCABULARY, length)) for length in (7, 1, 12, 3, 5, 9, 2, 4)]
#: Settings of `generate`, as generation_config.json has them.
SETTINGS: list[dict[str, Any]] = [
    {"num_beams": 1},
    {"num_beams": 4},
    {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True},
    {"num_beams": 3, "length_penalty": 0.0, "early_stopping": "never"},
    {"num_beams": 2, "length_penalty": 0.5, "early_stopping": "never"},
    {"num_beams": 4, "no_repeat_ngram_size": 2, "min_length": 6},
    {"num_beams": 2, "forced_bos_token_id": 7, "forced_eos_token_id": END, "bad_words_ids": [[PAD], [9]]},
    {"num_beams": 1, "no_repeat_ngram_size": 1, "forced_eos_token_id": END, "suppress_tokens": [5, 6]},
]
#: What is added to the logit of the end token, on average, by the number of the config.
ENDING = {0: 4.0, 2: 9.0, 4: 4.0, 6: 4.5}


def saved(folder: Path, number: int, generation: dict[str, Any] | None = None) -> Any:
    """Save a network of transformers with a tokenizer. Its end token is made likely, so that some texts end."""
    _, config, network, settings = CONFIGS[number]
    net = hugging_face(config, network, settings)
    torch.manual_seed(0)
    with torch.no_grad():
        before = torch.randint(3, VOCABULARY, (20, 10))
        hidden = net(before, decoder_input_ids=before, output_hidden_states=True).decoder_hidden_states[-1]
        mean = hidden.flatten(0, 1).mean(0)
        scale = net.config.d_model**0.5 if getattr(net.config, "scale_decoder_outputs", False) else 1.0
        net.get_output_embeddings().weight[END] += ENDING.get(number, 4.0) * scale * mean / (mean @ mean)
    for name, value in (generation or {}).items():
        setattr(net.generation_config, name, value)
    net.save_pretrained(folder)
    save_tokenizer(folder)
    return net


def generated(net: Any, tokens: int) -> tuple[list[list[int]], list[float]]:
    """The tokens that transformers generates after the first, without the end token, and their scores."""
    tokenizer = new_tokenizer()
    ids, scores = [], []
    for source in SOURCES:  # one by one, so that it does not pad
        batch = torch.tensor([tokenizer.encode(source).ids])
        out = net.generate(
            batch,
            attention_mask=torch.ones_like(batch),
            max_new_tokens=tokens,
            return_dict_in_generate=True,
            output_scores=True,
        )
        row = out.sequences[0, 1:].tolist()
        ids.append(row[: row.index(END)] if END in row else row)
        scores.append(float(out.sequences_scores[0]) if "sequences_scores" in out else 0.0)
    return ids, scores


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())))
@pytest.mark.parametrize("number", ENDING, ids=lambda number: NAMES[number])
def test_it_generates_what_transformers_generates(number, settings, tmp_path):
    net = saved(tmp_path, number, settings)
    model = firth.load(tmp_path, firth.Seq2Seq)
    assert isinstance(model, Translator)
    encoded = model.encoded(SOURCES)
    for tokens in (4, 25):
        expected, scores = generated(net, tokens)
        hypotheses = model.search(encoded, tokens=tokens)  # in one batch, with padding
        assert [hypothesis.ids for hypothesis in hypotheses] == expected
        if settings["num_beams"] > 1:
            np.testing.assert_allclose([hypothesis.score for hypothesis in hypotheses], scores, rtol=1e-4)


@pytest.mark.parametrize("number", ENDING, ids=lambda number: NAMES[number])
def test_the_networks_of_these_tests_end_some_and_cut_others(number, tmp_path):
    """Otherwise the comparisons above would not see both."""
    saved(tmp_path, number)
    model = firth.load(tmp_path, firth.Seq2Seq)
    hypotheses = [each for beam in (1, 2, 4) for each in model.search(model.encoded(SOURCES), beam, tokens=25)]
    assert {hypothesis.ended for hypothesis in hypotheses} == {True, False}
    assert len({len(hypothesis.ids) for hypothesis in hypotheses}) > 1


@pytest.mark.parametrize("number", range(len(CONFIGS)), ids=NAMES)
def test_a_saved_folder_opens_in_firth_and_in_transformers(number, tmp_path):
    settings = {"num_beams": 3, "length_penalty": 0.7, "max_new_tokens": 11, "forced_eos_token_id": None}
    net = saved(tmp_path / "theirs", number, settings)
    model = firth.load(tmp_path / "theirs", firth.Seq2Seq)
    model.save(tmp_path / "ours")
    again = firth.load(tmp_path / "ours", firth.Seq2Seq)
    translations = model.translations(SOURCES)
    assert again.translations(SOURCES) == translations and again.decoding == model.decoding
    classes = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    assert type(classes) is type(net)
    expected = generated(net, 11)[0]
    assert generated(classes.eval(), 11)[0] == expected
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert tokenizer(SOURCES)["input_ids"] == model.encoded(SOURCES)
    assert [tokenizer.decode(ids, skip_special_tokens=True) for ids in expected] == [each.text for each in translations]
    assert again.embed(SOURCES).shape == (len(SOURCES), 48)


def test_the_engine_is_torch(tmp_path):
    saved(tmp_path, 0)
    model = firth.load(tmp_path, firth.Seq2Seq)
    assert isinstance(model, Translator)
    assert model.engine_description.startswith("torch, because the native engines compute encoders and decoders")


def test_vectors_are_the_mean_of_the_encoder(tmp_path):
    net = saved(tmp_path, 0)
    rows = firth.load(tmp_path, firth.Seq2Seq).embed(SOURCES)
    for text, row in zip(SOURCES, rows, strict=True):
        ids = torch.tensor([new_tokenizer().encode(text).ids])
        with torch.inference_mode():
            states = net.get_encoder()(ids).last_hidden_state
        np.testing.assert_allclose(row, states[0].mean(0).numpy(), atol=1e-5)


def test_attention_is_that_of_transformers(tmp_path):
    net = saved(tmp_path, 4)
    model = firth.load(tmp_path, firth.Seq2Seq)
    attention = model.attention(SOURCES[0], SOURCES[3])
    source, target = (torch.tensor([new_tokenizer().encode(SOURCES[number]).ids]) for number in (0, 3))
    before = torch.cat([torch.tensor([[BEGIN]]), target[:, :-1]], dim=1)
    with torch.inference_mode():
        expected = net(source, decoder_input_ids=before, output_attentions=True).cross_attentions
    np.testing.assert_allclose(attention.weights, torch.stack(expected)[:, 0].numpy(), atol=1e-5)
    assert attention.queries[-1] == attention.keys[-1] == "</s>"
    own = model.attention(SOURCES[0])
    assert len(own.queries) == len(model.search(model.encoded(SOURCES[:1]))[0].ids) + own.queries.count("</s>")


def test_attention_of_a_marian_is_that_of_its_own_translation(tmp_path):
    saved(tmp_path, 6)
    model = firth.load(tmp_path, firth.Seq2Seq)
    attention = model.attention(SOURCES[0])
    np.testing.assert_allclose(attention.weights.sum(-1), 1, atol=1e-5)
    with refuses("unsupported_model", family="Marian"):
        model.attention(SOURCES[0], SOURCES[3])


def test_empty_texts_stay_empty_and_long_ones_are_refused(tmp_path):
    saved(tmp_path, 4)
    model = firth.load(tmp_path, firth.Seq2Seq)
    first, empty = model.translations([SOURCES[0], " "], tokens=5)
    assert empty.text == "" and empty.ended and len(first.text.split()) >= 1
    assert model.max_text_tokens == 89
    with refuses("text_too_long", tokens=91, limit=90):
        model.translate(["w5 " * 90])
    for option, value in (("beam", 0), ("length_penalty", 11), ("tokens", 91)):
        with refuses("invalid_value", option=option, got=value):
            model.translate(SOURCES, **{option: value})


def test_bad_folders_are_refused(tmp_path):
    net = saved(tmp_path, 4, {"repetition_penalty": 1.2})
    with warns_code("settings_ignored") as issued:
        firth.load(tmp_path, firth.Seq2Seq)
    assert "repetition_penalty" in str(issued[0])
    config, generation = (
        json.loads((tmp_path / name).read_text()) for name in ("config.json", "generation_config.json")
    )

    def changed(name: str, document: dict[str, Any]) -> None:
        (tmp_path / name).write_text(json.dumps(document))

    generation["repetition_penalty"] = 1.0
    for key, value, code in (
        ("decoder_start_token_id", 60, "damaged_model"),
        ("num_beams", "many", "damaged_model"),
        ("early_stopping", "soon", "damaged_model"),
        ("bad_words_ids", [[1, 2]], "unsupported_architecture"),
    ):
        changed("generation_config.json", {**generation, key: value})
        with refuses(code, name=key):
            firth.load(tmp_path, firth.Seq2Seq)
    changed("generation_config.json", generation)
    changed("config.json", {**config, "architectures": ["BartForSequenceClassification"]})
    with refuses("unsupported_architecture", name="architectures"):
        firth.load(tmp_path, firth.Seq2Seq)
    changed("config.json", {**config, "vocab_size": 61})
    with refuses("damaged_model", name="vocab_size", got=61, rows=60):
        firth.load(tmp_path, firth.Seq2Seq)
    changed("config.json", config)
    tokenizer = new_tokenizer()
    tokenizer.add_tokens(["extra"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with refuses("invalid_tokenizer", n_tokenizer=61, rows=60):
        firth.load(tmp_path, firth.Seq2Seq)
    new_tokenizer().save(str(tmp_path / "tokenizer.json"))
    with refuses("incompatible_start", existing="a loaded BART"):
        options: dict[str, Any] = {"layers": 3, "dim": 48, "heads": 4, "feedforward_dim": 80}
        firth.Seq2Seq(**options).fit([("a", "b")], start=firth.load(tmp_path, firth.Seq2Seq))
    assert net is not None
