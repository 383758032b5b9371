"""Everything that is done with a BERT is done with a loaded encoder of every family; bad folders are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from click.testing import CliRunner
from encoder_folders import FAMILIES, tokenizer_of, write_folder
from refusing import refuses
from safetensors.numpy import load_file, save_file

import firth
from firth.cli.main import cli
from firth.core import memory
from firth.transformers.families import DECODERS, ENCODER_DECODERS, ENCODERS
from firth.transformers.huggingface_folder import METHODS, known_options

TEXTS = tiny.texts()[:12]
RUN = firth.Run(seed=3, threads=1)


def opened(folder: Path, family: str, **settings: Any) -> tuple[Any, Any]:
    net = write_folder(folder, family, **settings)
    return net, firth.load(folder, firth.BERT)


@pytest.mark.parametrize("family", FAMILIES)
def test_blanks_and_attention_are_those_of_transformers(family, tmp_path):
    net, model = opened(tmp_path / "net", family)
    tokenizer = tokenizer_of(family)
    words = TEXTS[0].split()
    text = " ".join([*words[:2], tokenizer.mask_token, *words[3:]])
    read = tokenizer(text, return_tensors="pt")
    position = read["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    if not getattr(net.config, "type_vocab_size", 0) > 1:
        read.pop("token_type_ids", None)
    with torch.inference_mode():
        outputs = net(**read, output_attentions=True)
    best = torch.softmax(outputs.logits[0, position], dim=-1).topk(3)
    (blank,) = model.fill(text, k=3)
    assert [token for token, _ in blank] == tokenizer.convert_ids_to_tokens(best.indices.tolist())
    np.testing.assert_allclose([probability for _, probability in blank], best.values, atol=1e-5)
    weights = model.attention(text).weights
    np.testing.assert_allclose(weights, torch.cat(outputs.attentions), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_info_says_which_engine_and_why(family, tmp_path):
    write_folder(tmp_path, family)
    engine = json.loads(CliRunner().invoke(cli, ["info", str(tmp_path), "--json"]).stdout)["engine"]
    reason = "torch, because the native engine does not support disentangled attention"
    assert engine == (reason if family == "deberta-v2" else "native on a CPU, torch on a GPU")


def test_the_engine_depends_on_the_pooling(tmp_path):
    _, model = opened(tmp_path, "mpnet")
    last = model.with_pooling(how="cls+lasttoken")
    assert last.engine_description == "torch, because the native engine does not support the pooling lasttoken"
    prompts = model.with_settings(prompts={"query": "the "})
    assert prompts.engine_description == model.engine_description
    skipped = prompts.with_pooling(include_prompt=False).engine_description
    assert skipped == "native on a CPU, torch on a GPU; torch for texts with a prompt, which the pooling leaves out"


@pytest.mark.parametrize("family", FAMILIES)
def test_words_senses_search_and_distillation(family, tmp_path):
    _, model = opened(tmp_path / "net", family)
    word = TEXTS[0].split()[1]
    texts = [text for text in tiny.texts() if word in text.split()][:4]
    words = model.word_vectors(texts)
    assert all(word in each.words and each.vectors.shape == (len(each.words), 32) for each in words)
    senses = model.senses(texts, word)
    assert senses.distances.shape[0] == 3 and len(senses.occurrences) >= len(texts)
    with firth.Index.create(tmp_path / "index", dim=32, model=model) as index:
        index.add(list(map(str, range(len(TEXTS)))), model.embed(TEXTS))
        assert [index.search(text, k=1)[0].key for text in TEXTS[:5]] == list(map(str, range(5)))
    precision = "float32" if family == "deberta-v2" else "int8"  # which the native engine computes
    student = firth.Distil(dim=8, precision=precision).fit(tiny.texts()[:200], RUN, model)
    assert student.training["agreement"] > 0.3  # of the cosines of held-out texts, with the teacher's
    student.save(tmp_path / "student")
    again = firth.load(tmp_path / "student", firth.Distil)
    np.testing.assert_array_equal(again.embed(TEXTS), student.embed(TEXTS))


@pytest.mark.parametrize("family", FAMILIES)
def test_pre_training_continues(family, tmp_path):
    net, model = opened(tmp_path / "net", family)
    shape = known_options(model) if family == "bert" else {}  # others take the size of start
    settings = {
        **shape,
        "next_sentence": False,
        "epochs": 2,
        "learning_rate": 5e-3,
        "held_out": 0.2,
        "batch_tokens": 512,
    }
    settings.pop("normalize", None)
    method = firth.BERT(**{**settings, "dropout": 0.1 if family == "bert" else 0.0})
    trained = method.fit(tiny.texts()[:300], RUN, model)
    assert trained.size.family == model.size.family == ENCODERS[family].model_type
    history = trained.training["held_out"]
    assert history[-1]["held_out_loss"] < history[0]["held_out_loss"]
    trained.save(tmp_path / "trained")
    again = type(net).from_pretrained(tmp_path / "trained").eval()  # transformers opens it, with the same vectors
    read = tokenizer_of(family)(TEXTS[0], return_tensors="pt")
    if not getattr(net.config, "type_vocab_size", 0) > 1:
        read.pop("token_type_ids", None)
    with torch.inference_mode():
        hidden = again(**read, output_hidden_states=True).hidden_states[-1][0]
    np.testing.assert_allclose(trained.states(TEXTS[0])[-1], hidden, atol=2e-5)
    assert not np.allclose(trained.states(TEXTS[0])[-1], model.states(TEXTS[0])[-1], atol=1e-2)


# ---- what opens ----


def test_the_table_of_methods_lists_the_families():
    """`huggingface_folder` repeats the names, because it must not import torch."""
    families = {*ENCODERS, *DECODERS, *ENCODER_DECODERS}
    assert set(METHODS) - {"model2vec"} == families


def test_an_unknown_architecture_is_refused_with_the_list(tmp_path):
    write_folder(tmp_path, "bert")
    change(tmp_path / "config.json", model_type="mamba2")
    with refuses("unsupported_architecture", kind="mamba2", choices=", ".join(METHODS)):
        firth.load(tmp_path)


def test_code_of_a_folder_is_never_executed(tmp_path):
    """A folder of NomicBERT with its own code: it is opened by the network of the family, or refused by its name."""
    write_folder(tmp_path, "nomic_bert")
    (tmp_path / "modeling_own.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    auto_map = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    change(tmp_path / "config.json", auto_map=auto_map)
    assert np.isfinite(firth.load(tmp_path, firth.BERT).embed(TEXTS)).all()
    change(tmp_path / "config.json", model_type="own_bert")
    with refuses("unsupported_architecture", kind="own_bert"):
        firth.load(tmp_path)
    assert not (tmp_path / "executed").exists()


# ---- bad folders ----


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("family", FAMILIES)
def test_damaged_weights_are_named(family, tmp_path):
    write_folder(tmp_path, family)
    file = tmp_path / "model.safetensors"
    arrays = load_file(file)
    layer = {"albert": "albert_layers", "distilbert": "layer.1.", "modernbert": "layers.1.", "nomic_bert": "layers.1."}
    names = [name for name in arrays if layer.get(family, "layer.1.") in name and arrays[name].ndim == 2]
    name = max(names, key=len)
    without = {other: array for other, array in arrays.items() if other != name}
    for damaged, code in (
        (without, "damaged_model"),
        ({**arrays, name: arrays[name][:-1]}, "damaged_model"),
        ({**arrays, name: np.full_like(arrays[name], np.nan)}, "damaged_model"),
    ):
        save_file(damaged, file, {"format": "pt"})
        with pytest.raises(firth.FirthError) as error:
            firth.load(tmp_path)
        stem = name.removeprefix(ENCODERS[family].prefix)
        assert error.value.code == code and stem in f"{error.value.values}", error.value


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_larger_than_the_embedding_is_refused(family, tmp_path):
    net = write_folder(tmp_path, family, vocab_size=300)
    with refuses("invalid_tokenizer", n_tokenizer=len(tokenizer_of(family)), rows=300):
        firth.load(tmp_path)
    assert net.config.vocab_size == 300


def test_a_missing_shard_is_named(tmp_path):
    net = write_folder(tmp_path, "mpnet")
    (tmp_path / "model.safetensors").unlink()
    net.save_pretrained(tmp_path, max_shard_size="30KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    assert np.isfinite(firth.load(tmp_path, firth.BERT).embed(TEXTS)).all()
    shards[1].unlink()
    with refuses("incomplete_model", name=shards[1].name):
        firth.load(tmp_path)


def test_an_encoder_larger_than_memory_is_refused_with_both_sizes(tmp_path, monkeypatch):
    net = write_folder(tmp_path / "net", "mpnet")
    (tmp_path / "meminfo").write_text("MemAvailable:       100 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    needed = 4 * sum(part.numel() for part in net.parameters())
    with pytest.raises(firth.FirthError) as error:
        firth.load(tmp_path / "net")
    assert error.value.code == "out_of_memory" and error.value.values["available"] == 102_400 / 1e9
    assert error.value.values["needed"] == pytest.approx(needed / 1e9, rel=0.2)
