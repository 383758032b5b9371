"""Flags of verbs that turn texts into vectors by a BERT: derived from the fields of `Pooling`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from firth.cli.common import Function, note
from firth.core.errors import FirthError
from firth.core.options import options_of
from firth.transformers.pooling import Pooling

PRECISIONS = ("auto", "float32", "bf16", "int8")
NAMES = ("how", "layers", "combine", "normalize", "max_tokens", "long")


def pooling_flags(function: Function) -> Function:
    """--pooling, --layers, --combine, --normalize, --max-tokens and --long; what is not given stays as it is."""
    for item in reversed(options_of(Pooling)):
        names = ["--pooling", "how"] if item.name == "how" else ["--" + item.name.replace("_", "-")]
        names = [f"{names[0]}/--no-{item.name}"] if item.kind is bool else names
        kind: Any = click.Choice(item.choices) if item.choices else item.kind
        told = item.help[0].upper() + item.help[1:] + "."
        function = click.option(*names, type=kind, default=None, help=told)(function)
    return click.option("--layers", metavar="NUMBERS", help="As in -1 (the last) or -2,-1; 0 is the input.")(function)


def given_pooling(model: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Pooling` that were given, for a model that has one."""
    given = {name: values[name] for name in NAMES if values[name] is not None}
    if given and not hasattr(model, "with_pooling"):
        method, first = type(model.method).method_name(), next(iter(given))
        flag = "pooling" if first == "how" else first.replace("_", "-")
        raise FirthError(
            "unsupported_model", "--{flag} is for models such as BERT; this one is {method}.", flag=flag, method=method
        )
    if "layers" in given:
        try:
            given["layers"] = tuple(int(number) for number in given["layers"].split(","))
        except ValueError:
            raise FirthError(
                "invalid_value",
                "{option} takes whole numbers, as in -2,-1; got {got!r}.",
                option="--layers",
                got=given["layers"],
            ) from None
    if given and getattr(model, "projection", None) is not None:
        changed = model.with_pooling(**given)
        if changed.projection is None:
            note("Whitening is of the model's own pooling; with another one it is left out.", "without_whitening")
    return given


def engine_flags(function: Function) -> Function:
    """--device and --precision."""
    help = "Of a BERT: on a CPU float32, or int8 (quicker, nearly as good); on a GPU bf16, or float32."
    function = click.option("--precision", type=click.Choice(PRECISIONS), help=help)(function)
    help = "Where a BERT computes; a GPU if there is one."
    return click.option("--device", type=click.Choice(("auto", "cpu", "cuda")), help=help)(function)


def given_engine(model: Any, path: str, values: Mapping[str, Any]) -> dict[str, str]:
    """The device and the precision that were given, for a model that has a choice and a machine that has them."""
    given = {name: values[name] for name in ("device", "precision") if values[name]}
    if given and not hasattr(model, "pool_windows"):
        raise FirthError(
            "unsupported_model",
            "--{flag} is for models such as BERT; {path} is {method}.",
            flag=next(iter(given)),
            path=path,
            method=type(model.method).method_name(),
        )
    if given:
        from firth.transformers.text_encoder import resolve_engine

        resolve_engine(given.get("device", "auto"), given.get("precision", "auto"))
    return given
