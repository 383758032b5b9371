"""The command line with autoencoders: generate rows, inspect reconstruction, evaluate compression, plot."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import firth
from firth.cli.main import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, models trained on it, and images of 2 × 2 pixels."""
    directory = tmp_path_factory.mktemp("compress")
    random = np.random.default_rng(1)
    kind = random.integers(2, size=120)
    a = random.normal(size=120) + 3 * kind
    lines = [f"{x:.4f},{-x:.4f},{'old' if k else 'new'},r{i}" for i, (x, k) in enumerate(zip(a, kind, strict=True))]
    (directory / "t.csv").write_text("a,b,kind,name\n" + "\n".join(lines) + "\n")
    pixels = random.integers(0, 16, size=(60, 4))
    pixels[:, 3] = 15 - pixels[:, 0]
    (directory / "p.csv").write_text("w,x,y,z\n" + "\n".join(",".join(map(str, row)) for row in pixels) + "\n")
    for method, data, columns in (("vae", "t.csv", "a,b,kind"), ("autoencoder", "t.csv", "a,b,kind")):
        command = ["train", method, str(directory / data), "-o", str(directory / method), "--columns", columns]
        result = CliRunner().invoke(cli, [*command, "--dim", "2", "--epochs", "15"])
        assert result.exit_code == 0, result.output
    command = ["train", "vae", str(directory / "p.csv"), "-o", str(directory / "pixels"), "--dim", "2", "--epochs", "5"]
    assert CliRunner().invoke(cli, command).exit_code == 0
    return directory


@pytest.fixture
def call(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_generate_rows(call):
    rows = json.loads(call("generate", "rows", "vae", "-n", 4, "--json").stdout)
    assert len(rows) == 4 and list(rows[0]) == ["a", "b", "kind"] and {row["kind"] for row in rows} <= {"old", "new"}
    assert json.loads(call("generate", "rows", "vae", "-n", 4, "--json", "--seed", 2).stdout) != rows
    call("generate", "rows", "vae", "-n", 5, "-o", "s.csv")
    call("generate", "rows", "vae", "-n", 5, "-o", "s.parquet", "--expected", "--prior")
    assert pyarrow.csv.read_csv("s.csv").num_rows == pyarrow.parquet.read_table("s.parquet").num_rows == 5
    assert (
        len(call("generate", "rows", "autoencoder", "-n", 3, "--between", 1, 2, "--of", "t.csv").stdout.splitlines())
        == 4
    )
    call("generate", "rows", "vae", "-n", 2, "-o", "s.jsonl")
    assert len(firth.Table("s.jsonl")) == 2


def test_inspect_reconstruction_lists_outliers(call, folder):
    (folder / "odd.csv").write_text((folder / "t.csv").read_text() + "9,9,old,strange\n")
    result = json.loads(
        call("inspect", "reconstruction", "autoencoder", "odd.csv", "-k", 2, "-o", "r.csv", "--json").stdout
    )
    assert result["rows"] == 121 and result["odd"][0]["row"] == 121 and list(result["columns"]) == ["a", "b", "kind"]
    assert firth.Table("r.csv").names == ["a", "b", "kind"]
    text = call("inspect", "reconstruction", "autoencoder", "odd.csv", "-k", 2, "--errors", "e.tsv").stdout
    assert "largest in" in text and len(firth.Table("e.tsv")) == 121


def test_codes_have_keys(call):
    call("embed", "vae", "t.csv", "-o", "c.parquet", "--key", "name")
    table = pyarrow.parquet.read_table("c.parquet").to_pydict()
    assert table["key"][:2] == ["r0", "r1"] and len(table["vector"][0]) == 2


def test_evaluate_compression(call, folder):
    result = json.loads(
        call(
            "evaluate",
            "compression",
            "t.csv",
            "--dim",
            1,
            "--label",
            "kind",
            "--columns",
            "a,b",
            "--epochs",
            20,
            "--json",
        ).stdout
    )
    assert list(result["methods"]) == [
        "original rows", "PCA", "LSA", "Autoencoder", "VAE", "independent columns"
    ]  # fmt: skip
    scores = result["methods"]
    assert scores["PCA"]["lost"] < 0.01 < scores["LSA"]["lost"] + 0.02 and scores["PCA"]["probe"] > 0.8
    assert scores["VAE"]["two_sample_auc"] < scores["independent columns"]["two_sample_auc"]
    (folder / "gap.csv").write_text((folder / "t.csv").read_text() + "1,2,,x\n")
    gap = call(
        "evaluate", "compression", "gap.csv", "--dim", 1, "--label", "kind", "--columns", "a,b", "--epochs", 1, "--json"
    )
    notes = [json.loads(line) for line in gap.stderr.splitlines()]
    (missing,) = [note["text"] for note in notes if note.get("code") == "missing_label"]
    assert missing.startswith("1 of 121 rows") and "row 121" in missing
    assert json.loads(gap.stdout)["rows"] == result["rows"]
    text = call("evaluate", "compression", "t.csv", "--column", "kind", "--dim", 1, "--epochs", 2).stdout
    assert text.startswith("24 held-out rows\n")


def test_vectors_are_compressed(call, folder):
    random = np.random.default_rng(2)
    vectors = firth.Vectors([f"w{i}" for i in range(40)], random.normal(size=(40, 6)))
    firth.write_vectors(vectors, folder / "words.bin")
    call("train", "autoencoder", "words.bin", "-o", "squeezed", "--dim", 3, "--epochs", 3)
    assert "w3" in call("query", "neighbors", "squeezed", "w1", "-k", 39).stdout
    again = call("train", "autoencoder", "words.bin", "-o", "squeezed", "--dim", 3, "--epochs", 3, "--json")
    assert json.loads(again.stdout)["status"] == "already finished"
    lines = [json.loads(line) for line in call("embed", "squeezed", "words.bin").stdout.splitlines()]
    assert lines[1]["key"] == "w1" and len(lines[1]["vector"]) == 3
    call("train", "pca", "squeezed", "-o", "further", "--dim", 2)
    assert firth.load(folder / "further", firth.PCA).vectors.dim == 2


def test_pictures(call, folder):
    for command in (
        ("codes", "vae", "t.csv", "--label", "kind"),
        ("codes", "autoencoder", "t.csv", "--label", "a"),
        ("images", "pixels", "p.csv", "--shape", "2x2", "-k", 5),
        ("samples", "vae", "t.csv", "-n", 50),
        ("loss", "vae"),
        ("loss", "autoencoder"),
    ):
        call("plot", *command, "-o", "picture.png")
        assert (folder / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_errors(refused, folder):
    (folder / "empty.csv").write_text("a,b,kind\n")
    (folder / "s2.csv").write_text("a\n1\n2\n")
    rows, reconstruction = ("generate", "rows"), ("inspect", "reconstruction")
    refused("unsupported_model", *rows, "autoencoder", path="autoencoder", method="autoencoder")
    refused("invalid_value", *rows, "vae", "--between", 1, 200, "--of", "t.csv", got=199)
    refused("unknown_format", *rows, "vae", "-o", "s.txt", got="s.txt")
    refused("usage", *rows, "vae", "--between", 1, 2)
    refused("empty_data", *reconstruction, "vae", "empty.csv", path="empty.csv")
    refused("unknown_column", *reconstruction, "vae", "p.csv")
    refused("too_few", "evaluate", "compression", "s2.csv", minimum=50, got=2)
    refused("shape_mismatch", "plot", "images", "pixels", "p.csv", "--shape", "9x9", "-o", "x.png")
