"""`firth info PATH`: a model, an unfinished run, an index, a tokenizer, or a vector file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firth.cli.common import is_model_file, json_flag, open_model, print_facts, print_json
from firth.core.errors import FirthError


@click.command()
@click.argument("path")
@json_flag
def command(path: str, as_json: bool) -> None:
    """Tell what a model, an unfinished run, an index, a tokenizer or a vector file holds."""
    from firth.core.storage import CONFIG
    from firth.core.train import UNFINISHED

    facts: dict[str, Any] = {"path": path}
    if (Path(path) / "index.json").is_file():
        facts |= index_facts(path)
    elif (Path(path) / "sweep.json").is_file():
        facts |= sweep_facts(Path(path))
    elif is_tokenizer(Path(path)):
        facts |= tokenizer_facts(path)
    elif Path(path).is_dir():
        unfinished = unfinished_facts(Path(path)) if (Path(path) / UNFINISHED).is_dir() else {}
        if unfinished and not (Path(path) / CONFIG).exists():
            facts |= unfinished
        else:  # an old model stays until its successor is finished
            facts |= {**model_facts(path), **({"unfinished": unfinished} if unfinished else {})}
    else:
        facts |= fasttext_facts(Path(path)) if is_model_file(path) else file_facts(Path(path))
    if as_json:
        print_json(facts)
        return
    print_facts(flattened(facts))


def model_facts(path: str) -> dict[str, Any]:
    from firth.core.foreign import foreign_config, known_options
    from firth.core.model import HasVectors
    from firth.core.saved import read_config
    from firth.core.sketch import KEY
    from firth.maps.layout_files import saved_layouts

    config = None if foreign_config(Path(path)) else read_config(Path(path))
    model = open_model(path)
    training = {name: value for name, value in model.training.items() if name not in ("command", KEY)}
    tables = model.tables if isinstance(model, HasVectors) else {}
    kept = saved_layouts(path) if tables and Path(path).is_dir() else {}
    facts = {
        "kind": "model" if config else "model of another library",
        "method": type(model.method).method_name(),
        "tables": {name: {"rows": len(table), "dim": table.dim} for name, table in tables.items()},
        "maps": {name: {"points": len(found.keys), **found.score._asdict()} for name, found in kept.items()},
        "heads": getattr(model, "heads", None),  # of a BERT
        "pooling": pooling_facts(getattr(model, "base", model)),
        "options": known_options(model),
        "training": training,
    }
    if config is None:
        return {**facts, "bytes": sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())}
    return {
        **facts,
        "bytes": sum(file["bytes"] for file in config["files"].values()),
        "format": config["format"],
        "firth": config["firth"],
    }


def pooling_facts(model: Any) -> dict[str, Any] | None:
    """How a BERT makes one vector of a text."""
    from dataclasses import asdict

    if not hasattr(model, "with_pooling"):
        return None
    pooling = model.pooling
    return {
        **asdict(pooling),
        "max_tokens": pooling.max_tokens or model.size.max_positions,
        "projected": model.projection is not None,  # whitened, shortened, or by a Dense of sentence-transformers
        "dim": model.dim_of(pooling),
    }


def index_facts(path: str) -> dict[str, Any]:
    from firth.index import Index

    index = Index.open(path)
    manifest = index.store.manifest
    files = [facts for segment in manifest["segments"] for facts in segment["files"].values()]
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


def sweep_facts(folder: Path) -> dict[str, Any]:
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


def unfinished_facts(folder: Path) -> dict[str, Any]:
    from firth.core.checkpoint import STATE
    from firth.core.storage import read_json
    from firth.core.train import COMMAND, UNFINISHED

    work = folder / UNFINISHED
    found = [read_json(path) if path.is_file() else {} for path in (work / COMMAND, work / STATE)]
    record, checkpoint = (each if isinstance(each, dict) else {} for each in found)
    identity, state = record.get("identity"), checkpoint.get("state")
    facts: dict[str, Any] = {"kind": "unfinished run", **(identity if isinstance(identity, dict) else {})}
    facts["go on"] = record.get("typed")
    if not (work / STATE).is_file():
        return {**facts, "checkpoint": "none yet"}
    if not isinstance(state, dict):
        return {**facts, "checkpoint": f"damaged; delete {work} to start over"}
    figures = {name: state[name] for name in ("epoch", "seconds", "words") if name in state}
    return {**facts, "checkpoint": figures}


def is_tokenizer(path: Path) -> bool:
    """A file of its own, or a folder that is no model's."""
    if path.is_dir():
        model = any((path / name).exists() for name in ("config.json", "model.safetensors"))
        return (path / "tokenizer.json").is_file() and not model
    return path.suffix == ".json" and path.is_file()


def tokenizer_facts(path: str) -> dict[str, Any]:
    from firth.data.subword_tokenizer import SubwordTokenizer

    found = SubwordTokenizer.load(path)
    facts = {"kind": "tokenizer", "method": found.kind, "tokens": len(found.ids), "merges": len(found.merges) or None}
    return {**facts, "special": found.special_tokens}


def file_facts(path: Path) -> dict[str, Any]:
    from firth.data.readers import format_and_compression
    from firth.formats import read_vectors
    from firth.formats.detect import detect

    if path.is_file() and format_and_compression(path)[0]:
        raise FirthError(
            "wrong_input",
            "{path} is data, not a model or vectors; `firth corpus info {path}` tells what it holds.",
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


def fasttext_facts(path: Path) -> dict[str, Any]:
    from dataclasses import asdict

    from firth.formats.fasttext import read_fasttext
    from firth.kernels.product import ProductCodes

    file = read_fasttext(path)
    coded = isinstance(file.inputs, ProductCodes)
    return {
        "kind": "fastText classifier" if file.args.model == "sup" else "fastText model of words",
        "version": file.version,
        "words": len(file.words),
        "labels": len(file.labels) or None,
        "ngram_rows": file.ngram_rows,
        "pruned": file.pruned is not None,
        "rows": "in codes" if coded else "float32",
        "tokens": file.tokens,
        "options": asdict(file.args),
        "bytes": path.stat().st_size,
        "first": [entry.decode(errors="backslashreplace") for entry in (file.labels or file.words)[:5]],
    }


def flattened(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts as name.name = value; the epochs as one line of losses."""
    found: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            found |= flattened(value, f"{prefix}{name}.")
        elif name == "epochs" and isinstance(value, list):
            found[f"{prefix}loss by epoch"] = "  ".join(f"{epoch['loss']:.4f}" for epoch in value)
        elif isinstance(value, list | tuple):
            found[prefix + name] = ", ".join(map(str, value))
        elif isinstance(value, bool):
            found[prefix + name] = "yes" if value else "no"
        else:
            found[prefix + name] = f"{value:.6g}" if isinstance(value, float) else value
    return found
