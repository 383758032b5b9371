"""`firth finetune sentence-encoder` on texts and on scored pairs."""

from __future__ import annotations

import csv
import itertools
import json

import pytest
from tiny import texts, tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sentence")
    tiny_bert().save(directory / "base")
    some = list(dict.fromkeys(texts()))[:80]
    (directory / "text.txt").write_text("\n".join(some))
    with (directory / "pairs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["first", "second", "how"])
        rows.writerows(
            (first, second, len({*first.split()} & {*second.split()})) for first, second in itertools.pairwise(some)
        )
    return directory


def test_texts_alone_with_dev_pairs(call, folder):
    dev = ("--dev", folder / "pairs.csv", "--dev-columns", "first,second,how")
    command = (
        "finetune",
        "sentence_encoder",
        folder / "base",
        folder / "text.txt",
        "-o",
        folder / "better",
        "--threads",
        1,
    )
    done = call(*command, *dev, "--unit", "sentence", "--json")
    metrics = json.loads(done.stdout)
    assert metrics["method"] == "sentence_encoder"
    assert -1 <= metrics["spearman_before"] <= 1 and -1 <= metrics["spearman"] <= 1
    assert len(call("embed", folder / "better", folder / "text.txt").stdout.splitlines()) == 80
    assert call("plot", "curve", folder / "better", "-o", folder / "curve.svg").exit_code == 0
    again = call(*command, *dev, "--unit", "sentence")
    assert "is already finished" in again.stdout and "dev spearman" in again.stdout


def test_scored_pairs(call, folder):
    columns = ("--column", "first", "--other", "second", "--score", "how")
    done = call(
        "finetune", "sentence_encoder", folder / "base", folder / "pairs.csv", "-o", folder / "scored", *columns,
        "--threads", 1,
    )  # fmt: skip
    assert done.exit_code == 0 and "Next: firth embed" in done.stdout


def test_errors(refused, folder):
    command = ("finetune", "sentence-encoder", folder / "base", folder / "pairs.csv", "-o", folder / "x")
    refused("unknown_column", *command, "--column", "first", "--other", "third", name="third")
    dev = ("--dev", folder / "pairs.csv", "--dev-columns", "first,second")
    refused("invalid_value", *command, *dev, option="dev_columns", got="first,second")
