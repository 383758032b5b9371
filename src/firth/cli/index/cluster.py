"""`firth index build --cluster`: workers embed the texts and write segments, and one commit adds all of them.

With --postgres, each worker adds the rows of a shard in a transaction that also records the shard.
"""

from __future__ import annotations

import json
import secrets
import warnings
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from firth.cli.common import choose_report
from firth.cli.index.build import BATCH, Batch, attribute_columns
from firth.cli.shards import model_files, model_fingerprint
from firth.core.errors import FirthWarning
from firth.core.remote import as_path
from firth.core.storage import write_json
from firth.core.text_embedder import loaded_model
from firth.transformers.pooling import PoolsTokens
from firth.work.executors import Cluster, executor
from firth.work.job import Job, Shard, run_job
from firth.work.worker import RECORDS, tell

if TYPE_CHECKING:
    from firth.data.corpus import Corpus
    from firth.index import Index, PostgresIndex

SEGMENT_ROWS = 32_768


def fill_on(
    cluster: Cluster, index: Index, path: str, texts: Corpus, settings: Mapping[str, Any], types: Mapping[str, Any]
) -> dict[str, int]:
    """Add all documents after those that the index already has, and return the counts."""
    from firth.data.corpus_parts import find_parts

    assert index.folder is not None
    folder = index.folder.absolute()
    report = choose_report()
    with index.store.writing() as state, executor(cluster):
        parts = find_parts(texts, folder, cluster, report)
        common = shard_settings(index, path, texts, settings, types, cluster)
        common |= {"data": parts.fingerprint, "reading": parts.settings}
        first = state.manifest["commit"] + 1  # a segment has the number of a commit
        shards = [
            Shard(f"{number:05d}", {"number": first + number, "pieces": pieces}, sum(piece.rows for piece in pieces))
            for number, pieces in enumerate(parts.parts(SEGMENT_ROWS, skip=len(index)))
        ]
        inputs = [*model_files(as_path(common["model"])), *(file.path.absolute() for file in parts.files)]
        segments = folder / RECORDS / "segments"
        job = Job("indexing", "texts", write_shard, common, shards, segments, inputs)
        total = Counter[str]()
        for counts in run_job(job, cluster, report).values():
            total.update(counts)
        files = [segments / record_name(first + number) for number in range(len(shards))]
        if files:
            index.store.adopt(segments, [json.loads(file.read_bytes()) for file in files])
    texts.replaced = total["not_utf8"]
    return {"rows": len(index), "unknown": total["unknown"], "zero_rows": total["zero_rows"]}


def shard_settings(
    index: Index | PostgresIndex,
    path: str,
    texts: Corpus,
    settings: Mapping[str, Any],
    types: Mapping[str, Any],
    cluster: Cluster,
) -> dict[str, Any]:
    """Return what all shards have in common."""
    on_gpus = bool(cluster.gpus_per_worker) and isinstance(index.model, PoolsTokens)
    return {
        "model": str(as_path(path).absolute()),
        "fingerprint": model_fingerprint(path),
        "settings": {**settings, "device": "cuda"} if on_gpus else dict(settings),
        "space": index.space.to_json(),
        "types": {name: type_text(types[name]) for name in texts.fields},
    }


def record_name(number: int) -> str:
    """Return the name of the file with the record of a segment."""
    return f"segment-{number}.json"


class Embedded(NamedTuple):
    """The documents of a shard, and their vectors."""

    keys: list[str]
    matrix: Any
    attributes: dict[str, Any]
    counts: dict[str, int]


def embed_shard(common: Mapping[str, Any], parameters: Mapping[str, Any]) -> Embedded:
    """Embed the documents of a shard."""
    import numpy as np

    from firth.data.corpus_parts import PieceReader
    from firth.index.rows import check_keys, check_matrix

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirthWarning)  # the driver has reported them
        model = loaded_model(common["model"], common["fingerprint"])
    reader = PieceReader(common["reading"], parameters["pieces"])
    rows = sum(piece.rows for piece in reader.pieces)
    walk, batches, matrices, unknown = reader.walk(), list[Batch](), list[Any](), 0
    while some := list(islice(walk, BATCH)):
        documents = [document for document, _ in some]
        texts = [document.text for document in documents]
        batches.append(Batch([document.key for document in documents], texts, [values for _, values in some]))
        embedded = model.embed_with_counts(texts, **common["settings"])
        matrices.append(embedded.matrix)
        unknown += int(embedded.unknown.sum())
        tell(sum(map(len, matrices)) / rows)
    keys = check_keys([key for batch in batches for key in batch.keys])
    matrix = check_matrix(np.concatenate(matrices), keys, common["space"]["dim"])
    types = {name: arrow_type(kind) for name, kind in common["types"].items()}
    attributes = attribute_columns(batches, common["reading"]["fields"], types)
    zero = int((~matrix.any(axis=1)).sum())
    counts = {"rows": rows, "unknown": unknown, "zero_rows": zero, "not_utf8": reader.replaced}
    return Embedded(keys, matrix, attributes, counts)


def write_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Embed the documents of a shard and write them as a segment: the function of the job."""
    from firth.index.rows import attribute_table
    from firth.index.segment import Space, make_segment
    from firth.index.segment_files import write_segment

    shard, space = embed_shard(common, parameters), Space.from_json(common["space"])
    table = attribute_table(shard.keys, shard.attributes, None)
    segment = write_segment(folder, parameters["number"], make_segment(space, shard.matrix, table), space)
    write_json(folder / record_name(parameters["number"]), segment.record)
    return shard.counts


def fill_table_on(
    cluster: Cluster,
    index: PostgresIndex,
    path: str,
    texts: Corpus,
    settings: Mapping[str, Any],
    types: Mapping[str, Any],
) -> dict[str, int]:
    """Add all documents after those that the table had when the first writers began, and return the counts."""
    import pyarrow

    from firth.data import cache
    from firth.data.corpus_parts import find_parts

    if not index.has_shards:
        # The name of the run: what is recorded as finished was added to this table, and not to one before it.
        index.begin_shards({"text": pyarrow.large_string(), **types}, skipped=len(index), writers=secrets.token_hex(8))
    report = choose_report()
    name = cache.entry_name("postgres", index.table, index.metadata)
    with cache.job_folder(name) as job_folder, executor(cluster):
        folder = job_folder.absolute()
        parts = find_parts(texts, folder, cluster, report)
        common = shard_settings(index, path, texts, settings, types, cluster)
        common |= {"data": parts.fingerprint, "reading": parts.settings, "server": index.server, "table": index.table}
        pieces = parts.parts(SEGMENT_ROWS, skip=index.metadata["skipped"])
        shards = [
            Shard(f"{number:05d}", {"shard": f"{number:05d}", "pieces": each}, sum(piece.rows for piece in each))
            for number, each in enumerate(pieces)
        ]
        inputs = [*model_files(as_path(common["model"])), *(file.path.absolute() for file in parts.files)]
        job = Job("indexing", "texts", write_rows, common, shards, folder / "rows", inputs)
        total = Counter[str]()
        for counts in run_job(job, cluster, report).values():
            total.update(counts)
    texts.replaced = total["not_utf8"]
    return {"rows": len(index), "unknown": total["unknown"], "zero_rows": total["zero_rows"]}


def write_rows(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Embed the documents of a shard and add them to the table, unless that was done: the function of the job."""
    from firth.index.postgres import PostgresIndex

    shard = embed_shard(common, parameters)
    with warnings.catch_warnings(), PostgresIndex.open(common["server"], common["table"]) as index:
        warnings.simplefilter("ignore", FirthWarning)  # zero rows are reported once, at the end
        index.add_shard(parameters["shard"], shard.keys, shard.matrix, shard.attributes)
    return shard.counts


def type_text(kind: Any) -> str:
    """Return an Arrow type as text: a schema in hexadecimal digits."""
    import pyarrow

    return str(pyarrow.schema([("", kind)]).serialize().to_pybytes().hex())


def arrow_type(text: str) -> Any:
    """Return the Arrow type that `type_text` wrote."""
    import pyarrow

    return pyarrow.ipc.read_schema(pyarrow.py_buffer(bytes.fromhex(text))).field(0).type
