"""`firth info PATH`: a model, an unfinished run, an index, a tokenizer, or a vector file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import is_model_file, json_flag, open_model, print_fields, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Model


@click.command()
@click.argument("path")
@json_flag
def command(path: str, as_json: bool) -> None:
    """Describe a model, an unfinished run, a sweep, an index, a tokenizer or a vector file."""
    from firth.core.remote_folders import local_copy

    with local_copy(path) as local:
        fields = {**description(str(local)), "path": path}
    if as_json:
        print_json(fields)
        return
    print_fields(flatten(fields))


def description(path: str) -> dict[str, Any]:
    """Return the description of a path of this machine."""
    from firth.core.storage import CONFIG
    from firth.core.train import UNFINISHED

    fields: dict[str, Any] = {"path": path}
    if (Path(path) / "index.json").is_file():
        fields |= index_fields(path)
    elif (Path(path) / "sweep.json").is_file():
        fields |= sweep_fields(Path(path))
    elif is_tokenizer(Path(path)):
        fields |= tokenizer_fields(path)
    elif Path(path).is_dir():
        unfinished = unfinished_fields(Path(path)) if (Path(path) / UNFINISHED).is_dir() else {}
        if unfinished and not (Path(path) / CONFIG).exists():
            fields |= unfinished
        else:  # the old model remains until the new one is finished
            fields |= {**model_fields(path), **({"unfinished": unfinished} if unfinished else {})}
    else:
        fields |= file_fields(path)
    return fields


def file_fields(path: str) -> dict[str, Any]:
    """Return the description of a file: a model, or vectors."""
    from firth.formats.fasttext import is_fasttext

    if not is_model_file(path):
        return vector_file_fields(Path(path))
    return fasttext_fields(Path(path)) if is_fasttext(path) else model_fields(path)


def model_fields(path: str) -> dict[str, Any]:
    """Return the method, tables, options and training metrics of a model."""
    from firth.core.card import card_values
    from firth.core.model import Adapted, DescribesEngine, HasHeads, HasVectors, base_model
    from firth.core.saved import external_opener, read_config
    from firth.core.sketch import KEY
    from firth.maps.layout_files import saved_layouts
    from firth.transformers.huggingface_folder import known_options

    external = Path(path).is_file() or external_opener(Path(path))
    config = None if external else read_config(Path(path))
    model = open_model(path)
    training = {name: value for name, value in model.training.items() if name not in ("command", KEY)}
    tables = model.tables if isinstance(model, HasVectors) else {}
    maps = saved_layouts(path) if tables and Path(path).is_dir() else {}
    fields = {
        "kind": "model" if config else "model of another library",
        "method": type(model.method).method_name(),
        "tables": {name: {"rows": len(table), "dim": table.dim} for name, table in tables.items()},
        "maps": {name: {"points": len(layout.keys), **layout.score._asdict()} for name, layout in maps.items()},
        "heads": model.heads if isinstance(model, HasHeads) else None,
        "engine": model.engine_description if isinstance(model, DescribesEngine) else None,
        "pooling": pooling_fields(base_model(model)),
        "adapter": adapter_fields(model.adapter) if isinstance(model, Adapted) else None,
        "options": known_options(model),
        "training": training,
        "card": card_values(model),
    }
    if config is None:
        files = [Path(path)] if Path(path).is_file() else Path(path).rglob("*")
        return {**fields, "bytes": sum(file.stat().st_size for file in files if file.is_file())}
    return {
        **fields,
        "bytes": sum(file["bytes"] for file in config["files"].values()),
        "format": config["format"],
        "firth": config["firth"],
    }


def adapter_fields(adapter: Any) -> dict[str, Any] | None:
    """Return the base, the rank and the size of low-rank adapters; None for a model without."""
    if adapter is None:
        return None
    parameters = sum(array.numel() for array in adapter.arrays.values())
    return {"base": adapter.base, "rank": adapter.rank, "scale": adapter.scale, "parameters": parameters}


def pooling_fields(model: Model) -> dict[str, Any] | None:
    """Return how a BERT pools token vectors; None for other models."""
    from dataclasses import asdict

    from firth.transformers.pooling import PoolsTokens

    if not isinstance(model, PoolsTokens):
        return None
    pooling = model.pooling
    return {
        **asdict(pooling),
        "max_tokens": pooling.max_tokens or model.size.max_positions,
        "projected": model.projection is not None,  # whitened, shortened, or a Dense layer of sentence-transformers
        "dim": model.dim_of(pooling),
        "prompts": dict(model.sentence.prompts),
        "default_prompt": model.sentence.default_prompt,
        "similarity": model.sentence.similarity,
    }


def index_fields(path: str) -> dict[str, Any]:
    """Return the size, columns and model of an index."""
    from firth.index import Index

    index = Index.open(path)
    manifest = index.store.manifest
    files = [file for segment in manifest["segments"] for file in segment["files"].values()]
    return {
        "kind": "index",
        "rows": len(index),
        "deleted": len(index.store.state.deleted),
        **index.space._asdict(),
        "columns": {name: str(kind) for name, kind in index.columns.items()},
        "segments": len(index.store.state.segments),
        "approximate": (manifest.get("graph") or {}).get("rows", 0),
        "model": manifest.get("model"),
        "unfinished": index.metadata.get("finished") is False,
        "bytes": sum(file["bytes"] for file in files),
        "format": manifest["format"],
        "firth": manifest["firth"],
    }


def sweep_fields(folder: Path) -> dict[str, Any]:
    """Return the trials of a sweep and the best one."""
    from firth.core.storage import read_json

    record = read_json(folder / "sweep.json")
    trials = [trial for trial in record["trials"] if trial["score"] is not None]
    best = max(trials, key=lambda trial: trial["score"], default=None)
    return {
        "kind": "sweep",
        "method": record["identity"]["method"],
        "trials": len(record["trials"]),
        "seconds": sum(trial["seconds"] for trial in record["trials"]),
        "best": {**best["options"], "score": best["score"]} if best else None,
        "model": str(folder / "best") if best else None,
    }


def unfinished_fields(folder: Path) -> dict[str, Any]:
    """Return the progress of an unfinished run and the command that resumes it."""
    from firth.core.checkpoint import STATE
    from firth.core.storage import read_json
    from firth.core.train import COMMAND, UNFINISHED

    work = folder / UNFINISHED
    files = [read_json(path) if path.is_file() else {} for path in (work / COMMAND, work / STATE)]
    record, checkpoint = (each if isinstance(each, dict) else {} for each in files)
    identity, state = record.get("identity"), checkpoint.get("state")
    fields: dict[str, Any] = {"kind": "unfinished run", **(identity if isinstance(identity, dict) else {})}
    fields["resume"] = record.get("typed")
    if not (work / STATE).is_file():
        return {**fields, "checkpoint": "none yet"}
    if not isinstance(state, dict):
        return {**fields, "checkpoint": f"damaged; delete {work} to start over"}
    progress = {name: state[name] for name in ("epoch", "seconds", "words") if name in state}
    return {**fields, "checkpoint": progress}


def is_tokenizer(path: Path) -> bool:
    """Return whether the path is a tokenizer: a file of one, or a folder with such a file that is not a model."""
    from firth.data.tokenizer_files import SENTENCEPIECE, TOKENIZER, VOCAB_JSON, VOCAB_TXT

    names = (TOKENIZER, VOCAB_TXT, VOCAB_JSON, *SENTENCEPIECE)
    if path.is_dir():
        is_model = any((path / name).exists() for name in ("config.json", "model.safetensors"))
        return any((path / name).is_file() for name in names) and not is_model
    return (path.suffix == ".json" or path.name in names) and path.is_file()


def tokenizer_fields(path: str) -> dict[str, Any]:
    """Return the method and the size of a tokenizer."""
    from firth.data.subword_tokenizer import SubwordTokenizer

    tokenizer = SubwordTokenizer.load(path)
    return {
        "kind": "tokenizer",
        "method": tokenizer.kind,
        "tokens": len(tokenizer.ids),
        "merges": len(tokenizer.merges) or None,
        "special": tokenizer.special_tokens,
        "roles": tokenizer.special.config(),
    }


def vector_file_fields(path: Path) -> dict[str, Any]:
    """Return the format and the shape of a vector file."""
    from firth.data.readers import format_and_compression
    from firth.formats import read_vectors
    from firth.formats.detect import detect

    if path.is_file() and format_and_compression(path)[0]:
        raise FirthError(
            "wrong_input",
            "{path} is a data file, not a model or vectors. `firth corpus info {path}` describes it.",
            path=path,
        )
    vectors = read_vectors(path)
    return {
        "kind": "vector file",
        "format": detect(path),
        "rows": len(vectors),
        "dim": vectors.dim,
        "bytes": path.stat().st_size,
        "first": list(vectors.keys[:5]),
    }


def fasttext_fields(path: Path) -> dict[str, Any]:
    """Return the contents of a fastText model."""
    from dataclasses import asdict

    from firth.formats.fasttext import read_fasttext
    from firth.kernels.product import ProductCodes

    file = read_fasttext(path)
    quantized = isinstance(file.inputs, ProductCodes)
    return {
        "kind": "fastText classifier" if file.args.model == "sup" else "fastText word model",
        "version": file.version,
        "words": len(file.words),
        "labels": len(file.labels) or None,
        "ngram_rows": file.ngram_rows,
        "pruned": file.pruned is not None,
        "rows": "quantized" if quantized else "float32",
        "tokens": file.tokens,
        "options": asdict(file.args),
        "bytes": path.stat().st_size,
        "first": [entry.decode(errors="backslashreplace") for entry in (file.labels or file.words)[:5]],
    }


def flatten(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested fields as `name.name`, and the losses of all epochs as one line."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        elif name == "epochs" and isinstance(value, list):
            flat[f"{prefix}loss by epoch"] = "  ".join(f"{epoch['loss']:.4f}" for epoch in value)
        elif isinstance(value, list | tuple):
            flat[prefix + name] = (" " if name == "limits" else ", ").join(map(str, value))  # limits are sentences
        elif isinstance(value, bool):
            flat[prefix + name] = "yes" if value else "no"
        else:
            flat[prefix + name] = f"{value:.6g}" if isinstance(value, float) else value
    return flat
