"""Word pairs counted on a cluster: workers write sorted runs of their shards, which are merged as those of
`cooccurrence` are. The sums are exact, so shards do not change them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data.shard_jobs import array_hash, read_array, run_shards, token_files, write_array
from firth.data.tokens import Tokens
from firth.kernels import cooccur as kernel
from firth.work.job import Job, Shard

SHARDS = 256  # of the tokens, as far as the sizes allow
LEAST_TOKENS, MOST_TOKENS = 1 << 24, 1 << 27  # of a shard
LEAST_BUFFER = 64  # records read from a run at a time
GOLDEN, WORD = 0x9E3779B97F4A7C15, 1 << 64  # as in cpp/hash.h


def count_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Write the pairs of a range of tokens as a sorted run; a job's function."""
    ids, starts = read_array(Path(common["ids"]), np.int32), read_array(Path(common["starts"]), np.int64)
    bounds, keep = np.fromfile(common["bounds"], np.int32), np.fromfile(common["keep"], np.uint32)
    first, last = parameters["first"], parameters["last"]
    documents = slice(
        int(np.searchsorted(starts, first, side="right")) - 1, int(np.searchsorted(starts, last, side="left")) + 1
    )
    begin, end = int(starts[documents.start]), int(starts[documents.stop - 1])
    weights = kernel.weights(common["weighting"], common["window"], len(ids))
    sums = kernel.PairSums(
        np.ascontiguousarray(ids[begin:end]),
        np.ascontiguousarray(starts[documents] - begin),
        int(bounds[-1]),
        keep,
        (common["seed"] + begin * GOLDEN) % WORD,  # so that the hash of a token is that of its position in the text
        weights.integers,
        float(weights.scale),
        common["side"] != "right",
        common["side"] != "left",
        bounds,
        common["most_pairs"],
        Run().cores,
    )
    offsets = np.zeros(len(bounds), dtype=np.int64)
    with (folder / f"{parameters['name']}.pairs").open("w+b") as file:
        sums.run(first - begin, last - begin, file.fileno(), 0, offsets)
    (folder / f"{parameters['name']}.offsets").write_bytes(offsets.tobytes())


def count_runs(
    tokens: Tokens, settings: Mapping[str, Any], keep: NDArray[np.uint32], plan: Any, folder: Path, run: Run
) -> tuple[list[Path], NDArray[np.int64]]:
    """Count the pairs of all shards; return the files of their runs, and where the blocks of words begin in them."""
    ids, starts = token_files(tokens, folder)
    common = {
        **settings,
        "ids": str(ids),
        "starts": str(starts),
        "bounds": str(write_array(folder / "bounds", plan.bounds)),
        "keep": str(write_array(folder / "keep", keep)),
        "hashes": [array_hash(plan.bounds), array_hash(keep)],
        "most_pairs": plan.most_pairs,
    }
    total = len(tokens.ids)
    size = min(max(total // SHARDS, LEAST_TOKENS), MOST_TOKENS)
    shards = []
    for number, first in enumerate(range(0, total, size)):
        last, name = min(first + size, total), f"{number:06}"
        shards.append(Shard(name, {"name": name, "first": first, "last": last}, last - first))
    run_shards(Job("counting pairs", "words", count_shard, common, shards, folder, [ids, starts]), run)
    offsets = np.stack([np.fromfile(folder / f"{shard.name}.offsets", dtype=np.int64) for shard in shards])
    return [folder / f"{shard.name}.pairs" for shard in shards], offsets


def merge_runs(
    sums: kernel.PairSums, files: list[Path], offsets: NDArray[np.int64], plan: Any, results: tuple[int, int]
) -> NDArray[np.int64]:
    """Merge the runs of all shards into the open files `results`; return the number of contexts of each word."""
    lengths = np.zeros(plan.bounds[-1], dtype=np.int64)
    with contextlib.ExitStack() as stack:
        handles = np.array([stack.enter_context(path.open("rb")).fileno() for path in files], dtype=np.int32)
        buffer = max(LEAST_BUFFER, (plan.spare - offsets.nbytes) // (plan.threads * len(files) * 16))
        sums.merge(handles, offsets, buffer, *results, lengths)
    return lengths
