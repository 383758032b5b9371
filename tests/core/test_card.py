"""Model cards: what a saved folder says about its model."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import firth
from firth.cli.main import cli
from firth.core.card import CARD, UNKNOWN_LICENSE, card_values

TEXTS = ["the king sleeps", "the queen sleeps", "a river flows", "the river sleeps"] * 10


@pytest.fixture
def folder(tmp_path):
    firth.SkipGram(dim=4, epochs=3).fit(TEXTS).save(tmp_path / "model")
    return tmp_path / "model"


def test_saving_writes_a_card(folder):
    model = firth.load(folder)
    text = (folder / CARD).read_text(encoding="utf-8")
    assert text.startswith("---\nlibrary_name: firth\n")
    assert f"| license | {UNKNOWN_LICENSE} |" in text
    assert (
        "| **dim** | 4 |" in text and "| min_count | 1 |" in text and "| window | 5 |" in text
    )  # bold where it is not the default
    assert f"| tokens | {model.training['tokens']} |" in text
    assert f"| loss | {model.training['loss']:.4g} |" in text
    assert all(f"- {limit}" in text for limit in card_values(model)["limits"])


def test_an_edited_card_is_not_damage(folder):
    (folder / CARD).write_text("ours")
    assert CARD not in firth.verify(folder)
    assert firth.load(folder, firth.SkipGram).vectors.dim == 4


def test_the_license_of_the_data_is_recorded(tmp_path):
    trained = firth.train(firth.SkipGram(dim=4, epochs=1), TEXTS, tmp_path / "model", license="CC BY-SA 4.0")
    assert card_values(trained.model)["license"] == "CC BY-SA 4.0"
    assert "license_name: CC BY-SA 4.0\n" in (tmp_path / "model" / CARD).read_text(encoding="utf-8")
    again = firth.train(
        firth.SkipGram(dim=4, epochs=2), TEXTS, tmp_path / "model", overwrite=True
    )  # a card is no obstacle
    assert card_values(again.model)["license"] == UNKNOWN_LICENSE


def test_values_stay_on_their_lines(tmp_path):
    model = firth.SkipGram(dim=4, epochs=1).fit(TEXTS)
    model.training = {**model.training, "license": "a | b\nc"}
    model.save(tmp_path / "model")
    assert "| license | a \\| b c |" in (tmp_path / "model" / CARD).read_text(encoding="utf-8")


def test_a_supervised_model_is_evaluated_beside_baselines(tmp_path):
    texts = [(f"{'good fine' if n % 2 else 'bad poor'} {n}", "pn"[n % 2]) for n in range(200)]
    model = firth.FastTextClassifier(dim=8).fit(texts)
    scores, record = card_values(model)["evaluation"], model.training["held_out_score"]
    assert scores["held-out accuracy"] == record["score"] and scores["held-out rows"] == record["rows"]
    assert scores["held-out accuracy of majority label"] == record["baselines"]["majority label"]


def test_the_command_line_records_a_license_and_shows_the_card(tmp_path):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(TEXTS))
    folder = str(tmp_path / "model")
    options = ["--dim", "4", "--epochs", "1", "--license", "CC0-1.0"]
    assert CliRunner().invoke(cli, ["train", "skipgram", str(data), "-o", folder, *options]).exit_code == 0
    shown = json.loads(CliRunner().invoke(cli, ["info", folder, "--json"]).stdout)["card"]
    assert shown == json.loads(json.dumps(card_values(firth.load(folder))))
    assert shown["license"] == "CC0-1.0" and set(firth.SkipGram.limits) < set(shown["limits"])
    text = CliRunner().invoke(cli, ["info", folder]).stdout
    assert "card.license" in text and "CC0-1.0" in text and "ignored. The model reflects" in " ".join(text.split())


def test_notebooks_show_a_summary():
    model = firth.SkipGram(dim=4, epochs=3).fit(TEXTS)
    shown = model._repr_html_()
    assert "<td>options</td><td>dim 4, epochs 3</td>" in shown
    assert "<td>data</td>" in shown and f"loss {model.training['loss']:.4g}" in shown
