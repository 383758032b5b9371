"""`firth sweep METHOD DATA… -o FOLDER`: search for the options that score best on a task of yours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.cluster_options import CLUSTER_FLAGS, given_cluster
from firth.cli.common import PROGRESS, choose_report, file_flags, open_model, print_json
from firth.cli.main import Interrupted
from firth.cli.train import Flag, MethodCommand, Methods, flag_of, open_data, run_options
from firth.core import registry
from firth.core.errors import FirthError
from firth.core.options import Option, build_settings, options_of, plain_name
from firth.core.remote import AnyPath, RemotePath, as_path
from firth.core.report import Nothing
from firth.core.run import Run

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.studies.sweeping import SweepInputs
    from firth.studies.tasks import Task

#: The flag of each task, named as in `firth evaluate`, and its help.
TASKS: dict[str, str] = {
    "similarity": "Word pairs with similarity scores, one pair per line.",
    "analogies": "Analogy questions in the format of questions-words.txt.",
    "sentences": "Sentence pairs with similarity scores (csv, tsv, jsonl).",
    "documents": "Documents to retrieve by their --title, by their --name, or by the preceding sentence.",
    "classification": "Labeled texts: predicted by the classifier itself, or by a linear model on the vectors.",
    "nodes": "Labels of graph nodes, one node per line; or communities, the members of one per line.",
    "recommendations": "Later interactions of the users: user, item, rating.",
}
COLUMNS = {"title": "The title column.", "name": "The name column.", "label": "The label column."}


class Sweeps(Methods):
    """The methods as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(registry.method_classes())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return sweep_command(plain_name(cmd_name), registry.method(cmd_name))


@click.command(cls=Sweeps, subcommand_metavar="METHOD DATA… -o FOLDER --budget SECONDS [OPTIONS]")
def command() -> None:
    """Search for the best options of a method within a time budget.

    Half of the task selects the options; the other half scores the selection against the defaults of the method. The
    best model is FOLDER/best. The same command resumes an interrupted sweep; with a larger budget it adds trials.

    \b
      firth sweep skipgram text.txt -o words --similarity pairs.tsv --budget 600 --try dim=50,100,200 --try window=2:15
    """


def sweep_command(name: str, method: type[Method]) -> click.Command:
    """Return the command of a method: its options are fixed values, and --try names the options to vary."""
    flags = [flag_of(option, "Method options") for option in options_of(method)]
    flags += [flag_of(option, "Run settings") for option in run_settings(method)]
    flags += [Flag([flag], section="Run settings", **settings) for flag, settings in CLUSTER_FLAGS]
    flags += [Flag([flag], section="Data", **settings) for flag, settings in file_flags(method.data.file_options)]
    flag_names = {flag.name for flag in flags}
    flags += [Flag([f"--{task}"], metavar="FILE", section="Task", help=text) for task, text in TASKS.items()]
    layouts = click.Choice(("auto", "labels", "communities"))
    flags += [Flag(["--node-layout"], type=layouts, default="auto", section="Task", help="What a line of --nodes is.")]
    texts = {column: text for column, text in COLUMNS.items() if column not in flag_names}
    flags += [Flag([f"--{column}"], metavar="NAME", section="Task", help=text) for column, text in texts.items()]
    tries = "An option to vary: NAME=A,B,C, NAME=LOW:HIGH, or NAME for a range around its default; repeatable. "
    return MethodCommand(
        name,
        help=f"Search the options of {method.__name__}: {method.summary}.",
        short_help=method.summary,
        options_metavar="-o FOLDER [OPTIONS]",
        callback=lambda **values: run_command(method, values),
        params=[
            click.Argument(["data"], nargs=-1, required=True, metavar="DATA…"),
            *flags,
            Flag(["--try", "tries"], multiple=True, metavar="NAME=…", help=f"{tries}By default all numbers vary."),
            Flag(
                ["--budget"],
                type=float,
                default=600,
                show_default=True,
                metavar="SECONDS",
                help="Time for all trials together; with --cluster, of each worker.",
            ),
            Flag(
                ["-o", "--output", "folder"],
                required=True,
                metavar="FOLDER",
                help="The folder of the trials and the best model.",
            ),
            Flag(["--start"], metavar="MODEL", help="The model that every trial starts from."),
            Flag(["--overwrite"], is_flag=True, help="Replace another sweep in FOLDER."),
            Flag(["--progress"], type=click.Choice(("auto", "json", "none")), default="auto", help=PROGRESS),
            Flag(["--json", "as_json"], is_flag=True, help="Print JSON; errors, notes and progress are JSON too."),
        ],
    )


def run_settings(method: type[Method]) -> list[Option]:
    """Return the settings of a run that apply to the trials, each of which is trained in one process."""
    others = {"budget", "cluster", "workers", "gpus", "shard_weights"}
    return [option for option in run_options(method) if option.name not in others]


def run_command(method_class: type[Method], values: dict[str, Any]) -> None:
    """Run the sweep and print its trials."""
    from dataclasses import replace

    from firth.studies import sweep
    from firth.studies.space import parse_range
    from firth.studies.sweeping import Opener, check_sweep

    cluster = given_cluster(values, has_shards=True)
    method, run = settings_of(method_class, values)
    check_sweep(method, run, Path(values["folder"]))
    if cluster.where and "-" in values["data"]:
        raise FirthError(
            "conflicting_options",
            "Workers cannot read standard input (-). Give a file, or leave out {option}.",
            option="--cluster",
        )
    tries = dict(parse_range(method_class, text) for text in values["tries"]) or None
    inputs = open_inputs(method.method_name(), values)
    arguments = {"method": method.method_name(), "values": values}
    try:
        result = sweep(
            *inputs[:3],
            values["folder"],
            space=tries,
            budget=values["budget"],
            run=replace(run, report=choose_report(values["progress"])),
            start=inputs.start,
            overwrite=values["overwrite"],
            cluster=cluster,
            opener=Opener(open_inputs, arguments, files_of(values)),
        )
    except KeyboardInterrupt:
        raise Interrupted("interrupted", "stopped; run the same command again to resume.") from None
    if values["as_json"]:
        print_json(result.to_json())
    else:
        click.echo(str(result))


def settings_of(method_class: type[Method], values: dict[str, Any]) -> tuple[Method, Run]:
    """Return the method and the run with the values of the flags."""

    def options_given(options: Sequence[Option]) -> dict[str, Any]:
        return {option.name: value for option in options if (value := values[option.name]) is not None}

    method = build_settings(method_class, options_given(options_of(method_class)))
    return method, Run(**options_given(run_settings(method_class)), report=Nothing())


def open_inputs(method: str, values: dict[str, Any]) -> SweepInputs:
    """Open what the flags name, in this process or in a worker."""
    from firth.studies.sweeping import SweepInputs

    method_class = registry.method(method)
    settings, run = settings_of(method_class, values)
    data = open_data(method_class.data, values)
    task = task_of(values, run.seed, data)
    start = open_model(values["start"]) if values["start"] else None
    if method_class.needs_start and start is None:
        raise FirthError(
            "missing_start",
            "{method} starts from a trained model. Pass it with --start MODEL.",
            method=method_class.__name__,
        )
    return SweepInputs(settings, data, task, run, start)


def files_of(values: dict[str, Any]) -> Sequence[AnyPath]:
    """Return the files that workers have to see."""
    from firth.data.readers import find_files

    given = [*values["data"], *(values[name] for name in TASKS if values[name])]
    paths = [path for name in given if name != "-" for path in find_files(name)]
    return [path if isinstance(path, RemotePath) else path.absolute() for path in paths]


def task_of(values: dict[str, Any], seed: int, data: Any) -> Task:
    """Return the one task that is given; `data` is the training data."""
    from firth.data.examples import Examples
    from firth.data.graph import Graph
    from firth.data.interactions import Interactions
    from firth.data.labeled_texts import LabeledTexts
    from firth.data.readers import format_and_compression
    from firth.studies import documents, tasks

    given = [name for name in TASKS if values[name]]
    if len(given) != 1:
        got = ", ".join(f"--{name}" for name in given) or "none"
        raise click.UsageError(f"A sweep needs one task, {', '.join(f'--{name}' for name in TASKS)} FILE; got {got}.")
    task, path, text_column = given[0], values[given[0]], values.get("column")
    if task == "documents":
        columns: dict[str, Any] = {"title": values.get("title"), "name": values.get("name"), "column": text_column}
        return tasks.document_task(documents.draw(path, seed=seed, unit=values.get("unit") or "line", **columns), seed)
    if task == "classification" and isinstance(data, Examples) and format_and_compression(as_path(path))[0]:
        # read as the training data is
        examples = Examples(path, text=text_column or "text", label=values["label"])
        return tasks.labeled_task(zip(examples.texts(), examples.labels(), strict=True), seed)
    if task == "classification":
        return tasks.labeled_task(LabeledTexts(path, column=text_column, label=values["label"]), seed)
    if task == "recommendations":
        return tasks.rating_task(Interactions(path), seed)
    if task == "nodes":
        return tasks.node_task(path, seed, set(data.keys) if isinstance(data, Graph) else None, values["node_layout"])
    makers = {
        "similarity": tasks.similarity_task,
        "analogies": tasks.analogy_task,
        "sentences": tasks.sentence_task,
    }
    return makers[task](path, seed)
