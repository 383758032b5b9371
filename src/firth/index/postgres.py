"""`PostgresIndex`: an index as a table of PostgreSQL with the extension pgvector, for those who outgrow one machine.

A row of the index is a row of the table: key, vector, and a column for each attribute. What the index is (metric,
numbers, model) stands in the table's comment. Rows come by COPY into a staging table and from there into the table, all
in one transaction: a connection that is lost on the way leaves nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import ArrayLike

from firth.core.arguments import as_floats, check_count
from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.vectors import Matrix, row_lengths
from firth.index.hits import Hit, Hits
from firth.index.pgvector import COLUMNS, TYPES, Packed, check_version, exists, named, register, sql_type
from firth.index.rows import (
    attribute_table,
    check_identity,
    check_json,
    check_keys,
    check_matrix,
    check_space,
    identity_of,
    is_key,
)
from firth.index.segment import KEY, Space, check_lengths
from firth.index.where import check, first_line, parse, quoted, sql

VECTOR = "vector"
OPERATORS = {"cosine": ("<=>", "cosine_ops"), "dot": ("<#>", "ip_ops"), "euclidean": ("<->", "l2_ops")}
WIDEST = {"float32": 2000, "float16": 4000}  # that HNSW of pgvector takes
FORMS = {"float32": ">f4", "float16": ">f2"}
SEARCHING = 100  # candidates looked at, at least


class PostgresIndex:
    """Made by `PostgresIndex.create` or `PostgresIndex.open`; the rest is as `Index` has it.

    Threads can share one: it has one connection, on which calls follow each other. Open one per thread to search at the
    same time.
    """

    def __init__(self, server: str, table: str, facts: Mapping[str, Any], model: Any = None) -> None:
        self.server, self.table, self.facts, self.model = server, table, dict(facts), model
        self.space = Space(*(facts[name] for name in Space._fields))
        self._connection: Any = None
        self._threads = threading.RLock()  # a connection has one transaction at a time

    # ---- how it comes to be ----

    @classmethod
    def create(
        cls,
        server: str,
        table: str,
        *,
        dim: int,
        metric: str = "cosine",
        numbers: str = "float32",
        model: Any = None,
        model_path: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> PostgresIndex:
        """A new table. `server` is what psql takes: postgresql://user@host/database, or host=… dbname=…."""
        check_space("PostgresIndex", dim, metric, numbers, TYPES)
        made = None if model is None else identity_of(model, model_path)
        facts = {**Space(dim, metric, numbers)._asdict(), "model": made, "about": dict(about or {})}
        index = cls(server, table, facts, model)
        with index._transaction() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            register(index._connection)
            check_version(cursor)
            if exists(cursor, table):
                raise FirthError(
                    "output_exists",
                    "The table {table} exists; choose another name, or open it with PostgresIndex.open.",
                    table=table,
                )
            kind = f"{TYPES[numbers]}({dim})"
            cursor.execute(f"CREATE TABLE {named(table)} ({KEY} text PRIMARY KEY, {VECTOR} {kind} NOT NULL)")
            index._describe(cursor)
        return index

    @classmethod
    def open(cls, server: str, table: str, model: Any = None) -> PostgresIndex:
        probe = cls(server, table, Space(1, "cosine", "float32")._asdict())
        try:
            with probe._transaction() as cursor:
                check_version(cursor)
                if not exists(cursor, table):
                    raise FirthError(
                        "not_found", "There is no table {table} in {where}.", table=table, where=probe._where()
                    )
                cursor.execute("SELECT obj_description(%s::regclass, 'pg_class')", [named(table)])
                comment = cursor.fetchone()[0]
        finally:
            probe.close()
        try:
            facts = json.loads(comment or "")["firth"]
            check_space("PostgresIndex", facts["dim"], facts["metric"], facts["numbers"], TYPES)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FirthError(
                "wrong_input",
                "The table {table} was not made by PostgresIndex.create: its comment says nothing.",
                table=table,
            ) from None
        if model is not None:
            check_identity(facts.get("model"), model, f"The table {table}")
        return cls(server, table, facts, model)

    @classmethod
    def exists(cls, server: str, table: str) -> bool:
        """Whether there is a table of that name, an index or not."""
        with cls(server, table, Space(1, "cosine", "float32")._asdict()) as probe, probe._transaction() as cursor:
            return exists(cursor, table)

    def _describe(self, cursor: Any) -> None:
        from psycopg import sql as parts

        text = parts.Literal(json.dumps({"firth": self.facts}))
        cursor.execute(parts.SQL(f"COMMENT ON TABLE {named(self.table)} IS {{}}").format(text))

    @property
    def about(self) -> dict[str, Any]:
        """Whatever whoever made the index wanted to remember of it."""
        return dict(self.facts.get("about") or {})

    def note(self, **facts: Any) -> None:
        """Adds to `about`."""
        check_json(facts)
        with self._transaction() as cursor:
            before = self.facts
            self.facts = {**before, "about": {**self.about, **facts}}
            try:
                self._describe(cursor)
            except BaseException:
                self.facts = before
                raise

    def drop(self) -> None:
        """Removes the table."""
        with self._transaction() as cursor:
            cursor.execute(f"DROP TABLE {named(self.table)}")
        self.close()

    def close(self) -> None:
        with self._threads:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> PostgresIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what it holds ----

    def __len__(self) -> int:
        with self._transaction() as cursor:
            cursor.execute(f"SELECT count(*) FROM {named(self.table)}")
            return int(cursor.fetchone()[0])

    @property
    def columns(self) -> dict[str, Any]:
        """The attributes' names and Arrow types."""
        with self._transaction() as cursor:
            return self._columns(cursor)

    def _columns(self, cursor: Any) -> dict[str, Any]:
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [named(self.table)],
        )
        return {name: COLUMNS.get(kind) for name, kind in cursor.fetchall() if name not in (KEY, VECTOR)}

    def __contains__(self, key: object) -> bool:
        if not is_key(key):
            return False
        with self._transaction() as cursor:
            cursor.execute(f"SELECT 1 FROM {named(self.table)} WHERE {KEY} = %s", [key])
            return cursor.fetchone() is not None

    def __getitem__(self, key: str) -> Matrix:
        """The vector of a key."""
        if not is_key(key):
            raise FirthError("unknown_key", "The index has no key {key!r:.80}.", key=key)
        with self._transaction() as cursor:
            cursor.execute(f"SELECT {VECTOR}::real[] FROM {named(self.table)} WHERE {KEY} = %s", [key])
            row = cursor.fetchone()
        if row is None:
            raise FirthError("unknown_key", "The index has no key {key!r}.", key=key)
        return np.array(row[0], dtype=np.float32)

    def __repr__(self) -> str:
        return f"PostgresIndex {self.table} of dimension {self.space.dim} ({self.space.metric}, {self.space.numbers})"

    # ---- changes ----

    def add(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """New rows, all or none; a key that is there already is refused."""
        self._upload(keys, vectors, attributes, replace=False)

    def update(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """As `add`; keys that are there already get the new vectors and attributes. Repeated, it changes nothing."""
        self._upload(keys, vectors, attributes, replace=True)

    def delete(self, keys: Sequence[str]) -> None:
        """Keys, all of which must be there."""
        keys = check_keys(keys)
        with self._transaction() as cursor:
            cursor.execute(f"DELETE FROM {named(self.table)} WHERE {KEY} = ANY(%s) RETURNING {KEY}", [keys])
            there = {row[0] for row in cursor.fetchall()}
            missing = [key for key in keys if key not in there]
            if missing:
                some = f"{len(missing):,} of {len(keys):,} are missing"
                raise FirthError(
                    "unknown_key", "The index has no key {missing!r} ({examples}).", missing=missing[0], examples=some
                )

    def optimize(self) -> None:
        """Builds the index of pgvector that searches quickly and approximately (HNSW); later rows go into it too."""
        widest = WIDEST[self.space.numbers]
        if self.space.dim > widest:
            raise FirthError(
                "invalid_value",
                "pgvector's HNSW takes {widest:,} dimensions of {numbers}; got {got:,}.",
                widest=widest,
                numbers=self.space.numbers,
                got=self.space.dim,
            )
        operators = f"{TYPES[self.space.numbers]}_{OPERATORS[self.space.metric][1]}"
        name = quoted(self.table.replace(".", "_") + "_hnsw")
        with self._transaction() as cursor:
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {name} ON {named(self.table)} USING hnsw ({VECTOR} {operators})"
            )
            cursor.execute(f"ANALYZE {named(self.table)}")

    def _upload(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any, replace: bool) -> None:
        keys = check_keys(keys)
        matrix = check_matrix(vectors, keys, self.space.dim)
        check_lengths(row_lengths(matrix), self.space.metric, lambda row: repr(keys[row]))
        with np.errstate(over="ignore"):
            numbers = matrix.astype(FORMS[self.space.numbers])
        if not np.isfinite(numbers).all():
            raise FirthError(
                "out_of_range", "A vector has numbers beyond 65,504, the most float16 holds; take float32."
            )
        with self._transaction(uploading=True) as cursor:
            table = self._attributes(cursor, keys, attributes)
            names = [KEY, VECTOR, *(name for name in table.column_names if name != KEY)]
            listed = ", ".join(map(quoted, names))
            cursor.execute(f"CREATE TEMP TABLE staging (LIKE {named(self.table)}) ON COMMIT DROP")
            self._copy(cursor, listed, numbers, table)
            if not replace:
                self._refuse_present(cursor)
            values = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names if name != KEY)
            rule = f" ON CONFLICT ({KEY}) DO UPDATE SET {values}" if replace else ""
            cursor.execute(f"INSERT INTO {named(self.table)} ({listed}) SELECT {listed} FROM staging{rule}")

    def _attributes(self, cursor: Any, keys: Sequence[str], attributes: Any) -> Any:
        """The rows' keys and attributes in the table's types; columns are made with the first rows."""
        cursor.execute(f"LOCK TABLE {named(self.table)} IN ROW EXCLUSIVE MODE")
        known = self._columns(cursor)
        cursor.execute(f"SELECT NOT EXISTS (SELECT 1 FROM {named(self.table)})")
        if known or not cursor.fetchone()[0]:
            schema = pyarrow.schema([(name, kind) for name, kind in known.items() if kind is not None])
            return attribute_table(keys, attributes, schema)
        table = attribute_table(keys, attributes, None)
        fitting = {name: sql_type(name, table.schema.field(name).type) for name in table.column_names if name != KEY}
        for name, kind in fitting.items():
            cursor.execute(f"ALTER TABLE {named(self.table)} ADD COLUMN {quoted(name)} {kind}")
        schema = pyarrow.schema([(name, COLUMNS[kind]) for name, kind in fitting.items()])
        return attribute_table(keys, table.drop_columns([KEY]), schema)

    def _copy(self, cursor: Any, listed: str, numbers: Any, table: Any) -> None:
        """In binary: a vector is two 16-bit numbers, its dimension and 0, and its numbers, the high byte first."""
        head = np.array([self.space.dim, 0], dtype=">i2").tobytes()
        kinds = [sql_type(name, table.schema.field(name).type) for name in table.column_names if name != KEY]
        with cursor.copy(f"COPY staging ({listed}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["text", TYPES[self.space.numbers], *kinds])
            start = 0
            for batch in table.to_batches(max_chunksize=1000):
                columns = [batch.column(name).to_pylist() for name in table.column_names]
                for place, (key, *values) in enumerate(zip(*columns, strict=True)):
                    copy.write_row((key, Packed(head + numbers[start + place].tobytes()), *values))
                start += batch.num_rows

    def _refuse_present(self, cursor: Any) -> None:
        cursor.execute(f"SELECT s.{KEY} FROM staging s JOIN {named(self.table)} t USING ({KEY}) LIMIT 4")
        there = [row[0] for row in cursor.fetchall()]
        if there:
            some = ", ".join(map(repr, there[:3]))
            raise FirthError(
                "duplicate_name",
                "Keys are in the index already ({examples}{value}); update replaces them.",
                examples=some,
                value=", …" * (len(there) > 3),
            )

    # ---- search ----

    def search(self, query: Any, k: int = 10, *, where: str | None = None, exact: bool = False) -> Any:
        """The `k` nearest rows of a vector or a text; of a matrix or a list of texts, a list of them. `where` and
        `exact` are as `Index.search` has them."""
        k = check_count("k", k)
        texts = [query] if isinstance(query, str) else query
        are_texts = isinstance(texts, (list, tuple)) and bool(texts) and all(isinstance(text, str) for text in texts)
        if are_texts:
            if self.model is None:
                raise FirthError(
                    "missing_model",
                    "A text is searched with the model that made the vectors: PostgresIndex.open(…, model=…).",
                )
            matrix = self.model.embed(list(texts))
        else:
            matrix = as_floats("A query", query)
        rows = np.atleast_2d(matrix)
        check_matrix(rows, ["the query"] * len(rows), self.space.dim)
        check_lengths(row_lengths(rows), self.space.metric, lambda row: f"the query (number {row + 1})")
        if (are_texts or self.space.metric == "cosine") and not rows.any(axis=1).all():
            raise FirthError(
                "zero_vector", "The query is a zero vector, which has no direction: no word of it may be known."
            )
        with self._transaction() as cursor:
            columns = self._columns(cursor)
            names, condition, values = list(columns), "", list[Any]()
            if where is not None:
                asked = parse(where, [KEY, *names])
                check(asked, {KEY: COLUMNS["text"], **columns})
                condition, values = sql(asked)
            cursor.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(SEARCHING, 2 * k))}")
            cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")  # goes on until k rows pass the filter
            if exact:
                cursor.execute("SET LOCAL enable_indexscan = off")
            found = [self._nearest(cursor, row, k, names, condition, values) for row in rows]
        return found[0] if isinstance(query, str) or matrix.ndim == 1 else found

    def _nearest(
        self, cursor: Any, row: Matrix, k: int, names: Sequence[str], condition: str, values: Sequence[Any]
    ) -> Hits:
        asked = f"%s::{TYPES[self.space.numbers]}"
        distance = f"{VECTOR} {OPERATORS[self.space.metric][0]} {asked}"
        text = "[" + ",".join(f"{number:.9g}" for number in row.tolist()) + "]"
        columns = ", ".join(map(quoted, [KEY, *names]))
        cursor.execute(
            f"SELECT {distance} AS firth_distance, {columns} FROM {named(self.table)}"
            f"{' WHERE ' + condition if condition else ''} ORDER BY {distance} LIMIT %s",
            [text, *values, text, k],
        )
        hits = Hits()
        for far, key, *attributes in cursor.fetchall():
            score = {"cosine": 1 - far, "dot": -far, "euclidean": far}[self.space.metric]
            if not math.isnan(score):  # a zero row, under cosine
                hits.append(Hit(key, score, dict(zip(names, attributes, strict=True))))
        return hits

    # ---- the connection ----

    @contextlib.contextmanager
    def _transaction(self, uploading: bool = False) -> Iterator[Any]:
        """A cursor; what is done with it counts when the block ends well, or not at all."""
        if importlib.util.find_spec("psycopg") is None:
            raise missing_package("PostgreSQL needs", "psycopg", "scale")
        import psycopg

        with self._threads:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            try:
                with self._connection.transaction(), self._connection.cursor() as cursor:
                    yield cursor
            except psycopg.Error as error:
                raise self._failed(error, uploading) from error

    def _failed(self, error: Exception, uploading: bool) -> FirthError:
        if not self._connection.closed:
            return FirthError("database", "PostgreSQL refused this: {reason}.", reason=first_line(error))
        where = self._where()
        self.close()
        way = "Try again when it is back."
        if uploading:
            way = "Nothing of this call was stored unless it was just being finished; update with the same rows "
            way += "goes on, and stores nothing twice."
        return FirthError(
            "database",
            "The connection to {where} was lost ({reason}). {hint}",
            where=where,
            reason=first_line(error),
            hint=way,
        )

    def _connect(self) -> Any:
        import psycopg

        named(self.table)
        try:
            connection = psycopg.connect(self.server, connect_timeout=10)
        except psycopg.ProgrammingError:  # its message would repeat the address, password and all
            raise FirthError(
                "database",
                "A server is named as psql takes it: postgresql://user@host/database, or host=… dbname=…; got another.",
            ) from None
        except psycopg.Error as error:
            raise FirthError("database", "Cannot reach PostgreSQL: {reason}.", reason=first_line(error)) from None
        with connection.transaction():
            register(connection)
        return connection

    def _where(self) -> str:
        """Without the password."""
        info = getattr(self._connection, "info", None)
        try:
            return f"PostgreSQL ({info.dbname} at {info.host})" if info else "PostgreSQL"
        except Exception:  # a broken connection may not tell
            return "PostgreSQL"
