"""ONNX files against the model they were written from: every family and pooling, padded texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from encoder_folders import FAMILIES, write_folder
from refusing import refuses

import firth
from firth.data.world import World
from firth.nets.encoder import Encoder
from firth.transformers.bert_files import size_of
from firth.transformers.bert_model import BertModel
from firth.transformers.pooling import Pooling

SENTENCES = list(World(seed=4).sentences(60))


@pytest.fixture(scope="module")
def model() -> BertModel:
    torch.manual_seed(2)
    tokenizer = firth.WordPiece(size=300).train(SENTENCES)
    return small(tokenizer, "gelu")


def small(tokenizer, activation: str) -> BertModel:
    method = firth.BERT(layers=2, dim=24, heads=3, context_length=32, activation=activation)
    net = Encoder(len(tokenizer), size_of(method), masked=False, next_sentence=False)
    for part in net.parameters():
        torch.nn.init.normal_(part, std=0.3)
    return BertModel(method, net, tokenizer, Pooling(), {})


def run(path, model: BertModel, texts=SENTENCES) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    token_ids = [encoding.ids for encoding in model.read(texts)]
    ids = np.zeros((len(token_ids), max(map(len, token_ids))), np.int64)
    mask = np.zeros_like(ids)
    for row, each in enumerate(token_ids):
        ids[row, : len(each)], mask[row, : len(each)] = each, 1
    assert mask.min() == 0  # some are padded
    (vectors,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    return np.asarray(vectors)


@pytest.mark.parametrize(
    "settings",
    [
        {"normalize": True},
        {"how": "cls"},
        {"how": "max", "layers": (1, -1), "combine": "concat"},
        {"how": "sum", "layers": (0, -2), "combine": "sum"},
        {"layers": (0, 1, 2), "combine": "mean", "normalize": True},
    ],
    ids=str,
)
def test_the_file_gives_the_same(model, settings, tmp_path):
    changed = model.with_pooling(**settings)
    firth.export(changed, tmp_path / "model.onnx")
    expected = changed.embed(SENTENCES, device="cpu")
    vectors = run(tmp_path / "model.onnx", changed)
    assert vectors.shape == expected.shape
    np.testing.assert_allclose(vectors, expected, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "deberta-v2"])
def test_every_family(family, tmp_path):
    write_folder(tmp_path / "model", family)
    model = firth.load(tmp_path / "model", firth.BERT)
    poolings: list[dict[str, Any]] = [{}, {"layers": (0, 1, -1), "combine": "concat"}]
    for number, settings in enumerate(poolings):
        changed = model.with_pooling(**settings)
        firth.export(changed, tmp_path / f"{number}.onnx")
        expected = changed.embed(SENTENCES, device="cpu")
        np.testing.assert_allclose(run(tmp_path / f"{number}.onnx", changed), expected, atol=2e-5)


def test_disentangled_attention_is_refused(tmp_path):
    write_folder(tmp_path, "deberta-v2")
    with refuses("unsupported_model", reason="disentangled attention"):
        firth.load(tmp_path, firth.BERT).to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_shared_layers_are_written_once(tmp_path):
    sizes = []
    for layers in (2, 6):
        write_folder(tmp_path / str(layers), "albert", num_hidden_layers=layers)
        firth.export(firth.load(tmp_path / str(layers)), tmp_path / "model.onnx")
        sizes.append((tmp_path / "model.onnx").stat().st_size)
    assert sizes[1] < sizes[0] + 30_000  # nodes, no weights


@pytest.mark.parametrize("activation", ["gelu_tanh", "relu"])
def test_activations(model, activation, tmp_path):
    changed = small(model.tokenizer, activation)
    firth.export(changed, tmp_path / "model.onnx")
    expected = changed.embed(SENTENCES, device="cpu")
    np.testing.assert_allclose(run(tmp_path / "model.onnx", changed), expected, atol=1e-5)


def test_whitening_is_inside(model, tmp_path):
    changed = model.whitened(SENTENCES, dim=6).with_pooling(normalize=True)
    firth.export(changed, tmp_path / "model.onnx")
    expected = changed.embed(SENTENCES, device="cpu")
    np.testing.assert_allclose(run(tmp_path / "model.onnx", changed), expected, atol=1e-4)


def test_a_path_may_be_a_text(model, tmp_path):
    model.to_onnx(str(tmp_path / "model.onnx"))
    assert run(tmp_path / "model.onnx", model).shape == (len(SENTENCES), model.size.dim)


def test_only_a_bert_becomes_onnx(tmp_path):
    words = firth.SkipGram(dim=4, epochs=1, min_count=1).fit(firth.Corpus(SENTENCES))
    with refuses("unsupported_model", method="skipgram"):
        firth.export(words, tmp_path / "model.onnx")
    with refuses("unknown_format", got="model.pt"):
        firth.export(words, tmp_path / "model.pt")
