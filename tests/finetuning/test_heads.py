"""Fine-tuned networks of every family: loaded from transformers' folders and opened by it, with the same logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from encoder_folders import FAMILIES, tokenizer_of, write_folder
from refusing import refuses
from safetensors.numpy import load_file, save_file
from tuned import PAIRS, TEXTS, fine_tuned, ours, theirs

import firth
from firth.core.model import DescribesEngine
from firth.transformers.families import ENCODERS
from firth.transformers.families.family import SEQUENCE, SPAN, TOKEN

KINDS = {SEQUENCE: "Classifier", TOKEN: "Tagger", SPAN: "Answers"}
CASES = [(family, kind) for family in FAMILIES for kind in KINDS if (family, kind) != ("nomic_bert", SPAN)]


def close(first: list[torch.Tensor], second: list[torch.Tensor]) -> None:
    assert max(float(each.abs().max()) for each in second) > 0.005  # not all zero
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-5)


def reopened(folder: Path, kind: str) -> tuple[Any, Any]:
    """A folder as transformers opens it: every array is used, none is missing."""
    net, loaded = getattr(transformers, f"AutoModel{kind}").from_pretrained(folder, output_loading_info=True)
    assert not any(loaded.values())
    return net.eval(), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_logits_are_those_of_transformers(family, kind, tmp_path):
    labels = {} if kind == SPAN else {"num_labels": 3}
    net = write_folder(tmp_path / "theirs", family, kind, **labels)
    model = firth.load(tmp_path / "theirs")
    assert repr(model).startswith(KINDS[kind]) and ENCODERS[family].title in repr(model)
    engine = "torch, because" if family == "deberta-v2" else "native on a CPU"
    assert isinstance(model, DescribesEngine)
    assert model.engine_description.startswith(f"torch for predictions; for vectors, {engine}")
    tokenizer = tokenizer_of(family)
    both: list[list[Any]] = [TEXTS, PAIRS]
    expected = [theirs(net, tokenizer, inputs) for inputs in both]
    for inputs, logits in zip(both, expected, strict=True):
        close(ours(model, inputs), logits)
    model.save(tmp_path / "ours")
    again, tokenizer = reopened(tmp_path / "ours", kind)
    for inputs, logits in zip(both, expected, strict=True):
        close(theirs(again, tokenizer, inputs), logits)
        close(ours(firth.load(tmp_path / "ours"), inputs), logits)


def test_the_mean_is_a_pooling_of_modernberts_head(tmp_path):
    net = write_folder(tmp_path / "theirs", "modernbert", SEQUENCE, classifier_pooling="mean")
    model = firth.load(tmp_path / "theirs", firth.TextClassifier)
    assert model.net.pool == "mean"
    expected = theirs(net, tokenizer_of("modernbert"), TEXTS)
    close(ours(model, TEXTS), expected)
    model.save(tmp_path / "ours")
    close(theirs(*reopened(tmp_path / "ours", SEQUENCE), TEXTS), expected)


def test_one_output_is_a_regressor(tmp_path):
    net = write_folder(tmp_path, "mpnet", SEQUENCE, num_labels=1)
    numbers = firth.load(tmp_path, firth.TextRegressor).estimate(TEXTS)
    expected = torch.cat(theirs(net, tokenizer_of("mpnet"), TEXTS))
    torch.testing.assert_close(torch.from_numpy(numbers), expected, atol=2e-5, rtol=0)


def test_several_labels_per_text_are_refused(tmp_path):
    write_folder(tmp_path, "roberta", SEQUENCE, num_labels=3, problem_type="multi_label_classification")
    with refuses("unsupported_architecture", name="problem_type", got="multi_label_classification"):
        firth.load(tmp_path)


def test_texts_cut_at_the_left_are_refused(tmp_path):
    write_folder(tmp_path, "roberta", SEQUENCE)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "truncation_side": "left"}))
    with refuses("unsupported_architecture", name="truncation_side", got="left"):
        firth.load(tmp_path)


@pytest.mark.parametrize(
    ("family", "missing"),
    [("roberta", "classifier.dense"), ("distilbert", "pre_classifier"), ("modernbert", "head.norm")],
)
def test_a_head_without_a_layer_is_refused(family, missing, tmp_path):
    write_folder(tmp_path, family, SEQUENCE)
    file = tmp_path / "model.safetensors"
    arrays = load_file(file)
    del arrays[f"{missing}.weight"]
    save_file(arrays, file)
    with refuses("incomplete_model", name=missing):
        firth.load(tmp_path)


def test_a_misshapen_layer_is_refused(tmp_path):
    write_folder(tmp_path, "electra", SEQUENCE)
    file = tmp_path / "model.safetensors"
    arrays = load_file(file)
    save_file({**arrays, "classifier.dense.weight": arrays["classifier.dense.weight"][:8]}, file)
    with refuses("damaged_model", dim=32):
        firth.load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_opens_what_firth_fine_tuned(family, kind, tmp_path):
    write_folder(tmp_path / "base", family)
    model = fine_tuned(kind, firth.load(tmp_path / "base"))
    model.save(tmp_path / "tuned")
    expected = ours(model, TEXTS)
    close(ours(firth.load(tmp_path / "tuned"), TEXTS), expected)
    if kind in ENCODERS[family].heads:
        close(theirs(*reopened(tmp_path / "tuned", kind), TEXTS), expected)
