"""`PostgresIndex`: an index as a table of PostgreSQL with the extension pgvector, for data beyond one machine.

A row of the index is a row of the table: key, vector, and one column per attribute. The properties of the index
(metric, dtype, model) are stored in the table's comment. Rows are uploaded with COPY to a staging table and then
inserted, in one transaction, so a lost connection leaves no partial data.

Several writers fill a table that is partitioned by a hash of the key. Each adds whole shards: a row of a second table
names the shard and is inserted in the same transaction, so a shard that is repeated is not stored twice.
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
from firth.core.model import Model
from firth.core.vectors import Matrix, row_lengths
from firth.index.hits import Hit, Hits
from firth.index.lookup import embedded_queries
from firth.index.pgvector import COLUMNS, TYPES, Packed, check_version, exists, quoted_table, register, sql_type
from firth.index.rows import (
    attribute_table,
    check_identity,
    check_json,
    check_keys,
    check_known,
    check_matrix,
    check_space,
    identity_of,
    is_key,
)
from firth.index.segment import KEY, Space, check_lengths
from firth.index.where import check, first_line, parse, quoted, sql

VECTOR = "vector"
OPERATORS = {"cosine": ("<=>", "cosine_ops"), "dot": ("<#>", "ip_ops"), "euclidean": ("<->", "l2_ops")}
MAX_HNSW_DIM = {"float32": 2000, "float16": 4000}  # limits of pgvector
NUMPY_TYPES = {"float32": ">f4", "float16": ">f2"}
EF_SEARCH = 100  # smallest hnsw.ef_search


class PostgresIndex:
    """An index in PostgreSQL with the interface of `Index`, created by `PostgresIndex.create` or `PostgresIndex.open`.

    Threads can share an index: it has one connection, on which calls are serialized. Open one index per thread to
    search in parallel.
    """

    def __init__(self, server: str, table: str, properties: Mapping[str, Any], model: Model | None = None) -> None:
        self.server, self.table, self.properties, self.model = server, table, dict(properties), model
        self.space = Space.from_json(properties)
        self._connection: Any = None
        self._threads = threading.RLock()  # a connection has one transaction at a time

    # ---- creating and opening ----

    @classmethod
    def create(
        cls,
        server: str,
        table: str,
        *,
        dim: int,
        metric: str = "cosine",
        dtype: str = "float32",
        model: Model | None = None,
        model_path: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        partitions: int = 0,
    ) -> PostgresIndex:
        """Create a table. `server` is a connection string: postgresql://user@host/database, or host=… dbname=….

        With `partitions`, the table is partitioned by a hash of the key, for several writers: each partition has an
        index of its own.
        """
        check_space("PostgresIndex", dim, metric, dtype, TYPES)
        identity = None if model is None else identity_of(model, model_path)
        properties = {**Space(dim, metric, dtype).to_json(), "model": identity, "about": dict(metadata or {})}
        index = cls(server, table, properties, model)
        with index._transaction() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            register(index._connection)
            check_version(cursor)
            if exists(cursor, table):
                raise FirthError(
                    "output_exists",
                    "The table {table} exists. Choose another name, or open it with PostgresIndex.open.",
                    table=table,
                )
            sql_vector = f"{TYPES[dtype]}({dim})"
            by_hash = f" PARTITION BY HASH ({KEY})" if partitions else ""
            cursor.execute(
                f"CREATE TABLE {quoted_table(table)} ({KEY} text PRIMARY KEY, {VECTOR} {sql_vector} NOT NULL){by_hash}"
            )
            for number in range(partitions):
                cursor.execute(
                    f"CREATE TABLE {quoted_table(f'{table}_{number}')} PARTITION OF {quoted_table(table)} "
                    f"FOR VALUES WITH (MODULUS {int(partitions)}, REMAINDER {number})"
                )
            index._describe(cursor)
        return index

    @classmethod
    def open(cls, server: str, table: str, model: Model | None = None) -> PostgresIndex:
        """Open the index in an existing table."""
        probe = cls(server, table, Space(1, "cosine", "float32").to_json())
        try:
            with probe._transaction() as cursor:
                check_version(cursor)
                if not exists(cursor, table):
                    raise FirthError(
                        "not_found", "There is no table {table} in {where}.", table=table, where=probe._where()
                    )
                cursor.execute("SELECT obj_description(%s::regclass, 'pg_class')", [quoted_table(table)])
                comment = cursor.fetchone()[0]
        finally:
            probe.close()
        try:
            properties = json.loads(comment or "")["firth"]
            check_space("PostgresIndex", properties["dim"], properties["metric"], properties["numbers"], TYPES)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FirthError(
                "wrong_input",
                "The table {table} was not created by PostgresIndex.create: its comment does not describe an index.",
                table=table,
            ) from None
        if model is not None:
            check_identity(properties.get("model"), model, f"The table {table}")
        return cls(server, table, properties, model)

    @classmethod
    def exists(cls, server: str, table: str) -> bool:
        """Return whether a table of that name exists, whether it is an index or not."""
        with cls(server, table, Space(1, "cosine", "float32").to_json()) as probe, probe._transaction() as cursor:
            return exists(cursor, table)

    def _describe(self, cursor: Any) -> None:
        from psycopg import sql as parts

        text = parts.Literal(json.dumps({"firth": self.properties}))
        cursor.execute(parts.SQL(f"COMMENT ON TABLE {quoted_table(self.table)} IS {{}}").format(text))

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the index, as JSON values."""
        return dict(self.properties.get("about") or {})

    def add_metadata(self, **values: Any) -> None:
        """Add entries to `metadata`."""
        check_json(values)
        with self._transaction() as cursor:
            before = self.properties
            self.properties = {**before, "about": {**self.metadata, **values}}
            try:
                self._describe(cursor)
            except BaseException:
                self.properties = before
                raise

    def drop(self) -> None:
        """Drop the table."""
        with self._transaction() as cursor:
            cursor.execute(f"DROP TABLE {quoted_table(self.table)}")
            cursor.execute(f"DROP TABLE IF EXISTS {self._shards}")
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        with self._threads:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> PostgresIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- contents ----

    def __len__(self) -> int:
        with self._transaction() as cursor:
            cursor.execute(f"SELECT count(*) FROM {quoted_table(self.table)}")
            return int(cursor.fetchone()[0])

    @property
    def columns(self) -> dict[str, Any]:
        """The names and Arrow types of the attributes."""
        with self._transaction() as cursor:
            return self._columns(cursor)

    def _columns(self, cursor: Any) -> dict[str, Any]:
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            [quoted_table(self.table)],
        )
        return {name: COLUMNS.get(kind) for name, kind in cursor.fetchall() if name not in (KEY, VECTOR)}

    def __contains__(self, key: object) -> bool:
        if not is_key(key):
            return False
        with self._transaction() as cursor:
            cursor.execute(f"SELECT 1 FROM {quoted_table(self.table)} WHERE {KEY} = %s", [key])
            return cursor.fetchone() is not None

    def __getitem__(self, key: str) -> Matrix:
        """Return the vector of a key."""
        if not is_key(key):
            raise FirthError("unknown_key", "The index has no key {key!r:.80}.", key=key)
        with self._transaction() as cursor:
            cursor.execute(f"SELECT {VECTOR}::real[] FROM {quoted_table(self.table)} WHERE {KEY} = %s", [key])
            row = cursor.fetchone()
        if row is None:
            raise FirthError("unknown_key", "The index has no key {key!r}.", key=key)
        return np.array(row[0], dtype=np.float32)

    def __repr__(self) -> str:
        return f"PostgresIndex {self.table} of dimension {self.space.dim} ({self.space.metric}, {self.space.dtype})"

    # ---- changes ----

    def add(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """Add rows in one transaction; existing keys are refused."""
        self._upload(keys, vectors, attributes, replace=False)

    def update(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """Add rows, and replace the vectors and attributes of existing keys. Repeating the call changes nothing."""
        self._upload(keys, vectors, attributes, replace=True)

    # ---- several writers ----

    def lock(self) -> None:
        """Refuse to go on if another process fills the table; the lock ends with the connection."""
        with self._transaction() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [f"firth {self.table}"])
            if not cursor.fetchone()[0]:
                raise FirthError("locked", "Another process is filling the table {table}.", table=self.table)

    @property
    def _shards(self) -> str:
        return quoted_table(f"{self.table}_shards")

    @property
    def has_shards(self) -> bool:
        """Whether writers are filling the table."""
        with self._transaction() as cursor:
            return exists(cursor, f"{self.table}_shards")

    def begin_shards(self, types: Mapping[str, Any], **metadata: Any) -> None:
        """Prepare the table for several writers, with a column for each attribute of these Arrow types."""
        check_json(metadata)
        with self._transaction() as cursor:
            cursor.execute(f"CREATE TABLE {self._shards} (shard text PRIMARY KEY)")
            existing = self._columns(cursor)
            for name, arrow_type in types.items():
                if name not in existing:
                    cursor.execute(
                        f"ALTER TABLE {quoted_table(self.table)} ADD COLUMN {quoted(name)} {sql_type(name, arrow_type)}"
                    )
            self.properties = {**self.properties, "about": {**self.metadata, **metadata}}
            self._describe(cursor)

    def add_shard(self, shard: str, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> bool:
        """Add the rows of a shard in one transaction, unless they were added before; return whether they were added."""
        return self._upload(keys, vectors, attributes, replace=False, shard=shard)

    def end_shards(self, **metadata: Any) -> None:
        """Forget the shards when all were added, and add entries to `metadata`."""
        check_json(metadata)
        with self._transaction() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {self._shards}")
            self.properties = {**self.properties, "about": {**self.metadata, **metadata}}
            self._describe(cursor)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete keys, all of which must exist."""
        keys = check_keys(keys)
        with self._transaction() as cursor:
            cursor.execute(f"DELETE FROM {quoted_table(self.table)} WHERE {KEY} = ANY(%s) RETURNING {KEY}", [keys])
            deleted = {row[0] for row in cursor.fetchall()}
            check_known(keys, deleted)

    def optimize(self) -> None:
        """Build pgvector's HNSW index for approximate search; rows that are added later go into it too."""
        max_dim = MAX_HNSW_DIM[self.space.dtype]
        if self.space.dim > max_dim:
            raise FirthError(
                "invalid_value",
                "pgvector's HNSW supports at most {most:,} dimensions of {dtype}; got {got:,}.",
                most=max_dim,
                dtype=self.space.dtype,
                got=self.space.dim,
            )
        operators = f"{TYPES[self.space.dtype]}_{OPERATORS[self.space.metric][1]}"
        name = quoted(self.table.replace(".", "_") + "_hnsw")
        with self._transaction() as cursor:
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {name} ON {quoted_table(self.table)} USING hnsw ({VECTOR} {operators})"
            )
            cursor.execute(f"ANALYZE {quoted_table(self.table)}")

    def _upload(
        self, keys: Sequence[str], vectors: ArrayLike, attributes: Any, replace: bool, shard: str | None = None
    ) -> bool:
        """Add or replace rows; return False if the shard exists."""
        keys = check_keys(keys)
        matrix = check_matrix(vectors, keys, self.space.dim)
        check_lengths(row_lengths(matrix), self.space.metric, lambda row: repr(keys[row]))
        with np.errstate(over="ignore"):
            stored = matrix.astype(NUMPY_TYPES[self.space.dtype])
        if not np.isfinite(stored).all():
            raise FirthError(
                "out_of_range", "A vector has values beyond 65,504, the float16 maximum. Use dtype='float32'."
            )
        with self._transaction(uploading=True) as cursor:
            if shard is not None:  # another writer of the same shard waits here
                cursor.execute(f"INSERT INTO {self._shards} VALUES (%s) ON CONFLICT DO NOTHING", [shard])
                if not cursor.rowcount:
                    return False
            table = self._attributes(cursor, keys, attributes)
            names = [KEY, VECTOR, *(name for name in table.column_names if name != KEY)]
            listed = ", ".join(map(quoted, names))
            cursor.execute(f"CREATE TEMP TABLE staging (LIKE {quoted_table(self.table)}) ON COMMIT DROP")
            self._copy(cursor, listed, stored, table)
            if not replace:
                self._refuse_present(cursor)
            values = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names if name != KEY)
            rule = f" ON CONFLICT ({KEY}) DO UPDATE SET {values}" if replace else ""
            cursor.execute(f"INSERT INTO {quoted_table(self.table)} ({listed}) SELECT {listed} FROM staging{rule}")
        return True

    def _attributes(self, cursor: Any, keys: Sequence[str], attributes: Any) -> Any:
        """Return keys and attributes with the types of the table. The first rows decide on its columns."""
        cursor.execute(f"LOCK TABLE {quoted_table(self.table)} IN ROW EXCLUSIVE MODE")
        existing = self._columns(cursor)
        cursor.execute(f"SELECT NOT EXISTS (SELECT 1 FROM {quoted_table(self.table)})")
        if existing or not cursor.fetchone()[0]:
            schema = pyarrow.schema(
                [(name, column_type) for name, column_type in existing.items() if column_type is not None]
            )
            return attribute_table(keys, attributes, schema)
        table = attribute_table(keys, attributes, None)
        sql_types = {name: sql_type(name, table.schema.field(name).type) for name in table.column_names if name != KEY}
        for name, column_type in sql_types.items():
            cursor.execute(f"ALTER TABLE {quoted_table(self.table)} ADD COLUMN {quoted(name)} {column_type}")
        schema = pyarrow.schema([(name, COLUMNS[column_type]) for name, column_type in sql_types.items()])
        return attribute_table(keys, table.drop_columns([KEY]), schema)

    def _copy(self, cursor: Any, listed: str, rows: Any, table: Any) -> None:
        """Copy rows to the staging table in binary. A vector is two 16-bit integers, its dimension and 0, and its
        values, all big-endian."""
        head = np.array([self.space.dim, 0], dtype=">i2").tobytes()
        sql_types = [sql_type(name, table.schema.field(name).type) for name in table.column_names if name != KEY]
        with cursor.copy(f"COPY staging ({listed}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["text", TYPES[self.space.dtype], *sql_types])
            start = 0
            for batch in table.to_batches(max_chunksize=1000):
                columns = [batch.column(name).to_pylist() for name in table.column_names]
                for offset, (key, *values) in enumerate(zip(*columns, strict=True)):
                    copy.write_row((key, Packed(head + rows[start + offset].tobytes()), *values))
                start += batch.num_rows

    def _refuse_present(self, cursor: Any) -> None:
        cursor.execute(f"SELECT s.{KEY} FROM staging s JOIN {quoted_table(self.table)} t USING ({KEY}) LIMIT 4")
        existing = [row[0] for row in cursor.fetchall()]
        if existing:
            examples = ", ".join(map(repr, existing[:3]))
            raise FirthError(
                "duplicate_name",
                "The index already has some of these keys ({examples}{more}). Use update to replace them.",
                examples=examples,
                more=", …" * (len(existing) > 3),
            )

    # ---- search ----

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool = False,
        prompt: str | None = None,
        prompt_text: str | None = None,
    ) -> Any:
        """Return the `k` nearest rows to a vector or a text; for a matrix or a list of texts, one result per query.
        The settings are as in `Index.search`."""
        k = check_count("k", k)
        texts = [query] if isinstance(query, str) else query
        are_texts = isinstance(texts, (list, tuple)) and bool(texts) and all(isinstance(text, str) for text in texts)
        if are_texts:
            if self.model is None:
                raise FirthError(
                    "missing_model",
                    "A text query needs the model that computed the vectors: PostgresIndex.open(…, model=…).",
                )
            matrix = embedded_queries(self.model, texts, prompt, prompt_text)
        else:
            matrix = as_floats("A query", query)
        rows = np.atleast_2d(matrix)
        check_matrix(rows, ["the query"] * len(rows), self.space.dim)
        check_lengths(row_lengths(rows), self.space.metric, lambda row: f"the query (number {row + 1})")
        if (are_texts or self.space.metric == "cosine") and not rows.any(axis=1).all():
            raise FirthError(
                "zero_vector",
                "The query is a zero vector, which has no direction. Its words may all be out of vocabulary.",
            )
        with self._transaction() as cursor:
            columns = self._columns(cursor)
            names, condition, values = list(columns), "", list[Any]()
            if where is not None:
                parsed = parse(where, [KEY, *names])
                check(parsed, {KEY: COLUMNS["text"], **columns})
                condition, values = sql(parsed)
            cursor.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(EF_SEARCH, 2 * k))}")
            cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")  # continues until k rows pass the filter
            if exact:
                cursor.execute("SET LOCAL enable_indexscan = off")
            results = [self._nearest(cursor, row, k, names, condition, values) for row in rows]
        return results[0] if isinstance(query, str) or matrix.ndim == 1 else results

    def _nearest(
        self, cursor: Any, row: Matrix, k: int, names: Sequence[str], condition: str, values: Sequence[Any]
    ) -> Hits:
        parameter = f"%s::{TYPES[self.space.dtype]}"
        distance = f"{VECTOR} {OPERATORS[self.space.metric][0]} {parameter}"
        text = "[" + ",".join(f"{number:.9g}" for number in row.tolist()) + "]"
        columns = ", ".join(map(quoted, [KEY, *names]))
        cursor.execute(
            f"SELECT {distance} AS firth_distance, {columns} FROM {quoted_table(self.table)}"
            f"{' WHERE ' + condition if condition else ''} ORDER BY {distance} LIMIT %s",
            [text, *values, text, k],
        )
        hits = Hits()
        for raw_distance, key, *attributes in cursor.fetchall():
            score = {"cosine": 1 - raw_distance, "dot": -raw_distance, "euclidean": raw_distance}[self.space.metric]
            if not math.isnan(score):  # the cosine of a zero row
                hits.append(Hit(key, score, dict(zip(names, attributes, strict=True))))
        return hits

    # ---- the connection ----

    @contextlib.contextmanager
    def _transaction(self, uploading: bool = False) -> Iterator[Any]:
        """Yield a cursor in a transaction, which is committed when the block ends and rolled back if it raises."""
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
        import psycopg

        if isinstance(error, psycopg.errors.UniqueViolation):  # of another writer's rows
            return FirthError(
                "duplicate_name",
                "The index already has some of these keys ({examples}{more}). Use update to replace them.",
                examples=error.diag.message_detail or "",
                more="",
            )
        if not self._connection.closed:
            return FirthError("database", "PostgreSQL reported an error: {reason}.", reason=first_line(error))
        where = self._where()
        self.close()
        hint = "Try again when the server is available."
        if uploading:
            hint = "Either all rows of this call were stored or none. Call update with the same rows: it does not "
            hint += "store a row twice."
        return FirthError(
            "database",
            "The connection to {where} was lost ({reason}). {hint}",
            where=where,
            reason=first_line(error),
            hint=hint,
        )

    def _connect(self) -> Any:
        import psycopg

        quoted_table(self.table)
        try:
            connection = psycopg.connect(self.server, connect_timeout=10)
        except psycopg.ProgrammingError:  # its message would repeat the address, including the password
            raise FirthError(
                "database",
                "The connection string is invalid. Expected postgresql://user@host/database, or host=… dbname=….",
            ) from None
        except psycopg.Error as error:
            raise FirthError("database", "Cannot reach PostgreSQL: {reason}.", reason=first_line(error)) from None
        with connection.transaction():
            register(connection)
        return connection

    def _where(self) -> str:
        """Return the database and host for messages, without the password."""
        info = getattr(self._connection, "info", None)
        try:
            return f"PostgreSQL ({info.dbname} at {info.host})" if info else "PostgreSQL"
        except Exception:  # a broken connection may lack this information
            return "PostgreSQL"
