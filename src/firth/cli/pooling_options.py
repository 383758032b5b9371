"""Flags of commands that embed texts with a BERT, from the fields of `Pooling`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import Function, note, unsupported
from firth.core.errors import FirthError
from firth.core.options import options_of
from firth.transformers.pooling import Pooling, PoolsTokens

if TYPE_CHECKING:
    from firth.core.model import Model

PRECISIONS = ("auto", "float32", "bf16", "int8")
NAMES = ("how", "layers", "combine", "normalize", "max_tokens", "long", "include_prompt")


def pooling_flags(function: Function) -> Function:
    """Add a flag for each field of `Pooling`, such as --pooling and --layers; the default is the model's."""
    for item in reversed(options_of(Pooling)):
        names = ["--pooling", "how"] if item.name == "how" else ["--" + item.name.replace("_", "-")]
        names = [f"{names[0]}/--no-{names[0][2:]}"] if item.kind is bool else names
        kind: Any = click.Choice(item.choices) if item.choices else item.kind
        help = item.help[0].upper() + item.help[1:] + "."
        function = click.option(*names, type=kind, default=None, help=help)(function)
    return click.option("--layers", metavar="NUMBERS", help="As in -1 (the last layer) or -2,-1; 0 is the input.")(
        function
    )


def given_pooling(model: Model, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields of `Pooling`; an error for a model without pooling."""
    given = {name: values[name] for name in NAMES if values[name] is not None}
    if given and not isinstance(model, PoolsTokens):
        first = next(iter(given))
        flag = "pooling" if first == "how" else first.replace("_", "-")
        raise unsupported(model, path, f"has no pooling, and --{flag} does not apply to it")
    if "layers" in given:
        try:
            given["layers"] = tuple(int(number) for number in given["layers"].split(","))
        except ValueError:
            raise FirthError(
                "invalid_value",
                "{option} takes integers, as in -2,-1; got {got!r}.",
                option="--layers",
                got=given["layers"],
            ) from None
    if given and isinstance(model, PoolsTokens) and model.projection is not None:
        changed = model.with_pooling(**given)
        if changed.projection is None:
            note(
                "The whitening belongs to the model's own pooling and is not applied with another one.",
                "without_whitening",
            )
    return given


def prompt_flag(default: str) -> Callable[[Function], Function]:
    """Add --prompt; `default` says what is used without it."""
    help = f"Name of a prompt of the model that is put before each text, such as query; by default {default}."
    return click.option("--prompt", metavar="NAME", help=help)


def given_prompt(model: Model, path: str, name: str | None) -> dict[str, str]:
    """Return the given prompt as a setting of `embed`, after checking that the model has it."""
    if name is None:
        return {}
    if not isinstance(model, PoolsTokens):
        raise unsupported(model, path, "has no prompts, so --prompt does not apply to it")
    model.sentence.prompt(name)
    return {"prompt": name}


def engine_flags(function: Function) -> Function:
    """Add --device and --precision."""
    help = "Precision of a BERT: float32 or int8 (faster, nearly as accurate) on a CPU; bf16 or float32 on a GPU."
    function = click.option("--precision", type=click.Choice(PRECISIONS), help=help)(function)
    help = "Device of a BERT; auto is a GPU if there is one."
    return click.option("--device", type=click.Choice(("auto", "cpu", "cuda")), help=help)(function)


def given_engine(model: Model, path: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the given device and precision, after checking that the model and the machine support them."""
    given = {name: values[name] for name in ("device", "precision") if values[name]}
    if given and not isinstance(model, PoolsTokens):
        raise unsupported(model, path, f"is not a BERT, and --{next(iter(given))} does not apply to it")
    if given:
        from firth.transformers.text_encoder import resolve_engine

        resolve_engine(given.get("device", "auto"), given.get("precision", "auto"))
    return given
