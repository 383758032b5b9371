"""Encodes a corpus with a subword tokenizer on a cluster, with the result of `subword_tokens` to the byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data import subword_tokens
from firth.data.corpus import Corpus
from firth.data.corpus_shards import corpus_settings, shard_corpus, shards_of
from firth.data.shard_encoding import ONE_THREAD, paths_of
from firth.data.shard_jobs import read_array, run_shards
from firth.data.streams import IDS, STARTS
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.work.job import Job
from firth.work.worker import Counts


def encode_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> Counts:
    """Write the ids and document starts of a shard, and the count of each id; a job's function."""
    os.environ["RAYON_NUM_THREADS"] = str(Run().cores)  # of the package tokenizers
    tokenizer = SubwordTokenizer.from_json(Path(common["tokenizer"]).read_bytes())
    corpus, name = shard_corpus(common["corpus"], parameters["parts"]), parameters["name"]
    counts = subword_tokens.write_ids(tokenizer, corpus, folder, common["end"], ONE_THREAD)
    (folder / IDS).rename(folder / f"{name}.ids")
    (folder / STARTS).rename(folder / f"{name}.starts")
    (folder / f"{name}.counts").write_bytes(counts.tobytes())
    return {"replaced": corpus.replaced}


def write_ids(tokenizer: SubwordTokenizer, texts: Corpus, folder: Path, end_id: int, run: Run) -> NDArray[np.int64]:
    """Write the ids and document starts of a corpus on a cluster; return the count of each id."""
    scratch = folder / "scratch"
    with saying_where(folder):
        scratch.mkdir(exist_ok=True)
        (scratch / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    common = {
        "corpus": corpus_settings(texts),
        "stamp": texts.stamp(),
        "tokenizer": str(scratch / "tokenizer.json"),
        "hash": tokenizer.fingerprint,
        "end": end_id,
    }
    shards = shards_of(texts)
    shard_counts = run_shards(Job("encoding", "B", encode_shard, common, shards, scratch, paths_of(texts)), run)
    texts.replaced = max(texts.replaced, sum(each["replaced"] for each in shard_counts))
    counts, written = np.zeros(tokenizer.size, dtype=np.int64), 0
    with saying_where(folder), (folder / IDS).open("wb") as ids, (folder / STARTS).open("wb") as starts:
        starts.write(np.zeros(1, dtype=np.int64).tobytes())
        for shard in shards:
            with (scratch / f"{shard.name}.ids").open("rb") as part:
                shutil.copyfileobj(part, ids, 1 << 22)
            ends = read_array(scratch / f"{shard.name}.starts", np.int64)[1:]
            starts.write((ends + written).tobytes())
            counts += read_array(scratch / f"{shard.name}.counts", np.int64)
            written = ids.tell() // 4
    shutil.rmtree(scratch)
    return counts
