"""Model folders of Hugging Face, sentence-transformers and Model2Vec: the method that opens them, and their arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.memory import check_memory
from firth.core.method import Method
from firth.core.model import Model, base_model
from firth.core.storage import (
    CONFIG,
    FOREIGN_ARRAYS,
    TRAINING,
    open_file,
    read_arrays,
    read_header,
    read_json,
    saying_which,
    whole_numbers,
)

#: model_type -> the method that opens the folder. `families` lists the same ones, but importing it needs torch.
ENCODERS = (
    "bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mpnet", "modernbert", "nomic_bert",
    "albert", "deberta-v2",
)  # fmt: skip
DECODERS = ("gpt2", "llama", "qwen2", "qwen3", "gemma2", "gemma3_text")
ENCODER_DECODERS = ("t5", "bart", "marian")
METHODS = {
    **dict.fromkeys(ENCODERS, "bert"),
    **dict.fromkeys(DECODERS, "gpt"),
    **dict.fromkeys(ENCODER_DECODERS, "seq2seq"),
    "model2vec": "distil",
}
HEADS = {  # fine-tuned encoders, by the ending of the class
    "ForSequenceClassification": "text_classifier",
    "ForTokenClassification": "token_classifier",
    "ForQuestionAnswering": "question_answerer",
}
CLASSES = {"GPT2ForSequenceClassification": "text_classifier", "T5EncoderModel": "bert"}  # of other networks
MODULES = "modules.json"  # of sentence-transformers: the modules that process a text, each with its folder
SHAPE = ("layers", "dim", "heads", "feedforward_dim", "context_length", "activation", "epsilon", "dropout", "normalize")
OUTPUTS = ("classifier.weight", "classifier.out_proj.weight", "score.weight")  # of text classifiers
WEIGHTS_INDEX = "model.safetensors.index.json"  # lists the files of sharded weights
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # of peft
ADAPTERS = {  # the method that opens an adapter, by peft's name of its task
    None: "bert",
    "FEATURE_EXTRACTION": "bert",
    "SEQ_CLS": "text_classifier",
    "TOKEN_CLS": "token_classifier",
    "QUESTION_ANS": "question_answerer",
    "CAUSAL_LM": "gpt",
}


def read_modules(folder: Path) -> list[tuple[str, Path]]:
    """Type and folder of each module of a sentence-transformers folder; empty for other folders.

    A type is the name of a class of sentence-transformers, or the full name of a class of another package.
    """
    if not (folder / MODULES).is_file():
        return []
    modules = read_json(folder / MODULES)
    valid = isinstance(modules, list) and all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and inside(module.get("path"))
        for module in modules
    )
    if not valid:
        raise FirthError(
            "damaged_model",
            "{path} must list modules, each with a type and a path inside the folder.",
            path=folder / MODULES,
        )
    kinds = [module["type"] for module in modules]
    kinds = [kind.rsplit(".", 1)[-1] if kind.startswith("sentence_transformers.") else kind for kind in kinds]
    return [(kind, folder / module["path"]) for kind, module in zip(kinds, modules, strict=True)]


def inside(path: Any) -> bool:
    """Return whether a path from a file stays within the folder."""
    return isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts


def network_folder(folder: Path) -> Path:
    """The folder with config.json, weights and tokenizer: the folder itself, or the one that modules.json names (older
    sentence-transformers)."""
    modules = read_modules(folder)
    return next((path for kind, path in modules if kind.rsplit(".", 1)[-1] == "Transformer"), folder)


def foreign_config(folder: Path) -> dict[str, Any] | None:
    """config.json of a network of another library that Firth can open; None for other folders."""
    network = network_folder(folder)
    if not (network / CONFIG).is_file():
        if network != folder:
            raise FirthError(
                "incomplete_model",
                "{path} refers to {network}, which has no {config}.",
                path=folder / MODULES,
                network=network,
                config=CONFIG,
            )
        return None
    config = read_json(network / CONFIG)
    if not isinstance(config, dict):
        return None
    kind = config.get("model_type")
    # Libraries that open a Firth folder and save it keep unknown keys, so "format" alone does not identify Firth.
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
                "{folder} contains a network of model_type {kind!r}; Firth reads {choices}.",
                folder=folder,
                kind=kind,
                choices=", ".join(METHODS),
            )
        raise FirthError(
            "unsupported_architecture",
            "{path} has no model_type. Add that of the network; Firth reads {choices}.",
            path=network / CONFIG,
            choices=", ".join(METHODS),
        )
    return None


def foreign_method(config: Mapping[str, Any]) -> str:
    """The method that opens a Hugging Face folder."""
    heads = HEADS if config["model_type"] in ENCODERS else CLASSES
    classes = [str(name) for name in config.get("architectures") or ()]
    methods = [method for name in classes for end, method in heads.items() if name.endswith(end)]
    if methods[:1] == ["text_classifier"] and (
        config.get("num_labels") == 1 or len(config.get("id2label") or "12") == 1
    ):
        return "text_regressor"
    return methods[0] if methods else METHODS[config["model_type"]]


def opener(folder: Path) -> Callable[[], Model] | None:
    """Return what opens a folder of these libraries; None for other folders."""
    if (folder / ADAPTER_CONFIG).is_file() and not (folder / TRAINING).is_file():
        return partial(open_adapter, folder)
    config = foreign_config(folder)
    return None if config is None else partial(open_network, folder, config)


def open_network(folder: Path, config: Mapping[str, Any]) -> Model:
    """Open the model in a folder with this config.json."""
    with saying_which(folder):
        method = registry.method(foreign_method(config))
        model_class = method.model_class()
        assert issubclass(model_class, OpensFolders)
        return model_class.from_foreign(folder, config, method)


def open_adapter(folder: Path) -> Model:
    """Open an adapter that peft wrote, with its base."""
    with saying_which(folder):
        config = read_json(folder / ADAPTER_CONFIG)
        task = config.get("task_type") if isinstance(config, dict) else ""
        if task not in ADAPTERS:
            raise FirthError(
                "unsupported_architecture",
                "{config} has task_type {got!r}; Firth reads {choices}.",
                config=ADAPTER_CONFIG,
                got=task,
                choices=", ".join(map(str, ADAPTERS)),
            )
        if not (folder / ADAPTER_WEIGHTS).is_file():
            raise FirthError(
                "incomplete_model", "{folder} is incomplete: {name} is missing.", folder=folder, name=ADAPTER_WEIGHTS
            )
        name = ADAPTERS[task]
        header = read_header(open_file(folder / ADAPTER_WEIGHTS))[0]
        if name == "text_classifier" and any(
            array.endswith(OUTPUTS) and isinstance(entry, dict) and (entry.get("shape") or [0])[0] == 1
            for array, entry in header.items()
        ):
            name = "text_regressor"
        method = registry.method(name)
        model_class = method.model_class()
        assert issubclass(model_class, OpensAdapters)
        return model_class.from_adapter(folder, config, method)


@runtime_checkable
class OpensAdapters(Protocol):
    """A model class that opens adapters of peft."""

    @classmethod
    def from_adapter(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> Model:
        """Open the adapter with this adapter_config.json."""


@runtime_checkable
class OpensFolders(Protocol):
    """A model class that opens folders of these libraries."""

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> Model:
        """Open the folder with this config.json, with options of `method`."""


def known_options(model: Model) -> dict[str, Any]:
    """The options of a model. For a network of another library only its architecture is known, not its training."""
    source = str(model.training.get("source"))
    if source not in METHODS and not source.startswith("gguf "):
        return model.method.options()
    options = base_model(model).method.options()
    return {name: options[name] for name in SHAPE if name in options}


def read_weights(folder: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a Hugging Face folder: one safetensors file, or several that an index lists."""
    network = network_folder(folder)
    if (network / FOREIGN_ARRAYS).is_file():
        check_memory(float_bytes([network / FOREIGN_ARRAYS]), folder)
        return read_arrays(network / FOREIGN_ARRAYS)
    if not (network / WEIGHTS_INDEX).is_file():
        pickled = min(network.glob("pytorch_model*.bin"), default=None)
        if pickled:
            raise FirthError(
                "unsafe_pickle",
                "{pickled} is a pickle, which can execute code when it is loaded, so Firth does not open it. `firth "
                "convert {folder} NEW-FOLDER --pickled` reads only its arrays and writes safetensors.",
                pickled=pickled,
                folder=folder,
            )
        raise FirthError(
            "incomplete_model",
            "{path} has no weights: it contains neither {foreign_arrays} nor {weights_index}.",
            path=network,
            foreign_arrays=FOREIGN_ARRAYS,
            weights_index=WEIGHTS_INDEX,
        )
    index = read_json(network / WEIGHTS_INDEX)
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise FirthError(
            "damaged_model", "{path} has no valid weight_map from arrays to files.", path=network / WEIGHTS_INDEX
        )
    arrays: dict[str, NDArray[Any]] = {}
    files = sorted(set(weight_map.values()))
    for file in files:
        if Path(file).name != file:
            raise FirthError(
                "damaged_model",
                "{path} refers to a file in another folder: {file}.",
                path=network / WEIGHTS_INDEX,
                file=file,
            )
        if not (network / file).is_file():
            raise FirthError(
                "incomplete_model",
                "{path} lists {name}, which is missing.",
                path=network / WEIGHTS_INDEX,
                name=file,
            )
    check_memory(float_bytes([network / file for file in files]), folder)
    for file in files:
        arrays |= read_arrays(network / file)
    missing = sorted(weight_map.keys() - arrays.keys())
    if missing:
        raise FirthError(
            "incomplete_model",
            "{path}: {missing} is in none of the files that {weights_index} lists.",
            path=network,
            missing=missing[0],
            weights_index=WEIGHTS_INDEX,
        )
    return arrays


def float_bytes(files: Sequence[Path]) -> int:
    """Return the bytes of all arrays of safetensors files as float32, from their headers."""
    headers = [read_header(open_file(file))[0] for file in files if file.is_file()]
    shapes = [entry.get("shape") for header in headers for entry in header.values() if isinstance(entry, dict)]
    return 4 * sum(math.prod(shape) for shape in shapes if whole_numbers(shape))
