"""`import firth` and `firth --help` are fast: they import nothing heavy. The map of commands is consistent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import firth
from firth.cli.main import SECTIONS, cli
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
    """They are repeated in the command line so that --help does not import NumPy."""
    from firth.cli import common, convert
    from firth.core.vectors import METRICS
    from firth.formats.quantize import STORAGES

    assert (common.METRICS, tuple(convert.STORAGE.values())) == (METRICS, STORAGES)


def test_the_help_fits_one_screen(call):
    """One line per command, at most 24 of them, in titled sections of an 80-column terminal."""
    lines = call("--help").output.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")] == ["Options", *SECTIONS]
    assert sum(map(len, SECTIONS.values())) <= 24
    for commands in SECTIONS.values():
        for name, summary in commands.items():
            assert f"  {name:<10}  {summary}" in lines


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands with their names, including those of groups."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield name, command
        return
    for each in command.list_commands(context):
        inner = command.get_command(context, each)
        assert inner is not None
        yield from commands(inner, f"{name} {each}".strip())


COMMANDS = dict(commands(cli))


def test_every_command_has_help(call):
    for verb in (name for section in SECTIONS.values() for name in section):
        result = call(verb, "--help")
        assert result.exit_code == 0 and result.output.startswith("Usage: ")
    assert [name for name, command in COMMANDS.items() if not command.get_short_help_str()] == []


def test_fine_tuning_has_one_entrance():
    tasks = {name.removeprefix("finetune ") for name in COMMANDS if name.startswith("finetune ")}
    linear = {"linear-classifier", "linear-regressor"}
    fine_tuned = {"question-answerer", "sentence-encoder", "text-classifier", "text-regressor", "token-classifier"}
    assert tasks == linear | fine_tuned
    assert not {f"train {task.replace('-', '_')}" for task in tasks} & set(COMMANDS)


#: What each short flag means, by its long form or its parameter.
SHORT = {"-o": {"--output"}, "-k": {"k"}, "-n": {"n"}, "-h": {"--help"}}
#: Names that no command uses, because another name means the same everywhere.
RETIRED = {
    "--text",
    "--sts",
    "--validation",
    "--labelled",
    "--no-marks",
    "--pieces",
    "--numbers",
    "--storage",
    "--folder",
}


def test_flags_mean_the_same_everywhere():
    for name, command in COMMANDS.items():
        for param in command.params:
            for flag in param.opts if isinstance(param, click.Option) else ():
                assert flag not in RETIRED, f"{name} has {flag}"
                if len(flag) == 2:
                    assert SHORT[flag] & {*param.opts, param.name}, f"{name} has {flag} for {param.name}"


@pytest.mark.parametrize("arguments", [["methods"], ["train", "--help"], ["train", "gpt", "--help"]])
def test_listing_methods_loads_no_network(arguments):
    code = f"from firth.cli.main import cli\ntry: cli({arguments!r}, 'firth')\nexcept SystemExit: pass"
    assert loaded(code) & {"torch", "tokenizers", "sklearn", "matplotlib"} == set()


def test_help_imports_no_numpy():
    """Except where flags are derived from the classes of methods."""
    derived = ("train", "finetune", "sweep")
    paths = [name.split() for name in COMMANDS if not name.startswith(derived)]
    code = f"""
from firth.cli.main import cli
for path in {paths!r}:
    try: cli([*path, "--help"], "firth")
    except SystemExit: pass"""
    assert len(paths) > 40 and loaded(code) & {"numpy", "torch"} == set()


def test_without_torch_networks_name_the_package(tmp_path):
    (tmp_path / "t.txt").write_text("a b c d e f\n" * 50)
    command = ["train", "gpt", str(tmp_path / "t.txt"), "-o", str(tmp_path / "m")]
    program = f"import sys; sys.modules['torch'] = None\nfrom firth.cli.main import cli\ncli({command!r}, 'firth')"
    path = str(Path(firth.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert done.stderr.startswith("firth: Networks need the package torch") and how_to_install("neural") in done.stderr
