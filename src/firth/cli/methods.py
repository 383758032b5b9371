"""`firth methods`: the methods that can be trained."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from firth.cli.common import json_flag, print_json, print_table
from firth.core import registry
from firth.core.options import Option, options_of


@click.command()
@json_flag
def command(as_json: bool) -> None:
    """List the methods that can be trained.

    `firth train METHOD --help` shows the options of a method; those of the family finetuning are run by
    `firth finetune`.
    """
    methods = {name: registry.method(name) for name in sorted(registry.method_classes())}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "family": registry.family_of(name),
                    "summary": method.summary,
                    "options": [option_fields(option) for option in options_of(method)],
                }
                for name, method in methods.items()
            ]
        )
        return
    rows = [[name, registry.family_of(name), method.summary] for name, method in methods.items()]
    print_table(["method", "family", "summary"], rows)


def option_fields(option: Option) -> dict[str, Any]:
    """Return the name, type, default, range and help of an option, without what does not apply."""
    fields = {**asdict(option), "kind": option.kind.__name__}
    return {name: value for name, value in fields.items() if value is not None}
