"""Types, quoted names and binary vectors for PostgreSQL and its extension pgvector."""

from __future__ import annotations

import re
from typing import Any

import pyarrow

from firth.core.errors import FirthError
from firth.index.where import quoted

TYPES = {"float32": "vector", "float16": "halfvec"}
#: The Arrow type of each SQL type.
COLUMNS = {
    "bigint": pyarrow.int64(),
    "double precision": pyarrow.float64(),
    "boolean": pyarrow.bool_(),
    "text": pyarrow.large_string(),
    "date": pyarrow.date32(),
    "timestamp with time zone": pyarrow.timestamp("us", "UTC"),
}


class Packed:
    """A vector in PostgreSQL's binary format."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def register(connection: Any) -> None:
    """Register the vector types with a connection, so that COPY can write them."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.types import TypeInfo

    for type_name in TYPES.values():
        info = TypeInfo.fetch(connection, type_name)
        if info is None:  # PostgresIndex.create installs the extension
            continue
        info.register(connection)
        dump = {"format": Format.BINARY, "oid": info.oid, "dump": lambda self, packed: packed.data}
        connection.adapters.register_dumper(Packed, type(f"{type_name}Dumper", (Dumper,), dump))


def check_version(cursor: Any) -> None:
    """Check that pgvector is installed in the database and recent enough."""
    cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    row = cursor.fetchone()
    if row is None:
        raise FirthError(
            "database",
            "The extension vector is not installed in the database. PostgresIndex.create installs it if the user is "
            "allowed to.",
        )
    if tuple(int(part) for part in row[0].split(".")[:2]) < (0, 8):
        raise FirthError("database", "pgvector must be version 0.8 or later; the database has {got}.", got=row[0])


def exists(cursor: Any, table: str) -> bool:
    """Return whether a table exists."""
    cursor.execute("SELECT to_regclass(%s)", [quoted_table(table)])
    return cursor.fetchone()[0] is not None


def quoted_table(table: str) -> str:
    """Return a table's name, optionally with a schema, quoted for SQL."""
    if not re.fullmatch(r"\w+(\.\w+)?", table):
        raise FirthError(
            "invalid_value",
            "A table name must consist of letters, digits and _, optionally with a schema before it; got {got!r}.",
            got=table,
        )
    return ".".join(map(quoted, table.split(".")))


def sql_type(name: str, arrow_type: Any) -> str:
    """Return the SQL type of an attribute's Arrow type."""
    types = pyarrow.types
    checks = {
        "bigint": types.is_integer,
        "double precision": types.is_floating,
        "boolean": types.is_boolean,
        "text": lambda each: types.is_string(each) or types.is_large_string(each) or types.is_null(each),
        "date": types.is_date,
        "timestamp with time zone": types.is_timestamp,
    }
    for sql_name, check in checks.items():
        if check(arrow_type):
            return sql_name
    raise FirthError(
        "invalid_type",
        "The attribute {name} has the type {got}, which PostgreSQL columns do not support. Supported: {choices}.",
        name=name,
        got=arrow_type,
        choices=", ".join(checks),
    )
