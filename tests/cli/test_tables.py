"""The command line with tables: train, embed, info, neighbors."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from refusing import refuses

import firth
from firth.cli.main import cli
from firth.core.model import Embeds

ROWS = "zip,age,color\n007,3,red\n012,NA,\n019,5,blue\n"


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(ROWS)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_a_table_becomes_codes(call, tmp_path):
    trained = call("train", "onehot", "t.csv", "-o", "enc", "--categories", "zip", "--columns", "zip,age", "--json")
    told = json.loads(trained.stdout)
    assert (told["rows"], told["columns"], told["features"]) == (3, 2, 4)
    call("embed", "enc", "t.csv", "-o", "codes.npy")
    expected = [[1, 0, 0, 3], [0, 1, 0, np.nan], [0, 0, 1, 5]]
    np.testing.assert_array_equal(np.load("codes.npy"), np.array(expected, np.float32))
    call("embed", "enc", "t.csv", "-o", "codes.parquet", "--key", "zip")
    table = pyarrow.parquet.read_table("codes.parquet").to_pydict()
    assert table["key"] == ["007", "012", "019"] and table["vector"][2] == [0, 0, 1, 5]
    lines = [json.loads(line) for line in call("embed", "enc", "t.csv").stdout.splitlines()]
    assert lines[1] == {"key": "2", "unknown": 0, "vector": [0, 1, 0, None]}
    assert "012" in call("query", "neighbors", "enc", "007").stdout
    assert "tables.zip.rows" in call("info", "enc").stdout
    call("verify", "enc")
    assert (
        "already finished"
        in call("train", "onehot", "t.csv", "-o", "enc", "--categories", "zip", "--columns", "zip,age").stdout
    )


def test_what_embed_writes_is_read_again(call):
    """From a table with gaps to PCA: the codes are vectors with keys."""
    call("train", "standardize", "t.csv", "-o", "whole", "--columns", "zip,age", "--missing", "mean")
    call("embed", "whole", "t.csv", "-o", "whole.npy", "--key", "color", code=1)  # a key is missing: no files
    with refuses("not_found"):
        firth.read_vectors("whole.npy")
    call("embed", "whole", "t.csv", "-o", "whole.npy", "--key", "zip")
    vectors = firth.read_vectors("whole.npy")
    assert list(vectors.keys) == ["7", "12", "19"] and vectors.matrix.shape == (3, 2)
    call("train", "pca", "whole.npy", "-o", "pca")


def test_unseen_categories_are_counted(call, tmp_path):
    call("train", "binary", "t.csv", "-o", "enc", "--columns", "color", "--unseen", "missing")
    (tmp_path / "u.csv").write_text("color\nred\ngreen\n")
    result = call("embed", "enc", "u.csv", "-o", "u.npy", "--json")
    note = json.loads(result.stderr)
    assert note["code"] == "unknown_category" and note["text"].startswith("1 ")
    assert json.loads(result.stdout) == {"rows": 2, "features": ["color_0", "color_1"], "unknown": 1, "output": "u.npy"}


def test_rows_are_numbered_over_all_batches(call, refused, tmp_path):
    call("train", "onehot", "t.csv", "-o", "enc", "--columns", "color")
    (tmp_path / "long.csv").write_text("color\n" + "red\n" * 5000 + "green\n")
    message = refused("unknown_category", "embed", "enc", "long.csv", "-o", "x.npy")
    assert "5,001" in message and "'green'" in message


@pytest.mark.parametrize("name", ["ordinal", "standardize", "minmax", "pca"])
def test_every_table_method_trains(call, name):
    call("train", name, "t.csv", "-o", "m", "--columns", "zip")
    call("embed", "m", "t.csv", "-o", "m.npy")
    model = firth.load("m")
    assert isinstance(model, Embeds)
    np.testing.assert_allclose(np.load("m.npy"), model.embed({"zip": [7, 12, 19]}), rtol=1e-6)


def test_errors(call, refused, tmp_path):
    (tmp_path / "empty.csv").write_text("zip\n")
    call("train", "ordinal", "t.csv", "-o", "m", "--columns", "zip")
    refused("wrong_input", "train", "onehot", "t.csv", "t.csv", "-o", "x", detail="table", got=2)
    refused("unknown_column", "train", "onehot", "t.csv", "-o", "x", "--columns", "b", name="b")
    refused("too_few", "train", "onehot", "empty.csv", "-o", "x")
    refused("non_finite", "train", "pca", "t.csv", "-o", "x")
    refused("unsupported_model", "plot", "loss", "m", "-o", "x.png", path="m", method="ordinal")
    refused("empty_data", "embed", "m", "empty.csv", "-o", "x.npy", path="empty.csv")
    refused("malformed_data", "embed", "m", "t.csv", "--key", "color", "-o", "x.npy", key="color", index=2)
    assert not (tmp_path / "x").exists() and not (tmp_path / "x.npy").exists()
