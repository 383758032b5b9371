"""Folders of sentence-transformers: pooling and the modules after it in modules.json, prompts and other settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.long_texts import CHUNK
from firth.core.storage import read_arrays, read_json
from firth.nets.architecture import Architecture
from firth.transformers.huggingface_folder import MODULES, network_folder, read_modules
from firth.transformers.pooling import SEPARATOR, Pooling, layer_numbers
from firth.transformers.sentence_modules import (
    Dense,
    LayerNorm,
    Normalize,
    Projection,
    Step,
    check_features,
)
from firth.transformers.sentence_settings import SentenceSettings

#: Pooling modes of sentence-transformers with the flags of its older folders, in the order of concatenation there.
MODES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
AFTER = ("Dense", "LayerNorm", "Normalize", "Dropout")  # modules after the pooling; dropout does nothing here
SETTINGS = "config_sentence_transformers"
#: Files of the module Transformer; older versions named them by the network.
TRANSFORMER_FILES = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
OLD_DENSE = "2_Dense"  # the folder of a projection that earlier versions of Firth saved without naming it
THEIRS = "sentence_transformers.models"
Arrays = Mapping[str, NDArray[Any]]


class SentenceFiles(NamedTuple):
    """What a folder says about texts after the network."""

    pooling: Pooling
    projection: Projection | None
    settings: SentenceSettings


# ---- reading ----


def read_sentence_files(folder: Path, dim: int, max_positions: int) -> SentenceFiles:
    """Return pooling, projection and settings of a folder; the mean of the last layer if it has no modules.json."""
    check_truncation_side(network_folder(folder))
    if not (folder / MODULES).is_file():
        return SentenceFiles(Pooling(), None, SentenceSettings())
    modules = read_modules(folder)
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= set(AFTER):
        raise FirthError(
            "unsupported_architecture",
            "{folder}: Firth supports the modules Transformer and Pooling, then {choices}; {modules} has {kinds}.",
            folder=folder,
            choices=", ".join(AFTER),
            modules=MODULES,
            kinds=", ".join(kinds),
        )
    network, pooled = modules[0][1], modules[1][1]
    transformer = next((read_object(network / name) for name in TRANSFORMER_FILES if (network / name).is_file()), {})
    if "message" in (transformer.get("modality_config") or ()):
        raise FirthError(
            "unsupported_architecture",
            "{folder} puts texts into messages of its chat template before embedding; Firth does not support this.",
            folder=folder,
        )
    pooling_config = read_object(pooled / "config.json")
    pooling = Pooling(
        how=SEPARATOR.join(pooling_modes(pooling_config, pooled)),
        include_prompt=pooling_config.get("include_prompt", True) is not False,
        max_tokens=max_tokens_of(transformer, network, max_positions),
        normalize=is_normalized(kinds),
    )
    steps = read_steps(
        [(kind, path, str(path)) for kind, path in modules[2:]],
        lambda path: read_object(path / "config.json") if (path / "config.json").is_file() else {},
        lambda path: module_arrays(path, folder),
        pooling.dim(dim),
    )
    path = folder / f"{SETTINGS}.json"
    settings = SentenceSettings.of(read_json(path) if path.is_file() else {}, transformer.get("do_lower_case"))
    return SentenceFiles(pooling, Projection(steps) if steps else None, settings)


def check_truncation_side(network: Path) -> None:
    """Raise unsupported_architecture if the tokenizer cuts long texts at the left."""
    path = network / "tokenizer_config.json"
    side = read_object(path).get("truncation_side") if path.is_file() else None
    if side not in (None, "right"):
        raise FirthError(
            "unsupported_architecture",
            "{path} has {name}={got!r:.60}, but Firth cuts long texts at the right. To load the model nevertheless, "
            "remove the entry.",
            path=path,
            name="truncation_side",
            got=side,
        )


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    document = read_json(path)
    if not isinstance(document, dict):
        raise FirthError("damaged_model", "{path} must contain a JSON object.", path=path)
    return document


def is_normalized(kinds: list[str]) -> bool:
    """Return whether the last module, apart from dropout, is Normalize; `Pooling.normalize` represents it."""
    return next((kind == "Normalize" for kind in reversed(kinds) if kind != "Dropout"), False)


def read_steps(
    modules: list[tuple[str, Any, str]],
    config_of: Callable[[Any], Mapping[str, Any]],
    arrays_of: Callable[[Any], Arrays],
    dim: int,
) -> tuple[Step, ...]:
    """Return the modules after the pooling, without a final Normalize.

    `modules` are kind, path and name of each; `config_of` and `arrays_of` read what is stored at a path.
    """
    steps = list[Step]()
    for kind, path, name in modules:
        try:
            if kind == "Dense":
                steps.append(Dense.of(config_of(path), arrays_of(path), dim))
            elif kind == "LayerNorm":
                steps.append(LayerNorm.of(config_of(path), arrays_of(path), dim))
            elif kind == "Normalize":
                check_features(config_of(path), kind)
                steps.append(Normalize(dim))
        except FirthError as error:
            raise (error if "folder" in error.values else error.within(name)) from None
        dim = steps[-1].dim if steps else dim
    return tuple(steps[:-1] if steps and isinstance(steps[-1], Normalize) else steps)


def pooling_modes(config: Mapping[str, Any], where: Path) -> list[str]:
    """Return the pooling modes: newer folders name them, older ones have one flag per mode; the default is mean."""
    named = config.get("pooling_mode")
    modes = [named] if isinstance(named, str) else named
    if modes is None:
        modes = [mode for mode, flag in MODES.items() if config.get(flag) is True] or ["mean"]
    unknown = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
    valid = isinstance(modes, list) and modes and all(mode in MODES for mode in modes)
    if not valid or (named is None and not set(unknown) <= set(MODES.values())):
        raise FirthError(
            "unsupported_architecture",
            "{where}: the pooling modes must be among {how}; got {got!r:.80}.",
            where=where,
            how=", ".join(MODES),
            got=modes if named is not None else unknown,
        )
    return list(modes)


def max_tokens_of(transformer: Mapping[str, Any], network: Path, max_positions: int) -> int:
    """Return the maximum number of tokens of a text; 0 if it is the number of positions."""
    longest = transformer.get("max_seq_length")
    if longest is not None and (type(longest) is not int or longest < 1):
        raise FirthError(
            "damaged_model",
            "{folder}: max_seq_length must be a number of tokens; got {got!r:.60}.",
            folder=network,
            got=longest,
        )
    path = network / "tokenizer_config.json"
    for limit in (longest, read_object(path).get("model_max_length") if path.is_file() else None):
        if type(limit) is int and limit > 0:  # the tokenizer may have 10^30: no limit
            return limit if limit < max_positions else 0
    return 0


def module_arrays(folder: Path, parent: Path) -> Arrays:
    """Return the arrays of a module."""
    if not (folder / "model.safetensors").is_file():
        raise FirthError(
            "unsafe_pickle",
            "{folder} has no model.safetensors, and Firth does not open pickled weights. Run `firth convert {parent} "
            "NEW-FOLDER --pickled` to write safetensors.",
            folder=folder,
            parent=parent,
        )
    return read_arrays(folder / "model.safetensors")


# ---- writing, and reading what was written ----


def is_supported_there(pooling: Pooling, layers: int) -> bool:
    """Return whether sentence-transformers supports this pooling."""
    return set(pooling.modes) <= MODES.keys() and layer_numbers(pooling.layers, layers) == [layers]


def sentence_transformers_difference(pooling: Pooling, layers: int) -> str:
    """Return how sentence-transformers differs for this pooling; empty if it gives the same vectors."""
    if not is_supported_there(pooling, layers):
        pooled = f"the {pooling.how} of layers {', '.join(map(str, pooling.layers))}"
        return (
            f"sentence-transformers cannot open this folder: it supports {', '.join(MODES)} of the last layer, and the "
            f"model has {pooled}. Firth and an exported ONNX file can use it."
        )
    if pooling.long == CHUNK:
        return (
            "sentence-transformers truncates long texts, which this model processes in chunks, so their vectors differ."
        )
    return ""


def sentence_documents(
    pooling: Pooling, projection: Projection | None, settings: SentenceSettings, size: Architecture
) -> Mapping[str, Any]:
    """The JSON files by which sentence-transformers, old or new, gives the same vectors.

    For an unsupported pooling (several layers, sums), modules.json names a module that sentence-transformers lacks, so
    that it raises an error instead of giving different vectors.
    """
    supported = is_supported_there(pooling, size.layers)
    pooled = ("1_Pooling", f"{THEIRS}.Pooling") if supported else ("pooling", "firth.Pooling")
    modules = [module(0, "", f"{THEIRS}.Transformer"), module(1, *pooled)]
    documents: dict[str, Any] = {}
    if supported:
        documents["sentence_bert_config"] = {
            "max_seq_length": pooling.max_tokens or size.max_positions,
            "do_lower_case": settings.lowercase,
        }
        documents["1_Pooling/config"] = pooling_config(pooling, size.dim)
    for path, step in step_paths(projection).items():
        modules.append(module(len(modules), path, f"{THEIRS}.{step.kind}"))
        if config := step.config():
            documents[f"{path}/config"] = config
    if pooling.normalize:
        modules.append(module(len(modules), f"{len(modules)}_Normalize", f"{THEIRS}.Normalize"))
    if settings != SentenceSettings(lowercase=settings.lowercase):
        documents[SETTINGS] = settings.document()
    return {"modules": modules, **documents}


def pooling_config(pooling: Pooling, dim: int) -> dict[str, Any]:
    """Return config.json of the module Pooling, with flags, which every version reads, if they express the order."""
    prompt = {} if pooling.include_prompt else {"include_prompt": False}
    if list(pooling.modes) != [mode for mode in MODES if mode in pooling.modes]:
        return {"embedding_dimension": dim, "pooling_mode": list(pooling.modes), **prompt}
    flags = {flag: mode in pooling.modes for mode, flag in MODES.items()}
    return {"word_embedding_dimension": dim, **flags, **prompt}


def module(number: int, path: str, kind: str) -> dict[str, Any]:
    """Return an entry of modules.json."""
    return {"idx": number, "name": str(number), "path": path, "type": kind}


def step_paths(projection: Projection | None) -> dict[str, Step]:
    """Return the modules after the pooling by their folders."""
    steps = () if projection is None else projection.steps
    return {f"{number}_{step.kind}": step for number, step in enumerate(steps, 2)}


def step_arrays(projection: Projection | None) -> dict[str, Arrays]:
    """Return the arrays of the modules after the pooling by path."""
    return {f"{path}/model": arrays for path, step in step_paths(projection).items() if (arrays := step.arrays())}


def stored_projection(documents: Mapping[str, Any], more: Mapping[str, Arrays], dim: int) -> Projection | None:
    """Return the projection of a folder that Firth saved."""
    listed = documents.get("modules") or []
    modules = [(str(each["type"]).rsplit(".", 1)[-1], str(each["path"]), str(each["path"])) for each in listed[2:]]
    if f"{OLD_DENSE}/model" in more and all(path != OLD_DENSE for _, path, _ in modules):
        identity = Dense.of({"activation_function": "torch.nn.Identity"}, more[f"{OLD_DENSE}/model"], dim)
        return Projection((identity,))
    steps = read_steps(
        modules, lambda path: documents.get(f"{path}/config", {}), lambda path: more.get(f"{path}/model", {}), dim
    )
    return Projection(steps) if steps else None


def stored_settings(documents: Mapping[str, Any]) -> SentenceSettings:
    """Return the settings of a folder that Firth saved."""
    lowercase = (documents.get("sentence_bert_config") or {}).get("do_lower_case")
    return SentenceSettings.of(documents.get(SETTINGS) or {}, lowercase)
