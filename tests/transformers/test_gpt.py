"""GPT: equal to Hugging Face's GPT-2, and it learns what the invented world says."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from refusing import refuses

import firth
from firth.data.subwords import BPE
from firth.data.world import World
from firth.transformers.families.family import Config
from firth.transformers.families.gpt2 import GPT2
from firth.transformers.gpt_model import END, GPTModel

TEXTS = list(World(seed=33).sentences(1500))
ALONE = firth.Run(threads=1)  # two processes that share two cores wait for each other when each has two threads
SETTINGS: dict[str, Any] = {
    "layers": 2,
    "dim": 48,
    "heads": 2,
    "context_length": 40,
    "vocabulary_size": 400,
    "dropout": 0.0,
    "batch_tokens": 512,
}


@pytest.fixture(scope="module")
def model() -> GPTModel:
    return firth.GPT(**SETTINGS, epochs=8, learning_rate=4e-3).fit(TEXTS, ALONE)


def test_it_learns_the_language(model):
    """Far less surprised by new sentences than one who knows how often each token comes, and nothing else."""
    new = list(World(seed=33).sentences(1700))[1500:]
    ids = [token for text in TEXTS for token in [*model.tokenizer.encode(text).ids, 0]]
    counts = Counter(ids)
    tokens = [token for text in new for token in model.tokenizer.encode(text).ids]
    frequency = -sum(math.log((counts[token] + 1) / (len(ids) + 400)) for token in tokens) / len(tokens)
    result = model.perplexity(new)
    assert result.tokens == len(tokens) and result.loss < frequency - 1.5
    assert result.perplexity == pytest.approx(math.exp(result.loss))
    assert abs(model.training["held_out_loss"] - result.loss) < 0.5


def test_perplexity_is_that_of_each_token_given_those_before(model):
    text = TEXTS[0]
    ids = model.ids(text)
    with torch.no_grad():
        logits = model.net.logits(model.net(torch.tensor([ids])))[0, :, : len(model.tokenizer)]
    expected = -torch.log_softmax(logits, -1)[range(len(ids) - 1), ids[1:]].mean()
    assert model.perplexity([text]).loss == pytest.approx(float(expected), rel=1e-5)
    long = " ".join(TEXTS[:30])
    assert model.perplexity([long]).tokens == len(
        model.tokenizer.encode(long).ids
    )  # a context at a time, none left out


def test_the_last_place_is_learned_too():
    """A text of `context` tokens stands behind the token that begins it: the place of its last token is one more. From
    there the next token is told at least as well as with one token less before it."""
    model = firth.GPT(**SETTINGS | {"context_length": 3}, epochs=4, learning_rate=4e-3).fit(TEXTS, ALONE)
    ids = torch.tensor([model.tokenizer.encode(text).ids[:5] for text in TEXTS])
    with torch.no_grad():
        whole, less = (model.net.logits(model.net(ids[:, first:4]))[:, -1] for first in (0, 1))
    losses = [float(torch.nn.functional.cross_entropy(logits, ids[:, 4])) for logits in (whole, less)]
    assert losses[0] < losses[1] + 0.05


def test_a_saved_folder_is_hugging_faces_too(model, tmp_path: Path):
    model.save(tmp_path / "gpt")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "gpt")
    ids = torch.tensor([model.ids(TEXTS[1])])
    assert tokenizer(TEXTS[1])["input_ids"] == ids[0, 1:].tolist()
    with torch.no_grad():
        ours = model.net.logits(model.net(ids))[..., : len(model.tokenizer)]
        torch.testing.assert_close(theirs(ids).logits, ours, atol=1e-4, rtol=1e-4)
        greedy = theirs.generate(
            ids, max_new_tokens=12, do_sample=False, attention_mask=torch.ones_like(ids), pad_token_id=0
        )
    text = "".join(model.generate(TEXTS[1], 12, temperature=0))
    expected = model.tokenizer.decode(greedy[0, ids.shape[1] :].tolist())
    assert text == expected.split(END)[0]


def test_loaded_weights_have_the_memory_layout_of_trained_ones(model, tmp_path: Path):
    """GPT-2 stores its matrices transposed; the last bits of products depend on the layout."""
    model.save(tmp_path / "gpt")
    loaded = firth.load(tmp_path / "gpt", firth.GPT)
    strides = [[weight.stride() for weight in each.net.parameters()] for each in (model, loaded)]
    assert strides[0] == strides[1]


def test_hugging_faces_folders_open(tmp_path: Path):
    tokenizer = BPE(size=300, special_tokens=(END,)).train(TEXTS)
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=300, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(1)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    tokenizer.save(tmp_path / "tokenizer.json")
    model = firth.load(tmp_path, firth.GPT)
    ids = torch.randint(300, (2, 50))
    with torch.no_grad():
        torch.testing.assert_close(model.net.logits(model.net(ids)), theirs(ids).logits, atol=1e-4, rtol=1e-4)
        weights = transformers.GPT2LMHeadModel.from_pretrained(tmp_path, attn_implementation="eager")(
            torch.tensor([model.ids("the king")]), output_attentions=True
        ).attentions
    attention = model.attention("the king")
    np.testing.assert_allclose(attention.weights, torch.cat(weights).numpy(), atol=1e-5)
    model.save(tmp_path / "again")
    assert firth.load(tmp_path / "again").method == model.method


@pytest.mark.parametrize(
    "setting",
    [
        {"layer_norm_epsilon": 0.1},
        {"scale_attn_weights": False},
        {"scale_attn_by_inverse_layer_idx": True},
        {"activation_function": "gelu_pytorch_tanh"},
    ],
)
def test_unusual_gpt2_folders_compute_what_their_config_says(tmp_path: Path, setting):
    """And still do when Firth has saved them: read by Firth, and by Hugging Face."""
    theirs = written_by_others(tmp_path / "theirs", **setting)
    firth.load(tmp_path / "theirs").save(tmp_path / "again")
    ids = torch.randint(300, (2, 50))
    with torch.no_grad():
        expected = theirs(ids).logits
        for folder in ("theirs", "again"):
            net = firth.load(tmp_path / folder, firth.GPT).net
            torch.testing.assert_close(net.logits(net(ids)), expected, atol=1e-4, rtol=1e-4)
        again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
        torch.testing.assert_close(again(ids).logits, expected, atol=1e-4, rtol=1e-4)


def test_a_gpt2_with_separate_outputs(tmp_path: Path):
    theirs, ids = written_by_others(tmp_path / "theirs", tie_word_embeddings=False), torch.randint(300, (2, 50))
    firth.load(tmp_path / "theirs").save(tmp_path / "again")
    with torch.no_grad():
        for folder in ("theirs", "again"):
            net = firth.load(tmp_path / folder, firth.GPT).net
            torch.testing.assert_close(net.logits(net(ids)), theirs(ids).logits, atol=1e-4, rtol=1e-4)


def written_by_others(folder: Path, **settings) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=300, bos_token_id=0, eos_token_id=0, **settings
    )
    torch.manual_seed(1)
    net: transformers.GPT2LMHeadModel = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for weights in net.parameters():  # far from the start, where every setting makes a difference
            weights.normal_(std=0.3)
    net.save_pretrained(folder)
    BPE(size=300, special_tokens=(END,)).train(TEXTS).save(folder / "tokenizer.json")
    return net


@pytest.mark.parametrize(
    ("change", "code", "values"),
    [
        ({"n_layer": 3}, "damaged_model", {"layers": 3}),
        ({"n_layer": 1}, "damaged_model", {"layers": 1}),
        ({"n_layer": "many"}, "damaged_model", {"name": "n_layer", "got": "many"}),
        ({"activation_function": "mish"}, "unsupported_architecture", {"name": "activation_function", "got": "mish"}),
        ({"n_embd": 16}, "damaged_model", {}),
        ({"vocab_size": 10}, "damaged_model", {"name": "vocab_size", "got": 10}),
    ],
)
def test_folders_that_do_not_fit_are_refused(tmp_path: Path, change, code, values):
    transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_layer=2, n_embd=32, n_head=4, n_positions=64, vocab_size=300, bos_token_id=0, eos_token_id=0
        )
    ).save_pretrained(tmp_path)
    BPE(size=300, special_tokens=(END,)).train(TEXTS).save(tmp_path / "tokenizer.json")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with refuses(code, **values) as caught:
        firth.load(tmp_path)
    if values.keys() == {"layers"}:
        assert caught.value.values["problem"].endswith("missing" if change["n_layer"] == 3 else "unexpected")


def test_writing(model):
    one, same, other = ("".join(model.generate("the king", 30, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other
    pieces = list(model.generate("the king", 30, seed=1))
    assert len(pieces) > 3 and "".join(pieces) == one
    stopped = "".join(model.generate("the king", 30, seed=1, stop=one[5:8]))
    assert stopped == one[: one.index(one[5:8])]
    assert list(model.generate("", 0)) == []
    with refuses("text_too_long", tokens=100, limit=40):
        model.generate("the king", 100)
    long = "".join(model.generate("the king", 100, slide=True, temperature=1.0))
    assert long.startswith("".join(model.generate("the king", 10, temperature=1.0)))
    long = " ".join(TEXTS[:20])
    with refuses("text_too_long", tokens=len(model.tokenizer.encode(long).ids), limit=40):
        model.generate(long)


def test_vectors_move_with_their_context(model):
    states = model.states("the king sleeps")
    tokens = model.tokenizer.encode("the king sleeps").ids
    assert states.shape == (3, len(tokens), 48)
    np.testing.assert_allclose(model.embed(["the king sleeps"])[0], states[-1].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(model.embed(["the king sleeps"], layer=1)[0], states[1].mean(axis=0), rtol=1e-5)
    after = model.states("a the king sleeps")
    assert np.abs(after[-1, -1] - states[-1, -1]).max() > 1e-3
    assert not model.embed([""]).any()
    with refuses("invalid_value", option="layer", limit=2, got=3):
        model.embed(["a"], layer=3)


def test_attention_looks_back_only(model):
    attention = model.attention("the king sleeps")
    assert (
        attention.weights.shape[:2] == (2, 2)
        and attention.queries[0] == END
        and "".join(attention.queries[1:]) == "the king sleeps"
    )
    np.testing.assert_allclose(attention.weights.sum(-1), 1, atol=1e-5)
    assert not np.triu(attention.weights, 1).any()
    with refuses("unsupported_model", got=2):
        model.attention("a", "b")


def test_without_position_encoding(tmp_path: Path):
    """Positions are told by the causal mask alone; texts are generated by the same engine, and the folder opens."""
    settings = SETTINGS | {"positions": "none", "epochs": 1}
    model = firth.GPT(**settings).fit(TEXTS[:100], ALONE)
    first, second = model.states("the king the king")[0], model.states("the king")[0]
    np.testing.assert_array_equal(first[: len(second)], second)
    np.testing.assert_allclose(first[len(second) + 1 :], second[1:], atol=1e-6)  # no position in the input
    model.save(tmp_path / "gpt")
    again = firth.load(tmp_path / "gpt", firth.GPT)
    assert again.size.positions == "none"
    assert "".join(again.generate("the", 20)) == "".join(model.generate("the", 20))


def test_characters_and_other_blocks(tmp_path: Path):
    """Rotary places and a gate are no GPT-2: the folder is Firth's alone, and opens as it was."""
    settings = SETTINGS | {"tokenizer": "characters", "positions": "rotary", "activation": "swiglu", "epochs": 1}
    model = firth.GPT(**settings).fit(TEXTS[:100], ALONE)
    model.save(tmp_path / "gpt")
    again = firth.load(tmp_path / "gpt", firth.GPT)
    assert "".join(again.generate("the", 20)) == "".join(model.generate("the", 20))
    assert "model_type" not in json.loads((tmp_path / "gpt" / "config.json").read_text())
    assert GPT2.architecture(Config({"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4})).feedforward_dim == 32


def test_going_on_from_a_model(model):
    more = list(World(seed=34).sentences(300))
    again = firth.GPT(**SETTINGS, epochs=1, learning_rate=1e-3).fit(more, ALONE, start=model)
    assert again.tokenizer is model.tokenizer and again.perplexity(more).loss < model.perplexity(more).loss
    with refuses("incompatible_start", existing="layers=2, context_length=40"):
        firth.GPT(**SETTINGS | {"layers": 1, "context_length": 20}).fit(more, ALONE, start=model)
    settings = SETTINGS | {"dropout": 0.2, "feedforward_dim": 4 * 48}  # the same weights, otherwise said
    other = firth.GPT(**settings, epochs=1, learning_rate=1e-3).fit(more[:50], ALONE, start=model)
    assert other.net.size.dropout == 0.2 and model.net.size.dropout == 0.0


def test_bad_input():
    with refuses("invalid_value", option="GPT.dim", got=10, heads=3):
        firth.GPT(dim=10, heads=3).fit(TEXTS, ALONE)
    model = firth.GPT(**SETTINGS, epochs=1).fit(TEXTS[:50], ALONE)
    with refuses("empty_data"):
        model.perplexity([])
