"""Damaged folders of models and checkpoints: used or refused, never an error of Python's own.

A few of the cases of tests/fuzz, which runs all of them (`make fuzz`).
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import damaged_copy, damages, fix_hashes
from fuzz import checkpoints as broken_runs
from fuzz import model_folders
from numpy.typing import NDArray
from refusing import refuses
from using import use

import firth
from firth.cli.info import unfinished_fields
from firth.core.checkpoint import Checkpoints
from firth.core.storage import read_arrays, write_arrays
from firth.core.stored import check_arrays

#: A method for each kind of model.
MODELS = [
    *("als", "autoencoder", "bert", "classify", "counts", "deepwalk", "distil", "doc2vec", "fasttext"),
    *(
        "fasttext_classifier",
        "glove",
        "gpt",
        "item2vec",
        "linear_classifier",
        "lsa",
        "multvae",
        "onehot",
        "pca",
        "pmi",
        "rating_factors",
    ),
    *("seq2seq", "skipgram", "tags", "vae"),
    *("network-roberta", "network-electra", "network-distilbert", "network-mpnet", "network-modernbert"),
    *("network-nomic_bert", "network-albert", "network-deberta-v2", "adapter"),
]
CASES = 14  # of each


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the undamaged model of a method, made once."""
    folder = tmp_path_factory.mktemp("models")
    return lambda name: model_folders.make_models(folder, [name])[name]


def some(folder: Path, count: int, seed: int = 3) -> list[Any]:
    return random.Random(seed).sample(list(damages(folder, seed)), count)


@pytest.mark.parametrize("name", MODELS)
def test_a_damaged_model_is_used_or_refused(name: str, tmp_path: Path, models: Callable[[str], Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = models(name)
        assert use(firth.load(place)) == []
        refused = 0
        for what, damage in some(place, CASES):
            copy = damaged_copy(place, tmp_path / "copy", damage)
            fix_hashes(copy)
            try:
                refused += bool(use(firth.load(copy)))
            except firth.FirthError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{name}: {what}") from error
    assert refused


def edited(place: Path, folder: Path, file: str, change: Any) -> Path:
    """A copy of a model with another JSON file, or with other arrays."""
    damaged_copy(place, folder, lambda _: None)
    path = folder / file
    if path.suffix == ".json":
        document = json.loads(path.read_text())
        path.write_text(json.dumps(change(document)))
    else:
        write_arrays(path, change({name: np.array(array) for name, array in read_arrays(path).items()}))
    fix_hashes(folder)
    return folder


def with_nan(name: str) -> Any:
    def change(arrays: dict[str, Any]) -> dict[str, Any]:
        arrays[name].reshape(-1)[-1] = np.nan
        return arrays

    return change


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("skipgram", "vectors.safetensors", lambda arrays: {**arrays, "outputs": arrays["outputs"][:-1]}),
        ("skipgram", "vocabulary.json", lambda document: [document]),
        ("deepwalk", "nodes.json", lambda document: {"keys": {}}),
        ("als", "vectors.safetensors", lambda arrays: {**arrays, "seen": arrays["seen"].astype(float)}),
        ("als", "vectors.safetensors", lambda arrays: {name: arrays[name] for name in arrays if name != "scale"}),
        ("als", "vectors.safetensors", with_nan("users")),
        ("rating_factors", "vectors.safetensors", with_nan("mean")),
        ("item2vec", "vectors.safetensors", lambda arrays: {**arrays, "outputs": arrays["outputs"][:, :-1]}),
        ("multvae", "vectors.safetensors", with_nan("net.last.bias")),
        ("pca", "vectors.safetensors", with_nan("mean")),
        ("counts", "vectors.safetensors", with_nan("values")),
        ("pmi", "vectors.safetensors", with_nan("counts")),
        ("vae", "vectors.safetensors", with_nan("net.decoder.straight.weight")),
        ("seq2seq", "vectors.safetensors", with_nan("decoder.blocks.0.attention.query_key_value.weight")),
        ("gpt", "model.safetensors", with_nan("transformer.h.0.mlp.c_proj.bias")),
        ("classify", "model.safetensors", with_nan("classifier.weight")),
        ("classify", "task.json", lambda document: ["x"]),
        ("classify", "task.json", lambda document: {**document, "labels": document["labels"][:-1]}),
        ("classify", "base.json", lambda document: {**document, "pool": "each"}),
        ("tags", "task.json", lambda document: {"labels": 1.5}),
        ("linear_classifier", "vectors.safetensors", lambda arrays: {**arrays, "weights": arrays["weights"][:-1]}),
        ("linear_regressor", "vectors.safetensors", lambda arrays: {**arrays, "weights": arrays["weights"][:-1]}),
    ],
)
def test_parts_that_do_not_fit_together(
    name: str, file: str, change: Any, tmp_path: Path, models: Callable[[str], Path]
) -> None:
    folder = edited(models(name), tmp_path / "copy", file, change)
    try:
        model = firth.load(folder)
    except firth.FirthError as error:
        codes = {error.code}
        assert str(folder) in str(error)
    else:
        codes = {error.code for error in use(model)}
    assert codes and codes <= {"damaged_model", "incomplete_model", "non_finite"}


def test_weights_too_large_to_compute_with_are_told(tmp_path: Path, models: Callable[[str], Path]) -> None:
    """Finite in the file, and infinite in the first product."""

    def change(arrays: dict[str, Any]) -> dict[str, Any]:
        for name in arrays:
            if name.endswith("value.weight"):
                arrays[name][:] = 3e38
        return arrays

    model: Any = firth.load(edited(models("bert"), tmp_path / "copy", "model.safetensors", change))
    for work in (
        lambda: model.embed(["the king"]),
        lambda: model.word_vectors(["the king"]),
        lambda: model.fill("[MASK]"),
    ):
        with pytest.raises(firth.FirthError) as caught:
            work()
        assert caught.value.code == "non_finite"


def test_a_tokenizer_that_points_outside_of_the_network(tmp_path: Path, models: Callable[[str], Path]) -> None:
    def change(document: Any) -> Any:
        document["post_processor"]["single"][1]["Sequence"]["type_id"] = 10**9
        return document

    folder = edited(models("bert"), tmp_path / "copy", "tokenizer.json", change)
    with refuses("invalid_tokenizer", folder=folder) as caught:
        firth.load(folder)
    assert str(folder) in str(caught.value)


def test_a_tokenizer_that_adds_ids_that_it_does_not_have(tmp_path: Path, models: Callable[[str], Path]) -> None:
    def change(document: Any) -> Any:
        document["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [2000]
        return document

    folder = edited(models("bert"), tmp_path / "copy", "tokenizer.json", change)
    with refuses("invalid_tokenizer", folder=folder, got=2000):
        firth.load(folder)


@pytest.mark.parametrize(
    ("name", "options"), [("gpt", {"dim": 65536, "heads": 1}), ("vae", {"hidden_sizes": "65536,65536,65536"})]
)
def test_options_that_would_take_more_memory_than_there_is(
    name: str, options: dict[str, Any], tmp_path: Path, models: Callable[[str], Path]
) -> None:
    """Shapes are compared before anything of their size is made."""

    def change(config: dict[str, Any]) -> dict[str, Any]:
        return config | {"options": config["options"] | options}

    with refuses("damaged_model") as caught:
        firth.load(edited(models(name), tmp_path / "copy", "config.json", change))
    shapes = {"problem"} if name == "gpt" else {"name", "expected", "got"}
    assert shapes | {"folder"} <= caught.value.values.keys()


def test_arrays_are_declared_by_dtype_and_sizes() -> None:
    arrays: dict[str, NDArray[Any]] = {
        "users": np.zeros((3, 2), np.float32),
        "starts": np.zeros(4, np.int64),
        "mean": np.zeros(1),
    }
    declared = {"users": "float users dim", "starts": "int64 users+1", "mean": "float 1"}
    assert check_arrays(arrays, **declared) == {"users": 3, "dim": 2}
    wrong: dict[str, list[NDArray[Any]]] = {
        "users": [np.zeros((3, 2), np.int32), np.zeros(3), np.zeros((2, 2)), np.zeros((3, 2, 1))],
        "starts": [np.zeros(3, np.int64), np.zeros(4, np.int32)],
        "mean": [np.zeros(2), np.zeros(())],
    }
    for name, others in wrong.items():
        for array in others:
            with pytest.raises(firth.FirthError) as caught:
                check_arrays({**arrays, name: array}, **declared)
            assert caught.value.code == "damaged_model"


@pytest.mark.parametrize("name", ["skipgram", "glove", "node2vec", "als", "fasttext_classifier", "vae", "gpt"])
def test_a_damaged_checkpoint_is_resumed_or_refused(name: str, tmp_path: Path) -> None:
    place = broken_runs.make_run(tmp_path / "runs", name)
    answers = []
    for number, (what, damage) in enumerate(some(place, 14)):
        copy = damaged_copy(place, tmp_path / "copy" / name, damage)
        if number % 2:
            broken_runs.fix_record(copy)
        try:
            answers.append(broken_runs.resume(copy))
        except Exception as error:
            raise AssertionError(f"{name}: {what}") from error
        assert not answers[-1].startswith("WRONG"), (what, answers[-1])
    assert "refused damaged_checkpoint" in answers
    assert broken_runs.resume(place) == "resumed"


def test_a_changed_byte_of_a_checkpoint_is_seen(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, 60, {"seed": 1})
    checkpoints.save({"table": np.ones((20, 30), np.float32)}, {"epoch": 4})
    path = tmp_path / "checkpoint-0.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])  # still a number, and not far from 1
    with pytest.raises(firth.FirthError) as caught:
        checkpoints.load()
    assert caught.value.code == "damaged_checkpoint" and caught.value.values["folder"] == tmp_path
    path.write_bytes(whole)
    assert checkpoints.load() is not None
    record = json.loads((tmp_path / "checkpoint.json").read_text())
    (tmp_path / "checkpoint.json").write_text(json.dumps({**record, "state": {"epoch": 5}}))
    with pytest.raises(firth.FirthError) as caught:
        checkpoints.load()
    assert caught.value.code == "damaged_checkpoint"
    del record["sha256"]  # as earlier versions wrote it
    (tmp_path / "checkpoint.json").write_text(json.dumps(record))
    found = checkpoints.load()
    assert found is not None and found[1] == {"epoch": 4}


def test_a_checkpoint_that_can_not_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: Any) -> None:
    checkpoints = Checkpoints(tmp_path, 60, {"seed": 1})
    checkpoints.save({"table": np.ones(3, np.float32)}, {"epoch": 1})
    before = sorted(path.name for path in tmp_path.iterdir())

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(firth.FirthError) as caught:
        checkpoints.save({"table": np.ones(3, np.float32)}, {"epoch": 2})
    assert caught.value.code == "unwritable_file"
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    found = checkpoints.load()
    assert found is not None and found[1] == {"epoch": 1}


@pytest.mark.parametrize("content", [None, "{", "[]", '{"identity": 5}'])
def test_a_run_that_no_longer_says_what_it_is_of(content: str | None, tmp_path: Path) -> None:
    """Its checkpoint is not thrown away."""
    place = broken_runs.make_run(tmp_path, "als")
    path = place / ".unfinished/command.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert broken_runs.resume(place) == "refused damaged_checkpoint"


def test_what_is_known_of_a_damaged_run_is_shown(tmp_path: Path) -> None:
    place = broken_runs.make_run(tmp_path, "als")
    assert unfinished_fields(place)["checkpoint"]["epoch"] > 0
    (place / ".unfinished/command.json").write_text("[]")
    (place / ".unfinished/checkpoint.json").write_text('{"state": 5}')
    assert str(place / ".unfinished") in unfinished_fields(place)["checkpoint"]


def test_the_ways_of_damage_are_many(models: Callable[[str], Path]) -> None:
    names = [name for name, _ in islice(damages(models("pca")), 10_000)]
    assert len(names) > 200 and len(set(names)) > 0.9 * len(names)
