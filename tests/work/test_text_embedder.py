"""`TextEmbedder` in the engines it is made for: the vectors of `embed`, in the form that each of them expects."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from refusing import refuses
from text_functions import split
from tiny import tiny_bert

import firth
from firth.core import text_embedder
from firth.data.world import World

TEXTS = [*World(seed=2).sentences(60), "", "unheard-of"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embedder") / "model"
    return firth.SkipGram(dim=8, epochs=1, min_count=1).fit(firth.Corpus(TEXTS)).save(folder)


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    return firth.load(folder, firth.SkipGram).embed(TEXTS)


def test_forms_of_batches(folder, expected):
    embed = pickle.loads(pickle.dumps(firth.TextEmbedder(folder)))
    assert np.array_equal(embed(TEXTS), expected) and embed(TEXTS).dtype == np.float32
    assert np.array_equal(embed(np.array(TEXTS)), expected)
    assert np.array_equal(embed({"text": np.array(TEXTS), "id": np.arange(62)})["vector"], expected)
    table = embed(pyarrow.table({"text": TEXTS, "id": range(62)}))
    assert table.column_names == ["text", "id", "vector"] and table["vector"].type == pyarrow.list_(
        pyarrow.float32(), 8
    )
    assert np.array_equal(np.stack(table["vector"].to_pylist()), expected)
    assert embed(pyarrow.array(TEXTS)).equals(table["vector"].combine_chunks())
    series = embed(pandas.Series(TEXTS, index=range(7, 69)))
    assert isinstance(series, pandas.Series) and series.index[0] == 7
    assert np.array_equal(np.stack(list(series)), expected)
    rows = firth.TextEmbedder(folder, column="body", output="x")(pandas.DataFrame({"body": TEXTS}))
    assert list(rows.columns) == ["body", "x"] and np.array_equal(np.stack(list(rows["x"])), expected)


@pytest.mark.parametrize("batch", [[], pandas.Series([], dtype=str), pyarrow.array([], pyarrow.string())])
def test_an_empty_batch(folder, batch):
    assert len(firth.TextEmbedder(folder)(batch)) == 0


def test_missing_texts_are_empty(folder, expected):
    for batch in ([None, TEXTS[0]], pandas.Series([np.nan, TEXTS[0]]), pandas.Series([pandas.NA, TEXTS[0]])):
        assert np.array_equal(np.stack(list(firth.TextEmbedder(folder)(batch))), [np.zeros(8), expected[0]])


def test_settings_are_those_of_embed(folder, expected):
    rows = firth.TextEmbedder(folder, normalize=True, smoothing=0.01)(TEXTS)
    assert np.array_equal(rows, firth.load(folder, firth.SkipGram).embed(TEXTS, normalize=True, smoothing=0.01))
    with refuses("unknown_option"):
        firth.TextEmbedder(folder, smothing=0.01)(TEXTS)


def test_the_model_is_loaded_at_the_first_batch_and_once(folder, monkeypatch):
    loads = list[Any]()

    def load(*some: Any, **more: Any) -> Any:
        loads.append(some)
        return firth.load(*some, **more)

    monkeypatch.setattr(text_embedder, "_models", type(text_embedder._models)())
    monkeypatch.setattr(text_embedder, "load", load)
    embedders = [pickle.loads(pickle.dumps(firth.TextEmbedder(folder))) for _ in range(3)]
    assert not loads
    for embed in embedders:
        embed(TEXTS[:2])
        embed(TEXTS[2:])
    assert len(loads) == 1


def test_a_replaced_model_is_loaded_again(tmp_path, folder):
    embed = firth.TextEmbedder(firth.load(folder).save(tmp_path / "model"))
    before = embed(TEXTS)
    firth.SkipGram(dim=5, epochs=1, min_count=1).fit(firth.Corpus(TEXTS)).save(tmp_path / "model", overwrite=True)
    assert before.shape == (62, 8) and embed(TEXTS).shape == (62, 5)


def test_a_tokenizer_function_must_be_importable(tmp_path):
    folder = firth.SkipGram(dim=8, epochs=1, min_count=1, tokenizer=split).fit(firth.Corpus(TEXTS)).save(tmp_path / "a")
    model = firth.load(folder, firth.SkipGram, tokenizer=split)
    assert np.array_equal(firth.TextEmbedder(folder, tokenizer=split)(TEXTS), model.embed(TEXTS))
    with refuses("invalid_tokenizer", name="test_a_tokenizer_function_must_be_importable.<locals>.<lambda>"):
        firth.TextEmbedder(folder, tokenizer=lambda text: text.split())
    with refuses("missing_tokenizer", name="split"):
        firth.TextEmbedder(folder)(TEXTS)


def test_what_cannot_be_embedded(tmp_path, folder):
    with refuses("not_found", path=tmp_path / "none"):
        firth.TextEmbedder(tmp_path / "none")
    with refuses("unknown_column", name="text", available="body"):
        firth.TextEmbedder(folder)({"body": np.array(TEXTS)})
    table = firth.OneHot().fit(firth.Table(pandas.DataFrame({"a": ["x", "y"]}))).save(tmp_path / "table")
    with refuses("unsupported_model", path=str(table), method="onehot"):
        firth.TextEmbedder(table)(TEXTS)


def test_ray_data(ray_cluster, folder, expected):
    """As a class, of which each actor makes one, on batches of each format."""
    import ray

    ray.init(address=ray_cluster.address, log_to_driver=False, ignore_reinit_error=True)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    try:
        items = [{"text": text, "number": number} for number, text in enumerate(TEXTS)]
        for form in ("numpy", "pyarrow"):
            rows = ray.data.from_items(items).map_batches(
                firth.TextEmbedder,
                fn_constructor_args=(str(folder),),
                batch_size=20,
                batch_format=form,
                concurrency=1,
            )
            taken = sorted(rows.take_all(), key=lambda row: row["number"])
            assert np.array_equal(np.stack([row["vector"] for row in taken]), expected)
    finally:
        ray.shutdown()


def test_dask_map_partitions(folder, expected):
    import dask.dataframe

    frame = dask.dataframe.from_pandas(pandas.DataFrame({"text": TEXTS}), npartitions=3)
    embed = firth.TextEmbedder(folder)
    series = frame["text"].map_partitions(embed, meta=("vector", object)).compute(scheduler="threads")
    assert np.array_equal(np.stack(list(series)), expected)
    meta = {"text": "string", "vector": object}
    rows = frame.map_partitions(embed, meta=meta).compute(scheduler="synchronous")
    assert np.array_equal(np.stack(list(rows["vector"])), expected)


def test_spark_pandas_udf(folder, expected, tmp_path):
    """In a process of its own; only where pyspark and Java are installed."""
    pytest.importorskip("pyspark")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, which is not installed.")
    script = Path(__file__).parents[2] / "benchmarks" / "spark_embedding.py"
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    command = [sys.executable, script, folder, tmp_path / "texts.txt", tmp_path / "vectors.npy"]
    subprocess.run([str(word) for word in command], check=True, timeout=300)
    assert np.array_equal(np.load(tmp_path / "vectors.npy"), expected)


def test_a_network(tmp_path):
    folder = tiny_bert().save(tmp_path / "bert")
    texts = ["the king", "a queen"]
    rows = firth.TextEmbedder(folder, device="cpu")(pandas.Series(texts))
    assert np.array_equal(np.stack(list(rows)), firth.load(folder, firth.BERT).embed(texts, device="cpu"))
