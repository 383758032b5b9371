"""Folders of sentence-transformers: pooling, projection and normalization in modules.json."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError, FirthWarning
from firth.core.long_texts import CHUNK
from firth.core.storage import read_arrays, read_json
from firth.nets.transformer import Size
from firth.transformers.huggingface_folder import MODULES, read_modules
from firth.transformers.pooling import Pooling, layer_numbers
from firth.transformers.whitening import Projection

KINDS = ("Transformer", "Pooling", "Dense", "Normalize")
HOW = ("cls", "mean", "max")  # supported by both libraries
DENSE = "2_Dense"  # folder of a projection
IDENTITY = "torch.nn.modules.linear.Identity"


def read_sentence_files(folder: Path, dim: int, max_positions: int) -> tuple[Pooling, Projection | None]:
    """Return pooling and projection of a folder; the mean of the last layer if it has no modules.json."""
    if not (folder / MODULES).is_file():
        return Pooling(), None
    modules = read_modules(folder)
    kinds = [kind for kind, _ in modules]
    order = [KINDS.index(kind) if kind in KINDS else -1 for kind in kinds]
    if kinds[:2] != ["Transformer", "Pooling"] or -1 in order or order != sorted(set(order)):
        raise FirthError(
            "unsupported_architecture",
            "{folder}: Firth supports the modules {choices}, in this order; {modules} has {kinds}.",
            folder=folder,
            choices=", ".join(KINDS),
            modules=MODULES,
            kinds=", ".join(kinds),
        )
    parts = dict(modules)
    warn_ignored_settings(folder, parts["Transformer"])
    how = pooling_mode(read_json(parts["Pooling"] / "config.json"), parts["Pooling"])
    pooling = Pooling(
        how=how, normalize="Normalize" in kinds, max_tokens=max_tokens_of(parts["Transformer"], max_positions)
    )
    return pooling, dense(parts["Dense"], dim) if "Dense" in kinds else None


def warn_ignored_settings(folder: Path, network: Path) -> None:
    """Warn about settings that sentence-transformers applies and Firth ignores."""
    for path, key in (
        (network / "sentence_bert_config.json", "do_lower_case"),
        (folder / "config_sentence_transformers.json", "default_prompt_name"),
        (folder / "config_sentence_transformers.json", "truncate_dim"),
    ):
        config = read_json(path) if path.is_file() else {}
        value = config.get(key) if isinstance(config, dict) else None
        if value:
            text = f"{path} has {key}={value!r}, which Firth ignores: sentence-transformers gives different vectors."
            warnings.warn(FirthWarning(text, "setting_ignored"), stacklevel=2)


def pooling_mode(config: Any, where: Path) -> str:
    """Return the pooling mode: newer folders name it, older ones have one flag per mode."""
    settings = config if isinstance(config, dict) else {}
    named = settings.get("pooling_mode")
    modes = [named] if isinstance(named, str) else list(named or ())
    modes += [
        name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for name, enabled in settings.items()
        if name.startswith("pooling_mode_") and enabled is True
    ]
    if len(modes) != 1 or modes[0] not in HOW:
        given = " and ".join(map(str, modes)) or "nothing"
        raise FirthError(
            "unsupported_architecture",
            "{where}: the pooling mode must be one of {how}; got {got}.",
            where=where,
            how=", ".join(HOW),
            got=given,
        )
    return str(modes[0])


def max_tokens_of(folder: Path, max_positions: int) -> int:
    """Return the maximum number of tokens of a text; 0 if it is the number of positions."""
    for name, key in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        config = read_json(folder / name) if (folder / name).is_file() else {}
        declared = config.get(key) if isinstance(config, dict) else None
        if type(declared) is int and declared > 0:  # the tokenizer may have 10^30: no limit
            return declared if declared < max_positions else 0
    return 0


def dense(folder: Path, dim: int) -> Projection:
    """Return the projection of a Dense module without activation."""
    config = read_json(folder / "config.json")
    activation = config.get("activation_function") if isinstance(config, dict) else None
    if activation != IDENTITY or config.get("use_residual"):
        raise FirthError(
            "unsupported_architecture",
            "{folder}: Firth supports Dense without activation ({identity}); got {activation}.",
            folder=folder,
            identity=IDENTITY,
            activation=activation,
        )
    if not (folder / "model.safetensors").is_file():
        raise FirthError(
            "unsafe_pickle",
            "{folder} has no model.safetensors, and Firth does not open pickled weights. Run `firth convert {parent} "
            "NEW-FOLDER --pickled` to write safetensors.",
            folder=folder,
            parent=folder.parent,
        )
    return Projection.of(read_arrays(folder / "model.safetensors"), dim)


def is_supported_there(pooling: Pooling, layers: int) -> bool:
    """Return whether sentence-transformers supports this pooling."""
    return pooling.how in HOW and layer_numbers(pooling.layers, layers) == [layers]


def sentence_transformers_difference(pooling: Pooling, layers: int) -> str:
    """Return how sentence-transformers differs for this pooling; empty if it gives the same vectors."""
    if not is_supported_there(pooling, layers):
        pooled = f"the {pooling.how} of layers {', '.join(map(str, pooling.layers))}"
        return (
            f"sentence-transformers cannot open this folder: it supports {', '.join(HOW)} of the last layer, and the "
            f"model has {pooled}. Firth and an exported ONNX file can use it."
        )
    if pooling.long == CHUNK:
        return (
            "sentence-transformers truncates long texts, which this model processes in chunks, so their vectors differ."
        )
    return ""


def sentence_documents(pooling: Pooling, projection: Projection | None, size: Size) -> Mapping[str, Any]:
    """The JSON files by which sentence-transformers, old or new, gives the same vectors.

    For an unsupported pooling (several layers, sums), modules.json names a module that sentence-transformers lacks, so
    that it raises an error instead of giving different vectors.
    """
    theirs = "sentence_transformers.models"
    if not is_supported_there(pooling, size.layers):
        return {"modules": [module(0, "", f"{theirs}.Transformer"), module(1, "pooling", "firth.Pooling")]}
    modules = [module(0, "", f"{theirs}.Transformer"), module(1, "1_Pooling", f"{theirs}.Pooling")]
    documents: dict[str, Any] = {
        "sentence_bert_config": {"max_seq_length": pooling.max_tokens or size.max_positions, "do_lower_case": False},
        "1_Pooling/config": {
            "word_embedding_dimension": size.dim,
            "pooling_mode_cls_token": pooling.how == "cls",
            "pooling_mode_mean_tokens": pooling.how == "mean",
            "pooling_mode_max_tokens": pooling.how == "max",
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
    if projection is not None:
        modules.append(module(2, DENSE, f"{theirs}.Dense"))
        documents[f"{DENSE}/config"] = {
            "in_features": size.dim,
            "out_features": projection.dim,
            "bias": True,
            "activation_function": IDENTITY,
        }
    if pooling.normalize:
        modules.append(module(len(modules), f"{len(modules)}_Normalize", f"{theirs}.Normalize"))
    return {"modules": modules, **documents}


def module(number: int, path: str, kind: str) -> dict[str, Any]:
    """Return an entry of modules.json."""
    return {"idx": number, "name": str(number), "path": path, "type": kind}
