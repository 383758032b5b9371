"""`Features`: a table of what is known about users or items, by key."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from firth.core.errors import FirthError
from firth.data.table import Table


class Features:
    """Rows of a `Table` by key. The key column is the first, unless another one has a recognized name."""

    def __init__(self, source: Any, names: Sequence[str] = ()) -> None:
        table = Table(source)
        lower = [name.strip().lower() for name in table.names]
        if len(lower) < 2:
            raise FirthError(
                "too_few",
                "A table of features must have a key column and at least one other column; it has {available}.",
                available=", ".join(table.names) or "none",
            )
        key = table.names[next((lower.index(name) for name in names if name in lower), 0)]
        if isinstance(source, (str, os.PathLike)):
            table = Table(source, categories=[key])  # read as text: 007 stays 007
        keys = table.categories(key)
        missing = [row for row, value in enumerate(keys) if value is None]
        if missing:
            raise FirthError("malformed_data", "Row {row} has no key.", row=table.row_number(missing[0]))
        self.keys = [value for value in keys if value is not None]
        self.rows = {value: row for row, value in enumerate(self.keys)}
        if len(self.rows) < len(self.keys):
            repeated = next(value for row, value in enumerate(self.keys) if self.rows[value] != row)
            raise FirthError("duplicate_name", "Two rows of features have the key {name!r}.", name=repeated)
        self.table = Table(table, columns=[name for name in table.names if name != key])

    @classmethod
    def of(cls, source: Any, names: Sequence[str] = ()) -> Features | None:
        """Return features of any source of a `Table`; None stays None."""
        return source if source is None or isinstance(source, Features) else cls(source, names)

    def aligned(self, keys: Sequence[str]) -> Table:
        """Return one row per key; the cells of unknown keys are missing."""
        import pyarrow as pa

        rows = pa.array([self.rows.get(key) for key in keys], pa.int64())
        columns = self.table.arrow()
        return Table({name: columns.column(name).take(rows) for name in self.table.names})

    def fingerprint(self) -> str:
        """Return a hash of the keys and the table."""
        return hashlib.sha256((json.dumps(self.keys) + self.table.fingerprint()).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Features of {len(self.keys):,}: {self.table!r}"
