"""`firth train METHOD DATA… -o FOLDER`: a command for each method, its flags derived from the method's fields."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import choose_report, open_model, print_facts, print_json
from firth.cli.kinds import KINDS
from firth.cli.main import Interrupted
from firth.core import registry
from firth.core.options import Option, build_settings, options_of, plain_name
from firth.core.processes import is_first_process
from firth.core.report import clock, human
from firth.core.run import Run

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.core.model import Model
    from firth.core.train import Trained

SECTIONS = ("Method options", "Run settings", "Data", "Task", "Other")
PROGRESS = "auto: a bar on a terminal, else a line now and then; json: every event; none: notes only."
DASH = "–"
SCORES = ("accuracy", "f1", "matthews", "spearman", "pearson", "exact_match")  # on dev data, of fine-tuning


class Flag(click.Option):
    """An option under a heading of the help."""

    def __init__(self, *names: Any, section: str = "Other", **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section


class TrainCommand(click.Command):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            flags = [flag for flag in self.get_params(ctx) if isinstance(flag, click.Option)]
            here = [flag for flag in flags if getattr(flag, "section", "Other") == section]
            records = [record for flag in here if (record := flag.get_help_record(ctx))]
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


class Methods(click.Group):
    """The methods as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(registry.method_classes())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return train_command(plain_name(cmd_name), registry.method(cmd_name))


@click.command(cls=Methods, subcommand_metavar="METHOD DATA… -o FOLDER [OPTIONS]")
def command() -> None:
    """Learn vectors from text, a table, a graph or ratings into a folder.

    DATA are files (txt, jsonl, csv, tsv, Parquet, also .gz .xz .bz2 .zst), globs in quotes, or - for standard input;
    for classifiers, texts with __label__ words, or records with a column of labels;
    for methods of tables, graphs and ratings, one file (csv, tsv, jsonl, Parquet; edges and ratings also txt);
    for pairs, two parallel files (sources, targets) or one table.
    The same command again goes on with what was broken off. Each METHOD has options of its own:
    firth train METHOD --help.
    """


def train_command(name: str, method: type[Method], base: bool = False, kind: str = "") -> click.Command:
    """The command of a method. With `base`, the model to begin with is its first argument, not --start; `kind` is
    another kind of data than the method's own."""
    kind = kind or method.kind
    flags = [flag_of(option, "Method options") for option in options_of(method)]
    flags += [flag_of(option, "Run settings") for option in options_of(Run)]
    flags += [Flag(name.split(", "), section="Data", **settings) for name, settings in KINDS[kind].flags]
    start: click.Parameter = Flag(
        ["--start"], metavar="MODEL", help="Go on from this model, with its words and new ones."
    )
    if base:
        start = click.Argument(["start"], metavar="BASE")
    choices = click.Choice(("auto", "json", "none"))
    return TrainCommand(
        name,
        help=f"{method.__name__}: {method.summary}.",
        short_help=method.summary,
        options_metavar="-o FOLDER [OPTIONS]",
        callback=lambda **values: run_command(method, values, kind),
        params=[
            *([start] if base else []),
            click.Argument(["data"], nargs=-1, required=True, metavar="DATA…"),
            *flags,
            Flag(["-o", "--output", "folder"], required=True, metavar="FOLDER", help="Where the model goes."),
            *([] if base else [start]),
            Flag(["--overwrite"], is_flag=True, help="Replace another model or unfinished run in FOLDER."),
            Flag(["--progress"], type=choices, default="auto", help=PROGRESS),
            Flag(["--json", "as_json"], is_flag=True, help="Print JSON; errors, notes and progress are JSON too."),
        ],
    )


def flag_of(option: Option, section: str) -> Flag:
    """An option of a dataclass as a flag. None stands for "not given", so that the dataclass's default holds."""
    name = "--" + option.name.replace("_", "-")
    settings: dict[str, Any] = {"default": None, "section": section, "help": f"{option.help} [{limits(option)}]"}
    if option.kind is bool:
        return Flag([f"{name}/--no-{name[2:]}"], **settings)
    if option.choices:
        return Flag([name], type=click.Choice(option.choices), **settings)
    kinds = {int: "INTEGER", float: "NUMBER"}
    return Flag([name], type=option.kind, metavar=kinds.get(option.kind, "TEXT"), **settings)


def limits(option: Option) -> str:
    """1–64, default 5."""
    low, high = option.low, option.high
    if high is not None and high >= 2**31:  # no limit anyone meets
        high = None
    parts = [] if low is None else [f"{low:g}{DASH}{high:g}" if high is not None else f"at least {low:g}"]
    return ", ".join([*parts, f"default {shown(option.default)}"])


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, "") else str(value)


def run_command(method_class: type[Method], values: dict[str, Any], kind: str) -> None:
    from firth.core.report import Nothing
    from firth.core.train import check_first, train

    def given(kind: type) -> dict[str, Any]:
        return {option.name: value for option in options_of(kind) if (value := values[option.name]) is not None}

    method = build_settings(method_class, given(method_class))
    first = is_first_process()
    run = Run(**given(Run), report=choose_report(values["progress"]) if first else Nothing())
    check_first(method, run, Path(values["folder"]))
    data = KINDS[kind].open(values)
    start = open_model(values["start"]) if values["start"] else None
    typed = shlex.join(["firth", *sys.argv[1:]])
    try:
        done = train(method, data, values["folder"], run=run, start=start, overwrite=values["overwrite"], command=typed)
    except KeyboardInterrupt:
        raise Interrupted("interrupted", how_to_go_on(values["folder"])) from None
    if first:
        tell(done, values["as_json"], kind)


def how_to_go_on(folder: str) -> str:
    from firth.core.checkpoint import STATE
    from firth.core.train import UNFINISHED

    if (Path(folder) / UNFINISHED / STATE).exists():
        return "stopped; the same command goes on from here."
    return "stopped before the first checkpoint; nothing was kept."


def tell(done: Trained, as_json: bool, kind: str) -> None:
    from firth.core.sketch import KEY

    figures = {name: value for name, value in done.model.training.items() if name not in ("command", KEY)}
    method = type(done.model.method).method_name()
    if as_json:
        print_json({"status": done.status, "folder": str(done.folder), "method": method, **figures})
        return
    if done.status == "already finished":
        click.echo(f"{done.folder} is finished already; --overwrite trains it again.")
    print_facts(
        {
            "words": figures.get("tokens"),
            "vocabulary": figures.get("vocabulary"),
            **{
                name: figures.get(name)
                for name in ("rows", "columns", "features", "nodes", "edges", "users", "items", "pairs")
            },
            **{name: figures.get(name) for name in ("texts", "questions")},
            "labels": figures.get("labels"),
            "time": clock(figures["seconds"]) if "seconds" in figures else None,
            "words/s": human(figures["words_per_second"]) if "words_per_second" in figures else None,
            "steps/s": human(figures["steps_per_second"]) if "steps_per_second" in figures else None,
            "tokens/s": human(figures["tokens_per_second"]) if "tokens_per_second" in figures else None,
            "texts/s": human(figures["texts_per_second"]) if "texts_per_second" in figures else None,
            "loss": f"{figures['loss']:.4f}" if figures.get("loss") is not None else None,
            "agreement": f"{figures['agreement']:.3f}" if "agreement" in figures else None,
            "automatic": told_values(figures.get("automatic", {})),
            "chosen": told_values(figures.get("chosen", {})),
            **{f"dev {name}": f"{figures[name]:.4f}" for name in SCORES if name in figures},
            **held_out_facts(figures.get("held_out_score")),
            **{
                name: f"{figures[figure]:.1%} right, held out" if figure in figures else None
                for name, figure in (("masked tokens", "masked_accuracy"), ("next sentence", "next_accuracy"))
            },
            "model": done.folder,
        }
    )
    folder = shlex.quote(str(done.folder))
    click.echo("\nNext: " + "\n      ".join(step.format(folder) for step in next_steps(done.model, kind)))


def told_values(values: dict[str, Any]) -> str:
    """epochs 28, learning_rate 0.5."""
    return ", ".join(f"{name} {shown(value)}" for name, value in values.items())


def held_out_facts(found: dict[str, Any] | None) -> dict[str, str]:
    """The score on held-out rows and those of the baselines."""
    if not found:
        return {}
    fewer = f" (trained on {found['baseline_rows']:,} rows)" if "baseline_rows" in found else ""
    baselines = ", ".join(f"{name} {value:.4f}" for name, value in found["baselines"].items())
    return {
        "held out": f"{found['metric']} {found['score']:.4f} on {found['rows']:,} rows",
        "baselines": baselines + fewer,
    }


def next_steps(model: Model, kind: str) -> list[str]:
    """What to do with a new model, {} being its folder: what its kind of data is for, or what only networks can."""
    from firth.core.model import Contextual, Generates

    if kind == "text" and isinstance(model, Generates):
        return ["firth generate {} PROMPT"]
    if kind == "text" and isinstance(model, Contextual):
        return ['firth fill {} "TEXT with a [MASK]"', "firth embed {} FILE"]
    return [KINDS[kind].next]
