"""Where an index of texts stands: a folder, or a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

postgres_option = click.option(
    "--postgres",
    metavar="SERVER",
    envvar="FIRTH_POSTGRES",
    help="The index is a table there: postgresql://user@host/database. Or by the variable FIRTH_POSTGRES.",
)


class Place(NamedTuple):
    """`open(model)` and `create(**settings)` give an index; `describe` leaves passwords out."""

    describe: str
    exists: Callable[[], bool]
    open: Callable[..., Any]
    create: Callable[..., Any]
    remove: Callable[[], None]


def place_of(name: str, server: str | None) -> Place:
    return folder_place(Path(name)) if not server else table_place(server, name)


def folder_place(folder: Path) -> Place:
    from firth.index import Index
    from firth.index.folder import is_index, remove_index

    return Place(
        str(folder),
        lambda: is_index(folder),
        lambda model=None: Index.open(folder, model),
        lambda **settings: Index.create(folder, **settings),
        lambda: remove_index(folder),
    )


def table_place(server: str, table: str) -> Place:
    from firth.index.postgres import PostgresIndex

    return Place(
        f"the table {table}",
        lambda: PostgresIndex.exists(server, table),
        lambda model=None: PostgresIndex.open(server, table, model),
        lambda **settings: PostgresIndex.create(server, table, **settings),
        lambda: PostgresIndex.open(server, table).drop(),
    )
