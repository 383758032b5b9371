"""What methods learn from, on the command line: each `Method.kind` with its flags, how DATA is opened, what next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from firth.cli.common import DATA_OPTIONS, TABLE_OPTIONS, TAGS_OPTION, one_file

Values = Mapping[str, Any]
Flags = tuple[tuple[str, dict[str, Any]], ...]


class Kind(NamedTuple):
    """One kind of data."""

    flags: Flags
    open: Callable[[Values], Any]
    next: str  # what to do with the model, {} being its folder


def open_text(values: Values) -> Any:
    from firth.data.corpus import Corpus

    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"])


def open_tagged(values: Values) -> Any:
    from firth.data.corpus import Corpus

    tags = values["tags"].split(",") if values["tags"] else ()
    return Corpus(*values["data"], unit=values["unit"], column=values["column"], key=values["key"], tags=tags)


def open_table(values: Values) -> Any:
    from firth.data.table import Table

    columns, categories = (values[name].split(",") if values[name] else None for name in ("columns", "categories"))
    return Table(one_file(values["data"]), columns=columns, categories=categories or ())


KINDS: dict[str, Kind] = {
    "text": Kind(DATA_OPTIONS, open_text, "firth neighbors {} WORD"),
    "tagged": Kind((*DATA_OPTIONS, TAGS_OPTION), open_tagged, "firth neighbors {} KEY"),
    "table": Kind(TABLE_OPTIONS, open_table, "firth embed {} TABLE -o codes.npy"),
}
