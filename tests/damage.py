"""Damaged folders for tests and fuzzing: what a bad disk, a careless editor or an attacker may do to JSON files and
safetensors. Every variant is a function of the folder and a number, so that what failed once can be had again."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.storage import read_arrays, write_arrays

#: What may stand in the place of any value of a JSON file.
VALUES: list[Any] = [None, -1, 0, 1, 10**9, 2**63, 1.5, float("nan"), float("inf"), "", "x", [], {}, True, [[]], ["x"]]

Damage = Callable[[Path], None]  # what is done to a copy of a folder


def json_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def array_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


def nodes(document: Any, most: int, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in a JSON document; of long lists and objects the first and last few."""
    yield here
    items = list(document.items() if isinstance(document, dict) else enumerate(document)) if holds(document) else []
    for key, value in items if len(items) <= most else [*items[: most // 2], *items[-(most // 2) :]]:
        yield from nodes(value, most, (*here, key))


def holds(value: Any) -> bool:
    return isinstance(value, (dict, list))


def changed(document: Any, where: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """The document with `change(container, key)` done to what holds `where`."""
    box = [json.loads(json.dumps(document))]
    path = (0, *where)
    container: Any = box
    for key in path[:-1]:
        container = container[key]
    change(container, path[-1])
    return box[0]


def json_damage(path: Path, choice: random.Random, most: int) -> Iterator[tuple[str, Any]]:
    """Documents that are a little different, with what was done."""
    document = json.loads(path.read_bytes())
    for where in nodes(document, most):
        name = f"{path.name}:{'.'.join(map(str, where))}"
        for value in choice.sample(VALUES, 4):
            yield (
                f"{name}={value!r}",
                changed(document, where, partial(set_item, value=value)),
            )
        if where:
            yield f"del {name}", changed(document, where, lambda held, key: held.__delitem__(key))
        found = document
        for key in where:
            found = found[key]
        if isinstance(found, list) and found:
            yield f"{name} twice", changed(document, where, lambda held, key: held[key].append(held[key][0]))
        if isinstance(found, dict):
            yield f"{name} more", changed(document, where, lambda held, key: held[key].update(other=1))
        if type(found) in (int, float):
            for value in (found + 1, -found, found * 1000):
                yield (
                    f"{name}={value}",
                    changed(document, where, partial(set_item, value=value)),
                )


def set_item(held: Any, key: Any, value: Any) -> None:
    held[key] = value


def array_damage(path: Path, choice: random.Random, most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arrays of which one is another, with what was done."""
    arrays = {name: np.array(array) for name, array in read_arrays(path).items()}
    names = list(arrays) if len(arrays) <= most else choice.sample(list(arrays), most)
    for name in names:
        for what, array in other_arrays(arrays[name], choice):
            yield f"{path.name}:{name} {what}", {**arrays, name: array}
        yield f"del {path.name}:{name}", {key: array for key, array in arrays.items() if key != name}
        yield f"{path.name}:{name} renamed", {key + "x" * (key == name): array for key, array in arrays.items()}
    yield f"{path.name} empty", {}
    yield f"{path.name} more", {**arrays, "other": np.zeros(3)}


def other_arrays(array: Any, choice: random.Random) -> Iterator[tuple[str, Any]]:
    kinds = [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_]
    for kind in choice.sample(kinds, 3):
        with np.errstate(all="ignore"):
            yield np.dtype(kind).name, array.astype(kind)
    yield "flat", array.reshape(-1)
    yield "deeper", array[..., None]
    yield "turned", array.T.copy()
    yield "none", array[:0] if array.ndim else array.reshape(1)[:0]
    if array.ndim:
        yield "less", array[:-1]
        yield "more", np.concatenate([array, array[-1:]])
        yield "narrow", array[..., :-1].copy()
    places = [choice.randrange(array.size)] if array.size else []
    odd = [np.nan, np.inf, -np.inf, 3e38] if array.dtype.kind == "f" else [-1, 0, 1, 2**31 - 1, -(2**31), 2**62]
    for value in odd:
        for place in places:
            other = array.copy()
            with np.errstate(all="ignore"):
                other.reshape(-1)[place] = np.array(value).astype(array.dtype)
            yield f"[{place}]={value}", other
    if array.dtype.kind != "f" and array.size:
        yield (
            "shuffled",
            np.array(choice.sample(array.reshape(-1).tolist(), array.size), array.dtype).reshape(array.shape),
        )


def byte_damage(path: Path, choice: random.Random, count: int) -> Iterator[tuple[str, bytes | None]]:
    data = path.read_bytes()
    yield f"{path.name} gone", None
    yield f"{path.name} empty", b""
    for _ in range(count):
        place, bit = choice.randrange(len(data)), choice.randrange(8)
        if choice.random() < 0.5:  # the header of arrays and the beginning of JSON matter most
            place = choice.randrange(min(len(data), 400))
        yield (
            f"{path.name} bit {bit} of byte {place}",
            data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :],
        )
    for _ in range(max(1, count // 3)):
        end = choice.randrange(len(data))
        yield f"{path.name} cut at {end}", data[:end]


def damages(folder: Path, seed: int = 1, most: int = 6, flips: int = 12) -> Iterator[tuple[str, Damage]]:
    """Every damage of a folder, with its name. `most` bounds how much of a long list is looked at."""
    choice = random.Random(seed)
    for path in json_files(folder):
        place = path.relative_to(folder)
        for name, document in json_damage(path, choice, most):
            yield name, writes(place, json.dumps(document).encode())
    for path in array_files(folder):
        place = path.relative_to(folder)
        for name, arrays in array_damage(path, choice, most):
            yield name, writes_arrays(place, arrays)
    for path in [*json_files(folder), *array_files(folder)]:
        for name, data in byte_damage(path, choice, flips):
            yield name, writes(path.relative_to(folder), data)


def writes_arrays(place: Path, arrays: dict[str, Any]) -> Damage:
    return lambda copy: write_arrays(copy / place, arrays)


def writes(place: Path, data: bytes | None) -> Damage:
    def damage(copy: Path) -> None:
        (copy / place).unlink()
        if data is not None:
            (copy / place).write_bytes(data)

    return damage


def damaged_copy(folder: Path, target: Path, damage: Damage) -> Path:
    """A copy of a folder with the damage done."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    damage(target)
    return target


def fix_hashes(folder: Path) -> None:
    """Gives the config.json of a model the sizes and hashes of its files, as one who changes them on purpose would."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        for name in list(config["files"]):
            data = (folder / name).read_bytes()
            config["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (folder / "config.json").write_text(json.dumps(config))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # config.json itself is damaged, or a file is gone
