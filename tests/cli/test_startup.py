"""What is loaded when: `import firth` and `firth --help` must be quick, so they load nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import firth
from firth.cli.main import VERBS, cli
from firth.core.extras import how_to_install

HEAVY = {"numpy", "scipy", "pyarrow", "matplotlib", "torch", "safetensors", "sklearn", "tokenizers"}


def loaded(code: str) -> set[str]:
    """The heavy packages that `code` loads in a fresh interpreter."""
    path = str(Path(firth.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {path!r})\n{code}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return HEAVY & {name.partition(".")[0] for name in done.stdout.splitlines()}


def test_import_firth_is_light():
    assert loaded("import firth; firth.FirthError; firth.__version__") == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["query", "neighbors", "--help"], ["embed", "--help"]]
)
def test_help_is_light(arguments):
    code = f"from firth.cli.main import cli\ntry: cli({arguments!r}, 'firth')\nexcept SystemExit: pass"
    assert loaded(code) == set()


def test_training_needs_no_torch_and_no_plots(tmp_path):
    (tmp_path / "t.txt").write_text("a b c d e f\n" * 50)
    command = ["train", "skipgram", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m"), "--dim", "4"]
    found = loaded(f"from firth.cli.main import cli\ntry: cli({command!r}, 'firth')\nexcept SystemExit: pass")
    assert (tmp_path / "m" / "config.json").exists()
    assert found & {"torch", "matplotlib", "sklearn", "scipy"} == set() and "numpy" in found


def test_choices_written_twice_agree():
    """They stand in the command line too, so that --help loads no numpy."""
    from firth.cli import common, convert
    from firth.core.vectors import METRICS
    from firth.data.corpus import UNITS
    from firth.formats.quantize import STORAGES

    storage = next(param for param in convert.command.params if param.name == "storage")
    assert (common.METRICS, common.UNITS, tuple(storage.type.choices)) == (METRICS, UNITS, STORAGES)


def test_every_verb_is_listed_and_has_help(call):
    listed = call("--help").output
    for verb, line in VERBS.items():
        assert f"  {verb} " in listed and line in " ".join(listed.split())
        result = call(verb, "--help")
        assert result.exit_code == 0 and result.output.startswith("Usage: ")


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands with their names, those of groups too."""
    context = click.Context(command)
    for each in command.list_commands(context) if isinstance(command, click.Group) else ():
        found = command.get_command(context, each)
        yield from commands(found, f"{name} {each}".strip())
    if not isinstance(command, click.Group):
        yield name, command


def test_the_same_thing_has_the_same_name():
    for name, command in commands(cli):
        flags = {tuple(param.opts) for param in command.params}
        for one, other in (("--column", "--text"), ("--sentences", "--sts"), ("--dev", "--validation")):
            first = next((opts for opts in flags if other in opts), (one,))
            assert first[0] == one or name == "distil", f"{name} has {first}"  # distil's --text is a file


@pytest.mark.parametrize("arguments", [["methods"], ["train", "--help"], ["train", "gpt", "--help"]])
def test_listing_methods_loads_no_network(arguments):
    code = f"from firth.cli.main import cli\ntry: cli({arguments!r}, 'firth')\nexcept SystemExit: pass"
    assert loaded(code) & {"torch", "tokenizers", "sklearn", "matplotlib"} == set()


def test_without_torch_networks_say_what_they_need(tmp_path):
    (tmp_path / "t.txt").write_text("a b c d e f\n" * 50)
    command = ["train", "gpt", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m")]
    program = f"import sys; sys.modules['torch'] = None\nfrom firth.cli.main import cli\ncli({command!r}, 'firth')"
    path = str(Path(firth.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert done.stderr.startswith("firth: Networks need the package torch") and how_to_install("neural") in done.stderr
