"""The document–term matrix on a cluster: workers count the words of their documents, and weight the counts when the
document frequencies of all shards are known. Rows do not depend on each other, so the shards do not change them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data import cache
from firth.data.shard_jobs import (
    array_hash,
    ranges,
    read_array,
    run_shards,
    same_workers,
    token_files,
    token_job,
    write_array,
)
from firth.data.tokens import Tokens
from firth.documents.document_matrix import CorpusStatistics, Weights, allocate, apply_weights, inverse_frequencies
from firth.kernels.sparse import CSRMatrix, count_words
from firth.work.job import Job, Shard

SHARDS = 256  # of the tokens, as far as the sizes allow
LEAST_TOKENS, MOST_TOKENS = 1 << 24, 1 << 27  # of a shard


def count_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Write the words of each document of a shard, their counts, and the numbers of documents with each word."""
    starts = read_array(Path(common["starts"]), np.int64)[parameters["first"] : parameters["last"] + 1]
    ids = read_array(Path(common["ids"]), np.int32)[starts[0] : starts[-1]]
    rows = count_words(ids, starts - starts[0], common["words"], Run().cores)
    name = parameters["name"]
    frequencies = np.bincount(rows.columns, minlength=common["words"]).astype(np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "columns": rows.columns,
        "counts": rows.values,
        "starts": rows.starts,
        "frequencies": frequencies,
    }
    for kind, array in arrays.items():
        (folder / f"{name}.{kind}").write_bytes(array.tobytes())
    return {"entries": len(rows.columns)}


def weight_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Write the weights of a shard's counts."""
    counted = Path(common["counted"]) / parameters["name"]
    rows = read_rows(counted, "counts")
    lengths = read_array(Path(common["lengths"]), np.float64)[parameters["first"] : parameters["last"]]
    idf = read_array(Path(common["idf"]), np.float64)
    apply_weights(rows, lengths, Weights(*common["weights"]), idf, common["average"])
    (folder / f"{parameters['name']}.weights").write_bytes(rows.values.tobytes())


def read_rows(path: Path, values: str) -> CSRMatrix:
    """Read the rows of a shard; the values are a copy in memory."""
    starts, columns = (read_array(path.with_suffix(f".{name}"), kind) for name, kind in ROW_ARRAYS)
    return CSRMatrix(starts, columns, np.fromfile(path.with_suffix(f".{values}"), dtype=np.float32))


ROW_ARRAYS = (("starts", np.int64), ("columns", np.int32))


def weighted_rows(tokens: Tokens, weights: Weights, run: Run) -> tuple[CSRMatrix, CorpusStatistics]:
    """Count and weight the words of all documents on a cluster."""
    words, lengths = len(tokens.vocabulary), np.diff(tokens.starts).astype(np.float64)
    size = min(max(len(tokens.ids) // SHARDS, LEAST_TOKENS), MOST_TOKENS)
    shards = []
    for number, (first, last) in enumerate(ranges(tokens.starts, size)):
        parameters = {"name": f"{number:06}", "first": first, "last": last}
        shards.append(Shard(f"{number:06}", parameters, last - first))
    with cache.job_folder(token_job(tokens, "rows", weights)) as folder, same_workers(run):
        ids, starts = token_files(tokens, folder)
        common: dict[str, Any] = {"ids": str(ids), "starts": str(starts), "words": words}
        counts = run_shards(Job("counting words", "documents", count_shard, common, shards, folder, [ids, starts]), run)
        frequencies = np.zeros(words)
        for shard in shards:
            frequencies += read_array(folder / f"{shard.name}.frequencies", np.int64)
        idf = inverse_frequencies(frequencies, len(tokens), weights.idf)
        statistics = CorpusStatistics(idf, float(lengths.mean()))
        common = {
            "counted": str(folder),
            "lengths": str(write_array(folder / "lengths", lengths)),
            "idf": str(write_array(folder / "idf", idf)),
            "hash": array_hash(idf),
            "average": statistics.average_length,
            "weights": weights,
        }
        weighting = [shard._replace(name=f"weights-{shard.name}") for shard in shards]
        run_shards(Job("weighting", "documents", weight_shard, common, weighting, folder), run)
        return merged_rows(
            [folder / shard.name for shard in shards], sum(each["entries"] for each in counts)
        ), statistics


def merged_rows(paths: list[Path], entries: int) -> CSRMatrix:
    """Return the rows of all shards."""
    starts: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
    columns, values = allocate(entries, np.int32), allocate(entries, np.float32)
    filled = 0
    for path in paths:
        rows = read_rows(path, "weights")
        starts.append(rows.starts[1:] + filled)
        columns[filled : filled + len(rows.columns)] = rows.columns
        values[filled : filled + len(rows.columns)] = rows.values
        filled += len(rows.columns)
    return CSRMatrix(np.concatenate(starts), columns, values)
