"""`firth train METHOD DATA… -o MODEL`: one command per method, with flags from the fields of the method."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import (
    PROGRESS,
    choose_report,
    file_flags,
    open_model,
    open_table_input,
    print_fields,
    print_json,
)
from firth.cli.main import Interrupted
from firth.core import registry
from firth.core.data import Data, single_file
from firth.core.errors import FirthError
from firth.core.options import Option, build_settings, options_of
from firth.core.processes import is_first_process
from firth.core.remote import as_path
from firth.core.report import Report, clock, human
from firth.core.run import Run

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.core.model import Model
    from firth.core.train import Trained

FINETUNING = "finetuning"  # the family of methods that `firth finetune` runs
DISTIL = "distil"  # its base model is called the teacher
SECTIONS = ("Method options", "Run settings", "Data", "Task", "Other")
NETWORK_SETTINGS = ("gpus", "accumulation", "shard_weights")  # of Run, shown for networks only
DASH = "–"
SCORES = ("accuracy", "f1", "matthews", "spearman", "pearson", "exact_match")  # on development data
DISTIL_HELP = """Distil: distill a BERT into a table of token vectors, which is small and fast.

TEACHER is a folder of Firth, Hugging Face or sentence-transformers. DATA is text like the texts to be embedded: the
table is fitted to the teacher's vectors of its sentences. Without DATA the teacher embeds single tokens, which is less
accurate. model2vec and sentence-transformers open the result too.
"""


class Flag(click.Option):
    """An option in a section of the help."""

    def __init__(self, *names: Any, section: str = "Other", **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section


class MethodCommand(click.Command):
    """A command whose help shows the options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            flags = [flag for flag in self.get_params(ctx) if isinstance(flag, click.Option)]
            in_section = [flag for flag in flags if getattr(flag, "section", "Other") == section]
            records = [record for flag in in_section if (record := flag.get_help_record(ctx))]
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


class Methods(click.Group):
    """The methods as commands, without those that fine-tune."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name in registry.method_classes() if registry.family_of(name) != FINETUNING)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        method = registry.method(cmd_name)
        name = method.method_name()
        if registry.family_of(name) == FINETUNING:
            task = name.replace("_", "-")
            ctx.fail(f"{task} fine-tunes a trained model. Use 'firth finetune {task} BASE DATA -o MODEL'.")
        return train_command(name, method)


@click.command(cls=Methods, subcommand_metavar="METHOD DATA… -o MODEL [OPTIONS]")
def command() -> None:
    """Train a model on text, a table, a graph or interactions.

    DATA are files (txt, jsonl, csv, tsv, Parquet, each also .gz .xz .bz2 .zst), quoted globs, or - for standard input.
    A classifier takes texts with __label__ words, or records with a label column. Methods for tables, graphs and
    interactions take one file. seq2seq takes two parallel files (sources, targets) or one table.

    The same command resumes an interrupted run. `firth train METHOD --help` shows the options of a method.
    """


def train_command(name: str, method: type[Method]) -> click.Command:
    """Return the command that trains a method. A method that needs a model to start from takes it as first argument."""
    flags = [flag_of(option, "Method options") for option in options_of(method)]
    flags += [flag_of(option, "Run settings") for option in run_options(method)]
    flags += [Flag([flag], section="Data", **settings) for flag, settings in file_flags(method.data.file_options)]
    start: click.Parameter = Flag(["--start"], metavar="MODEL", help="Continue training this model on new data.")
    if method.needs_start:
        start = click.Argument(["start"], metavar="TEACHER" if name == DISTIL else "BASE")
    return MethodCommand(
        name,
        help=DISTIL_HELP if name == DISTIL else f"{method.__name__}: {method.summary}.",
        short_help=method.summary,
        options_metavar="-o MODEL [OPTIONS]",
        callback=lambda **values: run_command(method, values),
        params=[
            *([start] if method.needs_start else []),
            click.Argument(
                ["data"], nargs=-1, required=method.needs_data, metavar="DATA…" if method.needs_data else "[DATA]…"
            ),
            *flags,
            Flag(["-o", "--output", "folder"], required=True, metavar="MODEL", help="The folder of the new model."),
            *([] if method.needs_start else [start]),
            Flag(["--license"], metavar="TEXT", default="", help="The license of the data, for the model card."),
            Flag(["--overwrite"], is_flag=True, help="Replace another model or unfinished run in the folder."),
            Flag(["--progress"], type=click.Choice(("auto", "json", "none")), default="auto", help=PROGRESS),
            Flag(["--json", "as_json"], is_flag=True, help="Print JSON; errors, notes and progress are JSON too."),
        ],
    )


def run_options(method: type[Method]) -> list[Option]:
    """Return the settings of a run that the method has; the help of the cluster says what is computed there."""
    used = method.distributed or ("training" if method.in_processes else "not used by this method")
    return [
        dataclasses.replace(option, help=f"{option.help}; {used}") if option.name == "cluster" else option
        for option in options_of(Run)
        if method.in_processes or option.name not in NETWORK_SETTINGS
    ]


def flag_of(option: Option, section: str) -> Flag:
    """Return an option of a dataclass as a flag. None means "not given", so the default of the dataclass applies."""
    name = "--" + option.name.replace("_", "-")
    settings: dict[str, Any] = {"default": None, "section": section, "help": f"{option.help} [{limits(option)}]"}
    if option.kind is bool:
        return Flag([f"{name}/--no-{name[2:]}"], **settings)
    if option.choices:
        return Flag([name], type=click.Choice(option.choices), **settings)
    metavars = {int: "INTEGER", float: "NUMBER"}
    return Flag([name], type=option.kind, metavar=metavars.get(option.kind, "TEXT"), **settings)


def limits(option: Option) -> str:
    """Return the range and the default, as in "1–64, default 5"."""
    low, high = option.low, option.high
    if high is not None and high >= 2**31:  # no practical limit
        high = None
    parts = [] if low is None else [f"{low:g}{DASH}{high:g}" if high is not None else f"at least {low:g}"]
    return ", ".join([*parts, f"default {shown(option.default)}"])


def shown(value: Any) -> str:
    """Return a value as the help shows it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, "") else str(value)


def run_command(method_class: type[Method], values: dict[str, Any]) -> None:
    """Train the method, in this process or in several, and print the result in the first process."""
    from firth.core.report import Nothing
    from firth.core.train import Trained, check_first

    first, folder = is_first_process(), as_path(values["folder"])
    report = choose_report(values["progress"]) if first else Nothing()
    typed = shlex.join(["firth", *sys.argv[1:]])
    method, run = settings_of(method_class, values, report)
    try:
        if method.in_processes and (run.workers > 1 or run.cluster or run.gpus):
            from firth.cli.train_workers import train_in_workers
            from firth.core.saved import load

            check_first(method, run, folder)
            own = values | {"workers": None, "cluster": None, "gpus": None}
            own |= {"device": "cuda"} if run.gpus else {}  # never the CPU instead
            debug = bool(click.get_current_context().meta.get("debug"))
            command = {"method": method.method_name(), "values": own, "typed": typed, "debug": debug}
            status = train_in_workers(command, run)
            trained: Trained[Model] = Trained(load(str(folder), method_class), folder, status)
        else:
            own = values | {"workers": None} if method.in_processes else values
            trained = train_here(method_class, own, report, typed)
    except KeyboardInterrupt:
        raise Interrupted("interrupted", how_to_resume(values["folder"])) from None
    if first:
        print_result(trained, values["as_json"], text_pairs=bool(values.get("other")))


def settings_of(method_class: type[Method], values: dict[str, Any], report: Report) -> tuple[Method, Run]:
    """Return the method and the run with the values of the flags."""

    def options_given(settings: type) -> dict[str, Any]:
        return {option.name: value for option in options_of(settings) if (value := values.get(option.name)) is not None}

    return build_settings(method_class, options_given(method_class)), Run(**options_given(Run), report=report)


def train_here(method_class: type[Method], values: dict[str, Any], report: Report, typed: str) -> Trained[Model]:
    """Train in this process, which may be one of several."""
    from firth.core.train import check_first, train

    method, run = settings_of(method_class, values, report)
    check_first(method, run, as_path(values["folder"]))
    return train(
        method,
        open_data(method_class.data, values),
        values["folder"],
        run=run,
        start=open_model(values["start"]) if values["start"] else None,
        overwrite=values["overwrite"],
        command=typed,
        license=values["license"],
    )


def open_data(data_class: type[Data], values: dict[str, Any]) -> Any:
    """Open DATA with the values of the flags: as `data_class`, or as vectors where methods take these too. Where DATA
    is optional, it may be missing."""
    files = values["data"]
    if not files:
        return None
    if data_class.or_vectors:
        vectors = open_table_input(single_file(files, data_class.noun))
        if not isinstance(vectors, str):
            refuse_file_options(data_class, values)
            return vectors
    return data_class.from_files(files, values)


def refuse_file_options(data_class: type[Data], values: dict[str, Any]) -> None:
    """Refuse the options for reading files, which do not apply to vectors."""
    given = [option for option in data_class.file_options if option.keywords(values)]
    if given:
        raise FirthError(
            "conflicting_options",
            "{options} apply to a {noun}, and {path} contains vectors. Omit them.",
            options=", ".join(f"--{option.flag}" for option in given),
            noun=data_class.noun,
            path=values["data"][0],
        )


def how_to_resume(folder: str) -> str:
    """Return the message after an interruption."""
    from firth.core.checkpoint import STATE
    from firth.core.train import UNFINISHED

    if (Path(folder) / UNFINISHED / STATE).exists():
        return "stopped; run the same command again to resume."
    return "stopped before the first checkpoint; nothing was saved."


def print_result(trained: Trained[Model], as_json: bool, text_pairs: bool) -> None:
    """Print the metrics of a training run and the commands to try next."""
    from firth.core.sketch import KEY

    metrics = {name: value for name, value in trained.model.training.items() if name not in ("command", KEY)}
    method = type(trained.model.method).method_name()
    if as_json:
        print_json({"status": trained.status, "folder": str(trained.folder), "method": method, **metrics})
        return
    if trained.status == "already finished":
        click.echo(f"{trained.folder} is already finished; --overwrite trains it again.")
    print_fields(
        {
            "words": metrics.get("tokens"),
            "vocabulary": metrics.get("vocabulary"),
            **{
                name: metrics.get(name)
                for name in ("rows", "columns", "features", "nodes", "edges", "users", "items", "pairs")
            },
            **{name: metrics.get(name) for name in ("texts", "questions")},
            "labels": metrics.get("labels"),
            "trained": trained_share(metrics),
            "time": clock(metrics["seconds"]) if "seconds" in metrics else None,
            **{
                f"{unit}/s": human(metrics[f"{unit}_per_second"])
                for unit in ("words", "steps", "tokens", "texts")
                if f"{unit}_per_second" in metrics
            },
            "loss": f"{metrics['loss']:.4f}" if metrics.get("loss") is not None else None,
            "agreement": f"{metrics['agreement']:.3f}" if "agreement" in metrics else None,
            "automatic": join_values(metrics.get("automatic", {})),
            **{f"dev {name}": f"{metrics[name]:.4f}" for name in SCORES if name in metrics},
            **held_out_fields(trained.model),
            **{
                name: f"{metrics[metric]:.1%} right, held out" if metric in metrics else None
                for name, metric in (("masked tokens", "masked_accuracy"), ("next sentence", "next_accuracy"))
            },
            "model": trained.folder,
        }
    )
    folder = shlex.quote(str(trained.folder))
    steps = next_steps(trained.model, text_pairs)
    click.echo("\nNext: " + "\n      ".join(step.format(folder) for step in steps))


def trained_share(metrics: dict[str, Any]) -> str | None:
    """Return how many parameters were trained, if others were frozen."""
    if "trained_parameters" not in metrics:
        return None
    trained, total = metrics["trained_parameters"], metrics["parameters"]
    return f"{trained:,} of {total:,} parameters ({trained / total:.1%})"


def join_values(values: dict[str, Any]) -> str:
    """Return the values of options, as in "epochs 28, learning_rate 0.5"."""
    return ", ".join(f"{name} {shown(value)}" for name, value in values.items())


def held_out_fields(model: Model) -> dict[str, str]:
    """Return the score on held-out rows beside the scores of the baselines, or that there were too few rows for it."""
    from firth.training.baselines import MIN_HELD_OUT_ROWS

    score = model.training.get("held_out_score")
    if not score:
        supervised = model.method.data.has_labels and bool(getattr(model.method, "held_out", False))
        return {"held out": "no rows, so the model was not evaluated"} if supervised else {}
    fewer = f" (trained on {score['baseline_rows']:,} rows)" if "baseline_rows" in score else ""
    baselines = ", ".join(f"{name} {value:.4f}" for name, value in score["baselines"].items())
    result = f"{score['metric']} {score['score']:.4f} on {score['rows']:,} rows"
    few = f", too few to compare (less than {MIN_HELD_OUT_ROWS})" if "learned" not in score else ""
    return {"held out": result + few, "baselines": baselines + fewer}


def next_steps(model: Model, text_pairs: bool = False) -> list[str]:
    """Return commands that use a new model, by what it can do; {} is its folder."""
    from firth.core import model as protocols
    from firth.data.table import Table

    method = type(model.method)
    if isinstance(model, protocols.Answers):
        return ["firth predict {} --question TEXT --passage TEXT"]
    if isinstance(model, (protocols.Predicts, protocols.Estimates, protocols.TagsWords)):
        return ["firth predict {} FILE" + (" --column NAME --other NAME" if text_pairs else "")]
    if isinstance(model, protocols.Translates):
        return ["firth generate translation {} TEXT"]
    if isinstance(model, (protocols.Recommends, protocols.Rates)):
        return ["firth query recommend {} --user USER"]
    if isinstance(model, protocols.Generates):
        return ["firth generate text {} PROMPT"]
    if isinstance(model, protocols.Contextual) and not method.needs_start:
        return ['firth generate fill {} "TEXT with a [MASK]"', "firth embed {} FILE"]
    if issubclass(method.data, Table):
        return ["firth embed {} TABLE -o codes.npy"]
    if isinstance(model, protocols.HasVectors) and not method.needs_start:
        key = next(iter(model.tables)).removesuffix("s").upper()  # WORD, DOCUMENT, NODE
        return [f"firth query neighbors {{}} {key}"]
    return ["firth embed {} FILE"] if isinstance(model, protocols.Embeds) else ["firth info {}"]
