"""Folders that other libraries wrote: which kind of network one holds, which method opens it, its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import CONFIG, FOREIGN_ARRAYS, TRAINING, read_arrays, read_json

METHODS = {"bert": "bert", "gpt2": "gpt", "model2vec": "distil"}  # the method that opens a folder, by model_type
HEADS = {  # of networks that others fine-tuned, by their architecture
    "BertForSequenceClassification": "classify",
    "BertForTokenClassification": "tags",
    "BertForQuestionAnswering": "answer",
    "GPT2ForSequenceClassification": "classify",
}
WEIGHTS_INDEX = "model.safetensors.index.json"  # names the files of a network that has several


def foreign_config(folder: Path) -> dict[str, Any] | None:
    """config.json of a network that another library wrote and Firth knows."""
    if not (folder / CONFIG).is_file():
        return None
    config = read_json(folder / CONFIG)
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
            raise FirthError(f"{folder} holds a network of the kind {kind!r}; Firth reads {' and '.join(METHODS)}.")
        raise FirthError(
            f'{folder / CONFIG} does not say which kind of network it is; write "model_type": "bert" or "gpt2" into it.'
        )
    return None


def foreign_method(config: Mapping[str, Any]) -> str:
    """The method whose model a folder of Hugging Face's holds."""
    found = [HEADS[name] for name in config.get("architectures") or () if name in HEADS]
    if found[:1] == ["classify"] and (config.get("num_labels") == 1 or len(config.get("id2label") or "12") == 1):
        return "regress"
    return found[0] if found else METHODS[config["model_type"]]


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a folder of Hugging Face's: one safetensors file, or several that an index names."""
    if (folder / FOREIGN_ARRAYS).is_file():
        return read_arrays(folder / FOREIGN_ARRAYS)
    if not (folder / WEIGHTS_INDEX).is_file():
        pickled = next((path.name for path in sorted(folder.glob("pytorch_model*.bin"))), None)
        if pickled:
            raise FirthError(
                f"{folder / pickled} is a pickle, which can run any code when it is opened, so Firth does not; "
                f"`firth convert {folder} NEW-FOLDER --pickled` reads its numbers alone and writes safetensors."
            )
        raise FirthError(f"{folder} has no weights: neither {FOREIGN_ARRAYS} nor {WEIGHTS_INDEX}.")
    index = read_json(folder / WEIGHTS_INDEX)
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise FirthError(f"{folder / WEIGHTS_INDEX} does not say in which file each array is (weight_map).")
    found: dict[str, NDArray[Any]] = {}
    for file in sorted(set(places.values())):
        if Path(file).name != file:
            raise FirthError(f"{folder / WEIGHTS_INDEX} names a file of another folder: {file}.")
        found |= read_arrays(folder / file)
    missing = sorted(places.keys() - found.keys())
    if missing:
        raise FirthError(f"{folder}: {missing[0]} is in none of the files that {WEIGHTS_INDEX} names.")
    return found
