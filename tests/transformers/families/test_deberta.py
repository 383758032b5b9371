"""A DeBERTa in a folder of transformers: vectors, masked tokens, attention, fine-tuning and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from refusing import refuses
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import firth

WORDS = [
    "the", "a", "big", "small", "dog", "cat", "sees", "likes", "never", "every", "king", "queen", "tree", "house",
    "red", "blue", "runs", "sleeps",
]  # fmt: skip
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
TEXTS = ["the big dog sees a cat", "every king likes the red house never", "a tree", "the queen sleeps"]
SETTINGS = {
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "legacy": False,
}


def saved(folder: Path, **settings: Any) -> Any:
    vocabulary = {token: id for id, token in enumerate([*SPECIAL, *WORDS])}
    config = transformers.DebertaV2Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=24,
        initializer_range=0.2,
        **{**SETTINGS, **settings},
    )
    torch.manual_seed(1)
    net = transformers.DebertaV2ForMaskedLM(config).eval()
    net.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"tokenizer_class": "PreTrainedTokenizerFast"} | {f"{t[1:-1].lower()}_token": t for t in SPECIAL}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    return net


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("deberta")
    saved(path)
    return path


@pytest.fixture(scope="module")
def theirs(folder) -> Any:
    return transformers.DebertaV2ForMaskedLM.from_pretrained(folder).eval()


def test_vectors_and_engine(folder, theirs):
    model = firth.load(folder, firth.BERT)
    assert "DeBERTa" in repr(model)
    rows = model.with_pooling(how="mean", normalize=False).embed(TEXTS)
    for text, row in zip(TEXTS, rows, strict=True):
        with torch.inference_mode():
            states = theirs.deberta(torch.tensor([model.tokenizer.encode(text).ids])).last_hidden_state
        np.testing.assert_allclose(row, states[0].mean(0).numpy(), atol=1e-5)
    with refuses("unsupported_model", reason="disentangled attention"):
        model.embed(TEXTS, precision="int8")
    with refuses("unsupported_model", reason="disentangled attention"):
        model.to_onnx(folder / "model.onnx")


def test_masked_tokens_are_those_of_transformers(folder, theirs):
    model = firth.load(folder, firth.BERT)
    ids = model.tokenizer.encode("the [MASK] sees a [MASK]").ids
    with torch.inference_mode():
        expected = torch.softmax(theirs(torch.tensor([ids])).logits[0], dim=-1)
    for position, guesses in zip((2, 5), model.fill("the [MASK] sees a [MASK]", k=3), strict=True):
        best = expected[position].topk(3)
        assert [model.tokenizer.ids[token] for token, _ in guesses] == best.indices.tolist()
        np.testing.assert_allclose([p for _, p in guesses], best.values.numpy(), atol=1e-5)


def test_attention_is_that_of_transformers(folder, theirs):
    attention = firth.load(folder, firth.BERT).attention(TEXTS[0])
    ids = torch.tensor([firth.load(folder, firth.BERT).tokenizer.encode(TEXTS[0]).ids])
    with torch.inference_mode():
        expected = theirs.deberta(ids, output_attentions=True).attentions
    np.testing.assert_allclose(attention.weights, torch.stack(expected)[:, 0].numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"type_vocab_size": 2, "position_biased_input": True, "share_att_key": False}]
)
def test_saved_folders_open_in_both(settings, tmp_path):
    net = saved(tmp_path / "theirs", **settings)
    model = firth.load(tmp_path / "theirs", firth.BERT)
    model.save(tmp_path / "ours")
    np.testing.assert_array_equal(firth.load(tmp_path / "ours", firth.BERT).embed(TEXTS), model.embed(TEXTS))
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "ours").eval()
    ids = torch.tensor([model.tokenizer.encode(TEXTS[1]).ids])
    with torch.inference_mode():
        torch.testing.assert_close(again(ids).logits, net(ids).logits, atol=1e-5, rtol=1e-5)


def test_fine_tuning_trains_the_distances_too(folder):
    base = firth.load(folder, firth.BERT)
    texts = [f"the {word} {other}" for word in WORDS for other in WORDS[:6]]
    labels = ["animal" if " dog " in f"{text} " or " cat " in f"{text} " else "none" for text in texts]
    method = firth.TextClassifier(epochs=6, learning_rates="3e-3", restarts=1)
    model = method.fit(
        firth.Examples([{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]),
        firth.Run(threads=1),
        base,
    )
    accuracy = np.mean([each[0][0] == label for each, label in zip(model.predict(texts), labels, strict=True)])
    assert accuracy > 0.95
    tables = [net.stack.distances for net in (base.net, model.base.net)]
    before, after = (table.table.weight for table in tables if table is not None)
    assert float((before - after).detach().abs().max()) > 1e-4


@pytest.mark.parametrize(
    ("change", "code", "name"),
    [
        ({"conv_kernel_size": 3}, "unsupported_architecture", "conv_kernel_size"),
        ({"embedding_size": 16}, "unsupported_architecture", "embedding_size"),
        ({"pos_att_type": ["p2p"]}, "unsupported_architecture", "pos_att_type"),
        ({"pos_att_type": 3}, "damaged_model", "pos_att_type"),
        ({"position_buckets": "many"}, "damaged_model", "position_buckets"),
    ],
)
def test_settings_that_are_not_supported_are_named(folder, change, code, name, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with refuses(code, name=name):
        firth.load(tmp_path, firth.BERT)


def test_a_missing_distance_table_is_named(folder, tmp_path):
    from safetensors.numpy import load_file, save_file

    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    arrays = load_file(folder / "model.safetensors")
    table = arrays.pop("deberta.encoder.rel_embeddings.weight")
    save_file(arrays, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with refuses("damaged_model", problem="encoder.rel_embeddings.weight missing"):
        firth.load(tmp_path, firth.BERT)
    arrays["deberta.encoder.rel_embeddings.weight"] = np.full_like(table, np.nan)
    save_file(arrays, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with refuses("damaged_model", array="encoder.rel_embeddings.weight"):
        firth.load(tmp_path, firth.BERT)
