"""What PostgreSQL and its extension pgvector want to be told: types, names, vectors in binary."""

from __future__ import annotations

import re
from typing import Any

import pyarrow

from firth.core.errors import FirthError
from firth.index.where import quoted

TYPES = {"float32": "vector", "float16": "halfvec"}
#: Of each SQL type, its Arrow type.
COLUMNS = {
    "bigint": pyarrow.int64(),
    "double precision": pyarrow.float64(),
    "boolean": pyarrow.bool_(),
    "text": pyarrow.large_string(),
    "date": pyarrow.date32(),
    "timestamp with time zone": pyarrow.timestamp("us", "UTC"),
}


class Packed:
    """A vector in PostgreSQL's binary form."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def register(connection: Any) -> None:
    """Lets COPY write vectors."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.types import TypeInfo

    for kind in TYPES.values():
        info = TypeInfo.fetch(connection, kind)
        if info is None:  # the extension comes with the first table
            continue
        info.register(connection)
        dump = {"format": Format.BINARY, "oid": info.oid, "dump": lambda self, packed: packed.data}
        connection.adapters.register_dumper(Packed, type(f"{kind}Dumper", (Dumper,), dump))


def check_version(cursor: Any) -> None:
    cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    row = cursor.fetchone()
    if row is None:
        raise FirthError(
            "database", "The database has not got the extension vector; PostgresIndex.create makes it, if it may."
        )
    if tuple(int(part) for part in row[0].split(".")[:2]) < (0, 8):
        raise FirthError("database", "pgvector must be 0.8 or later; the database has {row}.", row=row[0])


def exists(cursor: Any, table: str) -> bool:
    cursor.execute("SELECT to_regclass(%s)", [named(table)])
    return cursor.fetchone()[0] is not None


def named(table: str) -> str:
    """A table's name for SQL; a schema may stand before it."""
    if not re.fullmatch(r"\w+(\.\w+)?", table):
        raise FirthError(
            "invalid_value",
            "A table's name has letters, digits and _, and perhaps a schema before it; got {got!r}.",
            got=table,
        )
    return ".".join(map(quoted, table.split(".")))


def sql_type(name: str, kind: Any) -> str:
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
        if check(kind):
            return sql_name
    raise FirthError(
        "invalid_type",
        "The attribute {name} of {kind} has no column in PostgreSQL; take {checks}.",
        name=name,
        kind=kind,
        checks=", ".join(checks),
    )
