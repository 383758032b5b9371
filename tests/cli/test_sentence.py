"""`firth finetune sentence-encoder`: texts alone, pairs with dev data; what it makes is embedded."""

from __future__ import annotations

import csv
import itertools
import json

import pytest
from tiny import texts, tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("sentence")
    tiny_bert().save(found / "base")
    some = list(dict.fromkeys(texts()))[:80]
    (found / "text.txt").write_text("\n".join(some))
    with (found / "pairs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["first", "second", "how"])
        rows.writerows(
            (first, second, len({*first.split()} & {*second.split()})) for first, second in itertools.pairwise(some)
        )
    return found


def test_texts_alone_with_dev_pairs(call, folder):
    dev = ("--dev", folder / "pairs.csv", "--dev-columns", "first,second,how")
    asked = (
        "finetune",
        "sentence_encoder",
        folder / "base",
        folder / "text.txt",
        "-o",
        folder / "better",
        "--threads",
        1,
    )
    done = call(*asked, *dev, "--unit", "sentence", "--json")
    told = json.loads(done.stdout)
    assert told["method"] == "sentence_encoder" and -1 <= told["spearman_before"] <= 1 and -1 <= told["spearman"] <= 1
    assert len(call("embed", folder / "better", folder / "text.txt").stdout.splitlines()) == 80
    assert call("plot", "curve", folder / "better", "-o", folder / "curve.svg").exit_code == 0
    again = call(*asked, *dev, "--unit", "sentence")
    assert "is finished already" in again.stdout and "dev spearman" in again.stdout


def test_scored_pairs(call, folder):
    columns = ("--text", "first", "--other", "second", "--score", "how")
    done = call(
        "finetune", "sentence_encoder", folder / "base", folder / "pairs.csv", "-o", folder / "scored", *columns,
        "--threads", 1,
    )  # fmt: skip
    assert done.exit_code == 0 and "Next: firth embed" in done.stdout


def test_mistakes_are_told_in_a_line(call, folder):
    asked = ("finetune", "sentence_encoder", folder / "base", folder / "pairs.csv", "-o", folder / "x")
    wrong = call(*asked, "--text", "first", "--other", "third")
    assert wrong.exit_code == 1 and "no column 'third'; it has first, second, how" in wrong.stderr
    wrong = call(*asked, "--dev", folder / "pairs.csv", "--dev-columns", "first,second")
    assert wrong.exit_code == 1 and "--dev-columns names three columns" in wrong.stderr
