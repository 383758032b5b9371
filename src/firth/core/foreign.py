"""Folders that other libraries wrote: which kind of network one holds, which method opens it, its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.storage import CONFIG, FOREIGN_ARRAYS, TRAINING, read_arrays, read_json

METHODS = {"bert": "bert", "gpt2": "gpt", "model2vec": "distil"}  # the method that opens a folder, by model_type
HEADS = {  # of networks that others fine-tuned, by their architecture
    "BertForSequenceClassification": "text_classifier",
    "BertForTokenClassification": "token_classifier",
    "BertForQuestionAnswering": "question_answerer",
    "GPT2ForSequenceClassification": "text_classifier",
}
MODULES = "modules.json"  # of sentence-transformers: what a text goes through, and the folder of each part
SHAPE = ("layers", "dim", "heads", "feedforward_dim", "context_length", "activation", "epsilon", "dropout", "normalize")
WEIGHTS_INDEX = "model.safetensors.index.json"  # names the files of a network that has several


def read_modules(folder: Path) -> list[tuple[str, Path]]:
    """The kind and the folder of each module of sentence-transformers'; none where it did not write the folder."""
    if not (folder / MODULES).is_file():
        return []
    modules = read_json(folder / MODULES)
    right = isinstance(modules, list) and all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and inside(module.get("path"))
        for module in modules
    )
    if not right:
        raise FirthError(
            "damaged_model",
            "{path} must list modules, each with a type and a path inside the folder.",
            path=folder / MODULES,
        )
    return [(module["type"].rsplit(".", 1)[-1], folder / module["path"]) for module in modules]


def inside(path: Any) -> bool:
    return isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts


def network_folder(folder: Path) -> Path:
    """Where config.json, weights and tokenizer are: in the folder itself, or in the one that its modules.json names, as
    older sentence-transformers have it."""
    return next((place for kind, place in read_modules(folder) if kind == "Transformer"), folder)


def foreign_config(folder: Path) -> dict[str, Any] | None:
    """config.json of a network that another library wrote and Firth knows."""
    place = network_folder(folder)
    if not (place / CONFIG).is_file():
        if place != folder:
            raise FirthError(
                "incomplete_model",
                "{path} says that the network is in {path_2}, which has no {config}.",
                path=folder / MODULES,
                path_2=place,
                config=CONFIG,
            )
        return None
    config = read_json(place / CONFIG)
    if not isinstance(config, dict):
        return None
    kind = config.get("model_type")
    # Libraries that open a folder of ours and save it elsewhere keep the keys they don't know; then it is theirs.
    again = "transformers_version" in config or (kind == "model2vec" and not (folder / TRAINING).is_file())
    if "format" in config and not again:
        return None
    if isinstance(kind, str) and kind in METHODS:
        return config
    theirs = {"architectures", "hidden_size", "transformers_version"} & config.keys()
    if isinstance(kind, str) or theirs:
        if kind:
            raise FirthError(
                "unsupported_architecture",
                "{folder} holds a network of the kind {kind!r}; Firth reads {choices}.",
                folder=folder,
                kind=kind,
                choices=" and ".join(METHODS),
            )
        raise FirthError(
            "unsupported_architecture",
            '{path} does not say which kind of network it is; write "model_type": "bert" or "gpt2" into it.',
            path=place / CONFIG,
        )
    return None


def foreign_method(config: Mapping[str, Any]) -> str:
    """The method whose model a folder of Hugging Face's holds."""
    found = [HEADS[name] for name in config.get("architectures") or () if name in HEADS]
    if found[:1] == ["text_classifier"] and (config.get("num_labels") == 1 or len(config.get("id2label") or "12") == 1):
        return "text_regressor"
    return found[0] if found else METHODS[config["model_type"]]


def known_options(model: Model) -> dict[str, Any]:
    """The options a model was made with; of a network from elsewhere its shape: how it was trained is not known."""
    if model.training.get("source") not in METHODS:
        return model.method.options()
    options = getattr(model, "base", model).method.options()  # of a fine-tuned one, the network below its head
    return {name: options[name] for name in SHAPE if name in options}


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a folder of Hugging Face's: one safetensors file, or several that an index names."""
    place = network_folder(folder)
    if (place / FOREIGN_ARRAYS).is_file():
        return read_arrays(place / FOREIGN_ARRAYS)
    if not (place / WEIGHTS_INDEX).is_file():
        pickled = min(place.glob("pytorch_model*.bin"), default=None)
        if pickled:
            raise FirthError(
                "unsafe_pickle",
                "{pickled} is a pickle, which can run any code when it is opened, so Firth does not; `firth "
                "convert {folder} NEW-FOLDER --pickled` reads its numbers alone and writes safetensors.",
                pickled=pickled,
                folder=folder,
            )
        raise FirthError(
            "incomplete_model",
            "{path} has no weights: neither {foreign_arrays} nor {weights_index}.",
            path=place,
            foreign_arrays=FOREIGN_ARRAYS,
            weights_index=WEIGHTS_INDEX,
        )
    index = read_json(place / WEIGHTS_INDEX)
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise FirthError(
            "damaged_model", "{path} does not say in which file each array is (weight_map).", path=place / WEIGHTS_INDEX
        )
    found: dict[str, NDArray[Any]] = {}
    for file in sorted(set(places.values())):
        if Path(file).name != file:
            raise FirthError(
                "damaged_model", "{path} names a file of another folder: {file}.", path=place / WEIGHTS_INDEX, file=file
            )
        found |= read_arrays(place / file)
    missing = sorted(places.keys() - found.keys())
    if missing:
        raise FirthError(
            "incomplete_model",
            "{path}: {missing} is in none of the files that {weights_index} names.",
            path=place,
            missing=missing[0],
            weights_index=WEIGHTS_INDEX,
        )
    return found
