"""`firth train distil`: with text and without; what it makes is embedded and searched."""

from __future__ import annotations

import json

import pytest
from tiny import texts, tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("train", "distil")
    tiny_bert().save(found / "teacher")
    (found / "text.txt").write_text("\n".join(texts()[:300]))
    return found


def test_from_tokens_alone_and_again(call, folder):
    asked = ("train", "distil", folder / "teacher", "-o", folder / "alone", "--dim", 8)
    done = call(*asked)
    assert done.exit_code == 0 and f"firth embed {folder / 'alone'} FILE" in done.stdout
    again = call(*asked, "--json")
    assert json.loads(again.stdout)["status"] == "already finished"


def test_fitted_to_text(call, folder):
    small = folder / "small"
    done = call("train", "distil", folder / "teacher", "-o", small, "--dim", 8, "--text", folder / "text.txt", "--json")
    told = json.loads(done.stdout)
    assert told["method"] == "distil" and told["texts"] > 100 and told["loss"] < 1
    assert len(call("embed", small, folder / "text.txt").stdout.splitlines()) == 300
    assert len(call("query", "neighbors", small, "king", "-k", 3).stdout.splitlines()) >= 3
    assert "distil" in call("info", small).stdout


def test_another_teacher_is_refused_in_a_line(call, folder):
    call("train", "counts", folder / "text.txt", "-o", folder / "counts")
    wrong = call("train", "distil", folder / "counts", "-o", folder / "x")
    assert wrong.exit_code == 1 and "begins with a BERT" in wrong.stderr and len(wrong.stderr.splitlines()) == 1
    assert not (folder / "x").exists()
