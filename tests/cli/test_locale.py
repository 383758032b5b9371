"""Words and file names are UTF-8 in every locale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import firth

LOCALES = [
    {"LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


def run(folder: Path, locale: dict[str, str], *words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    environment |= {"PYTHONPATH": str(Path(firth.__file__).parents[1]), **locale}
    command = [sys.executable, "-m", "firth", *words]
    return subprocess.run(command, cwd=folder, env=environment, input=stdin.encode(), capture_output=True)


@pytest.mark.parametrize("locale", LOCALES, ids=lambda each: " ".join(each))
def test_words_and_file_names(tmp_path, locale):
    (tmp_path / "größe-日本.txt").write_text("Müller geht nach Köln\n日本 語 Müller\n" * 30, encoding="utf-8")
    flags = ("--dim", "4", "--min-count", "1", "--threads", "1", "--json")
    trained = run(tmp_path, locale, "train", "skipgram", "größe-日本.txt", "-o", "Modell-ö", *flags)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["folder"] == "Modell-ö" and (tmp_path / "Modell-ö" / "config.json").is_file()
    near = run(tmp_path, locale, "query", "neighbors", "Modell-ö", "müller", "語", "--json")
    assert near.returncode == 0, near.stderr
    assert set(json.loads(near.stdout)) == {"müller", "語"}
    unknown = run(tmp_path, locale, "query", "neighbors", "Modell-ö", "tölz", "--json")
    assert json.loads(unknown.stderr)["error"]["code"] == "unknown_key" and "tölz".encode() in unknown.stderr
    rows = run(tmp_path, locale, "embed", "Modell-ö", "-", stdin="Müller 日本\n")
    assert json.loads(rows.stdout)["unknown"] == 0
