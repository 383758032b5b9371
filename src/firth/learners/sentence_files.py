"""sentence-transformers' folders: how texts become vectors, as its modules.json and the folders beside it say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError, FirthWarning
from firth.core.storage import read_arrays, read_json
from firth.learners.pooling import Pooling
from firth.learners.whitening import Projection

MODULES = "modules.json"
KINDS = ("Transformer", "Pooling", "Dense", "Normalize")
HOW = ("cls", "mean", "max")  # of both libraries
DENSE = "2_Dense"  # the folder of a projection
IDENTITY = "torch.nn.modules.linear.Identity"


def read_sentence_files(folder: Path, dim: int, places: int) -> tuple[Pooling, Projection | None]:
    """What the folder says; the mean of the last layer where it is not one of sentence-transformers."""
    if not (folder / MODULES).is_file():
        return Pooling(), None
    modules = read_json(folder / MODULES)
    right = isinstance(modules, list) and all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and inside(module.get("path"))
        for module in modules
    )
    if not right:
        raise FirthError(f"{folder / MODULES} must list modules, each with a type and a path inside the folder.")
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    order = [KINDS.index(kind) if kind in KINDS else -1 for kind in kinds]
    if kinds[:2] != ["Transformer", "Pooling"] or -1 in order or order != sorted(set(order)):
        raise FirthError(f"{folder}: Firth reads {', '.join(KINDS)}, in this order; {MODULES} has {', '.join(kinds)}.")
    tell_unread(folder)
    parts = {kind: folder / module["path"] for kind, module in zip(kinds, modules, strict=True)}
    how = pooling_mode(read_json(parts["Pooling"] / "config.json"), parts["Pooling"])
    pooling = Pooling(how=how, normalize="Normalize" in kinds, max_tokens=longest(folder, places))
    return pooling, dense(parts["Dense"], dim) if "Dense" in kinds else None


def tell_unread(folder: Path) -> None:
    """Settings by which sentence-transformers changes the texts or vectors, and Firth does not."""
    for name, key in (
        ("sentence_bert_config.json", "do_lower_case"),
        ("config_sentence_transformers.json", "default_prompt_name"),
        ("config_sentence_transformers.json", "truncate_dim"),
    ):
        config = read_json(folder / name) if (folder / name).is_file() else {}
        value = config.get(key) if isinstance(config, dict) else None
        if value:
            warnings.warn(
                f"{folder / name} says {key}={value!r}, which Firth does not follow: sentence-transformers gives other "
                "vectors.",
                FirthWarning,
                stacklevel=2,
            )


def inside(path: Any) -> bool:
    return isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts


def pooling_mode(config: Any, where: Path) -> str:
    """Newer folders name it, older ones have a yes or no for each."""
    facts = config if isinstance(config, dict) else {}
    named = facts.get("pooling_mode")
    modes = [named] if isinstance(named, str) else list(named or ())
    modes += [
        name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for name, chosen in facts.items()
        if name.startswith("pooling_mode_") and chosen is True
    ]
    if len(modes) != 1 or modes[0] not in HOW:
        found = " and ".join(map(str, modes)) or "nothing"
        raise FirthError(f"{where}: Firth pools by {', '.join(HOW)}; the folder says {found}.")
    return str(modes[0])


def longest(folder: Path, places: int) -> int:
    """The most tokens of a text; 0 where it is as many as the model has places."""
    for name, key in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        config = read_json(folder / name) if (folder / name).is_file() else {}
        most = config.get(key) if isinstance(config, dict) else None
        if type(most) is int and most > 0:  # the tokenizer's may be 10^30: no limit
            return most if most < places else 0
    return 0


def dense(folder: Path, dim: int) -> Projection:
    config = read_json(folder / "config.json")
    activation = config.get("activation_function") if isinstance(config, dict) else None
    if activation != IDENTITY or config.get("use_residual"):
        raise FirthError(f"{folder}: Firth reads a Dense without activation ({IDENTITY}); this one has {activation}.")
    if not (folder / "model.safetensors").is_file():
        raise FirthError(f"{folder} has no model.safetensors; Firth does not open pickled weights.")
    return Projection.of(read_arrays(folder / "model.safetensors"), dim)


def sentence_documents(pooling: Pooling, projection: Projection | None, width: int, places: int) -> Mapping[str, Any]:
    """The JSON files by which sentence-transformers, old or new, gives the same vectors.

    Where it cannot (several layers, sums), modules.json names what it lacks, so that it refuses the folder instead of
    giving other vectors.
    """
    theirs = "sentence_transformers.models"
    known = pooling.how in HOW and pooling.layers in ((-1,),)
    if not known:
        return {"modules": [module(0, "", f"{theirs}.Transformer"), module(1, "pooling", "firth.Pooling")]}
    modules = [module(0, "", f"{theirs}.Transformer"), module(1, "1_Pooling", f"{theirs}.Pooling")]
    documents: dict[str, Any] = {
        "sentence_bert_config": {"max_seq_length": pooling.max_tokens or places, "do_lower_case": False},
        "1_Pooling/config": {
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": pooling.how == "cls",
            "pooling_mode_mean_tokens": pooling.how == "mean",
            "pooling_mode_max_tokens": pooling.how == "max",
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
    if projection is not None:
        modules.append(module(2, DENSE, f"{theirs}.Dense"))
        documents[f"{DENSE}/config"] = {
            "in_features": width,
            "out_features": projection.dim,
            "bias": True,
            "activation_function": IDENTITY,
        }
    if pooling.normalize:
        modules.append(module(len(modules), f"{len(modules)}_Normalize", f"{theirs}.Normalize"))
    return {"modules": modules, **documents}


def module(number: int, path: str, kind: str) -> dict[str, Any]:
    return {"idx": number, "name": str(number), "path": path, "type": kind}
