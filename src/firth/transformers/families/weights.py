"""Weights of other libraries: matched by name and shape before they are read, and written back."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError, FirthWarning
from firth.nets.architecture import Architecture
from firth.transformers.families.family import Family, Source

Arrays = Mapping[str, NDArray[Any]]
OLD_ENDS = {"gamma": "weight", "beta": "bias"}  # of layer norms, in files converted from TensorFlow


def without_prefix(family: Family, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return arrays by the names they have in a network without a head."""
    renamed = dict[str, NDArray[Any]]()
    for original, array in arrays.items():
        stem, dot, last = original.removeprefix("module.").removeprefix(family.prefix).rpartition(".")
        stem = family.renamed.get(stem, stem)
        name = stem + dot + (OLD_ENDS.get(last, last) if stem.endswith("LayerNorm") else last)
        if name in renamed:
            raise FirthError(
                "damaged_model", "The file has two arrays for {name}; the second is {got}.", name=name, got=original
            )
        renamed[name] = array
    return renamed


def read_state(
    family: Family,
    known: Arrays,
    size: Architecture,
    shapes: Mapping[str, tuple[int, ...]],
    optional: Collection[str] = (),
    used_elsewhere: Collection[str] = (),
) -> dict[str, Tensor]:
    """Return Firth's weights from arrays of another library, without prefix: the inverse of `write_state`."""
    used = match_state(family, known, size, shapes, optional, used_elsewhere)
    return {ours: joined(known, source) for ours, source in used.items()}


def match_state(
    family: Family,
    known: Mapping[str, Any],
    size: Architecture,
    shapes: Mapping[str, tuple[int, ...]],
    optional: Collection[str] = (),
    used_elsewhere: Collection[str] = (),
) -> dict[str, Source]:
    """Return where each array of Firth comes from among arrays of another library, without prefix.

    `shapes` are those of the network with all heads; the heads named in `optional` may be missing. Names and shapes are
    checked. Arrays of other heads are ignored with a warning.
    """
    sources = {ours: source for ours in shapes if (source := stripped(family, ours)) is not None}
    missing_parts = {ours: [name for name in source.names if name not in known] for ours, source in sources.items()}
    present = {head for head in optional if any(of(head, ours) and not missing_parts[ours] for ours in sources)}
    if "next_sentence" in present:
        present.add("pooler")  # which it needs
    absent = set(optional) - present
    used = {ours: source for ours, source in sources.items() if not any(of(head, ours) for head in absent)}
    missing = [name for ours in used for name in missing_parts[ours]]
    used_names = {name for source in used.values() for name in source.names}
    others = known.keys() - used_names - set(family.ignored) - set(used_elsewhere)
    unexpected = sorted(name for name in others if name.startswith(family.own))
    left_out = sorted(others - set(unexpected))
    if missing or unexpected:
        problem = "; ".join(
            listed(names, what) for names, what in ((missing, "missing"), (unexpected, "unexpected")) if names
        )
        raise FirthError(
            "damaged_model",
            "These are not the weights of a {family} with {layers} layers: {problem}.",
            family=family.title,
            layers=size.layers,
            problem=problem,
        )
    if left_out:
        warn(f"{listed(left_out, 'ignored')}: these are of a head that Firth does not use.", "weights_ignored")
    check_shapes(known, used, size, shapes)
    return used


def write_state(family: Family, state: Mapping[str, Tensor], size: Architecture, prefixed: bool) -> dict[str, Any]:
    """Return weights by the other library's names; `prefixed` if the network has a head there."""
    arrays = dict[str, NDArray[Any]]()
    for ours, tensor in state.items():
        source = family.source(ours)
        assert source is not None, f"{family.model_type} has no name for {ours}"
        rows = np.cumsum(rows_of_parts(ours, source, tuple(tensor.shape), size))[:-1]
        parts = np.split(tensor.detach().cpu().float().numpy(), rows)
        names = source.names if prefixed else stripped(family, ours).names  # type: ignore[union-attr]
        arrays |= {name: source.write(part) for name, part in zip(names, parts, strict=True)}
    return arrays


def stripped(family: Family, ours: str) -> Source | None:
    """Return the source of an array, with names as in a network without a head."""
    source = family.source(ours)
    if source is None:
        return None
    names = tuple(name.removeprefix(family.prefix) for name in source.names)
    return Source(names, source.skip, source.transposed, source.plus_one)


def of(head: str, name: str) -> bool:
    """Return whether an array of Firth belongs to a head."""
    return name.startswith(f"{head}.")


def rows_of_parts(ours: str, source: Source, shape: tuple[int, ...], size: Architecture) -> list[int]:
    """Return the rows of each stored array that Firth stacks."""
    if len(source.names) == 3 and ".query_key_value." in ours:
        groups = (size.key_value_heads or size.heads) * size.width_of_head
        return [size.heads * size.width_of_head, groups, groups]
    return [shape[0] // len(source.names)] * len(source.names)


def check_shapes(
    known: Arrays, used: Mapping[str, Source], size: Architecture, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Raise damaged_model if shapes or dtypes do not fit config.json."""
    wrong = []
    for ours, source in used.items():
        for name, rows in zip(source.names, rows_of_parts(ours, source, shapes[ours], size), strict=True):
            expected = source.stored_shape((rows, *shapes[ours][1:]))
            if known[name].shape != expected:
                wrong.append(f"{name} has shape {known[name].shape}, expected {expected}")
            elif known[name].dtype.kind != "f":
                wrong.append(f"{name} has dtype {known[name].dtype}, expected floating point")
    if wrong:
        raise FirthError(
            "damaged_model", "The weights do not match config.json: {problem}.", problem="; ".join(wrong[:3])
        )


def check_vocabulary(rows: int, config: Mapping[str, Any]) -> None:
    """Raise damaged_model if config.json declares another vocabulary size."""
    if config.get("vocab_size", rows) != rows:
        raise FirthError(
            "damaged_model",
            "config.json has {name}={got!r}, but the weights have {rows:,} rows.",
            name="vocab_size",
            got=config["vocab_size"],
            rows=rows,
        )


def joined(known: Arrays, source: Source) -> Tensor:
    """Return the stacked arrays as one float32 tensor."""
    array = np.concatenate([source.read(known[name]) for name in source.names])
    # In the memory layout and alignment of a trained weight, on which the last bits of products depend.
    tensor = torch.from_numpy(array).clone(memory_format=torch.contiguous_format)
    if not bool(torch.isfinite(tensor).all()):
        raise FirthError(
            "damaged_model",
            "{array} contains NaN or infinity: the file is damaged, or training diverged.",
            array=source.names[0],
        )
    return tensor


def resolve_output(family: Family, known: dict[str, NDArray[Any]]) -> None:
    """Remove the duplicates in the masked-token head, or the head if it has output vectors of its own."""
    tokens, bias = stripped(family, "input.tokens.weight"), stripped(family, "masked.bias")
    assert tokens is not None
    if bias is not None and family.output_bias in known:  # equal to the bias if both exist; otherwise the one in use
        known[bias.names[0]] = known.pop(family.output_bias)
    output = known.pop(family.output, None)
    if output is None or tokens.names[0] not in known or np.array_equal(output, known[tokens.names[0]]):
        return
    head = replace(family, names={}).own
    for name in [name for name in known if name.startswith(head)]:
        del known[name]
    warn(
        f"{family.output} differs from the token embeddings, which Firth's masked-token head uses, so this head was "
        "dropped.",
        "untied_head_dropped",
    )


def resolve_aliases(family: Family, known: dict[str, NDArray[Any]], output: str = "") -> bool:
    """Remove arrays that repeat another one; return whether the output layer `output` has weights of its own.

    Files may have such an array only once, by any of its names.
    """
    for alias, name in ((f"{alias}.weight", f"{name}.weight") for alias, name in family.aliases.items()):
        if alias not in known:
            continue
        if np.array_equal(known.setdefault(name, known[alias]), known[alias]):
            del known[alias]
        elif alias != output:
            raise FirthError(
                "unsupported_architecture",
                "{alias} differs from {name}, but Firth supports only one table of token embeddings for a {family}.",
                alias=alias,
                name=name,
                family=family.title,
            )
    return output in known


def listed(names: list[str], problem: str) -> str:
    """Return the first three names, the number of others, and what is wrong with them."""
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''} {problem}"


def warn(text: str, code: str) -> None:
    """Issue a FirthWarning with a code."""
    warnings.warn(FirthWarning(text, code), stacklevel=2)
