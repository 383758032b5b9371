"""`firth query associations`."""

from __future__ import annotations

import json

import firth


def test_associations(call, refused, place, tmp_path):
    (tmp_path / "text.txt").write_text("heaven hell\n" * 3 + "the world\nthe sea\nthe sea\nthe hell\n")
    model = tmp_path / "pmi"
    settings = ["--dim", 2, "--window", 1, "--min-count", 1]
    assert call("train", "pmi", tmp_path / "text.txt", "-o", model, *settings).exit_code == 0
    result = call("query", "associations", model, "the", "--json")
    expected = [firth.load(model, firth.PMI).associations("the")[row].__dict__ for row in range(3)]
    assert json.loads(result.stdout) == expected
    shown = call("query", "associations", model, "the", "--by", "count", "-k", 1).stdout
    assert shown.split() == ["context", "PMI", "NPMI", "count", "sea", "1.81", "0.644", "2"]
    refused("unknown_key", "query", "associations", model, "purgatory", key="purgatory")
    skipgram = place / "model"
    refused("unsupported_model", "query", "associations", skipgram, "king", path=skipgram, method="skipgram")
