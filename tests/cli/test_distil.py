"""`firth train distil`, with text and without."""

from __future__ import annotations

import json

import pytest
from tiny import texts, tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("distil")
    tiny_bert().save(directory / "teacher")
    (directory / "text.txt").write_text("\n".join(texts()[:300]))
    return directory


def test_without_text(call, folder):
    command = ("train", "distil", folder / "teacher", "-o", folder / "alone", "--dim", 8)
    done = call(*command)
    assert done.exit_code == 0 and f"firth embed {folder / 'alone'} FILE" in done.stdout
    again = call(*command, "--json")
    assert json.loads(again.stdout)["status"] == "already finished"


def test_fitted_to_text(call, folder):
    small = folder / "small"
    done = call("train", "distil", folder / "teacher", folder / "text.txt", "-o", small, "--dim", 8, "--json")
    metrics = json.loads(done.stdout)
    assert metrics["method"] == "distil" and metrics["texts"] > 100 and metrics["loss"] < 1
    assert len(call("embed", small, folder / "text.txt").stdout.splitlines()) == 300
    assert len(call("query", "neighbors", small, "king", "-k", 3).stdout.splitlines()) >= 3
    assert "distil" in call("info", small).stdout


def test_the_teacher_must_be_a_bert(call, refused, folder):
    call("train", "counts", folder / "text.txt", "-o", folder / "counts")
    refused("incompatible_start", "train", "distil", folder / "counts", "-o", folder / "x")
    assert not (folder / "x").exists()
