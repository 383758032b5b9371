"""Error codes: every error has one, every code is documented, and a template is filled by exactly its values."""

from __future__ import annotations

import ast
import json
import pickle
import string
from pathlib import Path

import pytest

import firth
from firth.core.errors import CODES, FirthError

SOURCE = Path(firth.__file__).parent
ERRORS = ("FirthError", "CellError")


def raised() -> list[tuple[str, ast.Call]]:
    """Each construction of an error in the package, with where it stands."""
    return [
        (f"{path.relative_to(SOURCE)}:{node.lineno}", node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS
    ]


def test_every_error_of_the_package_has_a_documented_code_and_fills_its_template():
    wrong = []
    for where, call in raised():
        code = call.args[0]
        if not (isinstance(code, ast.Constant) and code.value in CODES):
            wrong.append(f"{where}: no documented code")
        if isinstance(call.args[1], ast.JoinedStr):
            wrong.append(f"{where}: an f-string; pass the values by name")
        if isinstance(call.args[1], ast.Constant) and call.keywords:
            assert isinstance(call.args[1].value, str), where
            named = {
                field.partition("[")[0].partition(".")[0]
                for _, field, _, _ in string.Formatter().parse(call.args[1].value)
                if field
            }
            given = {keyword.arg or "**" for keyword in call.keywords}
            if named != given:
                wrong.append(f"{where}: the template names {sorted(named)}, the call gives {sorted(given)}")
    assert not wrong, "\n".join(wrong)
    assert len(raised()) > 900  # the walk above found what it looks for


def test_every_documented_code_is_used():
    used = {call.args[0].value for _, call in raised() if isinstance(call.args[0], ast.Constant)}
    files = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "core" / "errors.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert [code for code in CODES if code not in used and f'"{code}"' not in text] == []


def test_an_error_carries_code_values_and_message_also_through_a_pickle():
    with pytest.raises(FirthError) as caught:
        firth.SkipGram(window=0)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert type(error) is FirthError
        assert error.code == "invalid_value"
        assert (error.values["name"], error.values["got"]) == ("window", 0)
        assert str(error) == "SkipGram.window must be at least 1; got 0."


def test_an_error_of_its_own_class_survives_a_pickle_too():
    from firth.core.long_texts import TooLongError

    error = pickle.loads(pickle.dumps(TooLongError(2, 600, 512, "Split it.")))
    assert (type(error), error.code, error.number, error.values["limit"]) == (TooLongError, "text_too_long", 2, 512)


def test_a_message_without_values_may_hold_braces():
    assert str(FirthError("invalid_type", 'as in {"item": 4.5}')) == 'as in {"item": 4.5}'


def test_the_command_line_shows_the_code_with_debug_and_an_object_with_json(tmp_path):
    import subprocess
    import sys

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "firth", *words], capture_output=True, text=True, cwd=tmp_path)

    plain, debug = (
        call("query", "neighbors", "no-such", "word"),
        call("--debug", "query", "neighbors", "no-such", "word"),
    )
    told = call("query", "neighbors", "no-such", "word", "--json")
    assert (plain.returncode, debug.returncode, told.returncode) == (1, 1, 1)
    assert "[not_found]" not in plain.stderr and "firth: [not_found]" in debug.stderr
    error = json.loads(told.stderr)["error"]
    assert error["code"] == "not_found" and error["values"]["path"] == "no-such" and told.stdout == ""
    misused = call("query", "neighbors", "--json", "--no-such-flag")
    assert misused.returncode == 2 and json.loads(misused.stderr)["error"]["code"] == "usage"
