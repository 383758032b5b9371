"""Where an index is stored: in a folder, or in a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

postgres_option = click.option(
    "--postgres",
    metavar="SERVER",
    envvar="FIRTH_POSTGRES",
    help="The index is a table of postgresql://user@host/database. Also set by FIRTH_POSTGRES.",
)


class IndexLocation(NamedTuple):
    """How to open, create and remove an index. `description` contains no password."""

    description: str
    exists: Callable[[], bool]
    open: Callable[..., Any]
    create: Callable[..., Any]
    remove: Callable[[], None]


def index_location(name: str, server: str | None) -> IndexLocation:
    """Return the location of an index: the folder `name`, or the table `name` of a server."""
    return folder_location(name) if not server else table_location(server, name)


def folder_location(folder: str) -> IndexLocation:
    """Return the location of an index in a folder."""
    from firth.index import Index
    from firth.index.folder import is_index, remove_index

    return IndexLocation(
        folder,
        lambda: is_index(folder),
        lambda model=None: Index.open(folder, model),
        lambda **settings: Index.create(folder, **settings),
        lambda: remove_index(Path(folder)),
    )


def table_location(server: str, table: str) -> IndexLocation:
    """Return the location of an index in a table of PostgreSQL."""
    from firth.index.postgres import PostgresIndex

    return IndexLocation(
        f"The table {table}",
        lambda: PostgresIndex.exists(server, table),
        lambda model=None: PostgresIndex.open(server, table, model),
        lambda **settings: PostgresIndex.create(server, table, **settings),
        lambda: PostgresIndex.open(server, table).drop(),
    )
