"""`firth query associations`: what goes with a word, from the command line."""

from __future__ import annotations

import json

import firth


def test_associations(call, place, tmp_path):
    (tmp_path / "text.txt").write_text("heaven hell\n" * 3 + "the world\nthe sea\nthe sea\nthe hell\n")
    model = tmp_path / "pmi"
    settings = ["--dim", 2, "--window", 1, "--min-count", 1]
    assert call("train", "pmi", tmp_path / "text.txt", "-o", model, *settings).exit_code == 0
    result = call("query", "associations", model, "the", "--json")
    found = [firth.load(model).associations("the")[place].__dict__ for place in range(3)]
    assert json.loads(result.stdout) == found
    shown = call("query", "associations", model, "the", "--by", "count", "-k", 1).stdout
    assert shown.split() == ["context", "PMI", "NPMI", "count", "sea", "1.81", "0.644", "2"]
    assert "No vector for 'purgatory'" in call("query", "associations", model, "purgatory").output
    result = call("query", "associations", place / "model", "king")
    assert result.exit_code == 1
    assert "holds no counts of pairs (skipgram)" in result.output
