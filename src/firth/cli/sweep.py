"""`firth sweep METHOD DATA… -o FOLDER`: which options are best for your data, by a task of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import choose_report, open_model, print_json
from firth.cli.kinds import KINDS
from firth.cli.main import Interrupted
from firth.cli.train import Flag, Methods, TrainCommand, flag_of
from firth.core import registry
from firth.core.errors import FirthError
from firth.core.options import build_settings, options_of, plain_name
from firth.core.run import Run

if TYPE_CHECKING:
    from firth.core.method import Method
    from firth.studies.tasks import Task

TASKS: dict[str, str] = {
    "similarity": "Two words and how alike they are, a line.",
    "analogies": "Questions as in questions-words.txt.",
    "sentences": "Two sentences and how alike they are (csv, tsv, jsonl).",
    "documents": "Texts that are asked for: by --title, --name, or by the sentence before.",
    "labelled": "Texts with labels: told by the classifier, or by a probe of the vectors.",
    "nodes": "Nodes of a graph with their labels, one node a line; or communities, the members of one a line.",
    "ratings": "What users turned to later: user, item, rating.",
}
COLUMNS = {"title": "The titles' column.", "name": "The names' column.", "label": "The labels' column."}


class Sweeps(Methods):
    """The methods as commands."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return sweep_command(plain_name(cmd_name), registry.method(cmd_name))


@click.command(cls=Sweeps, subcommand_metavar="METHOD DATA… -o FOLDER --budget SECONDS [OPTIONS]")
def command() -> None:
    """Search a method's options by a task of your own, under a budget of time.

    Half of the task chooses; the other half then tells what the choice is worth beside the method as it is. The best
    model is FOLDER/best. The same command goes on with what was broken off, and with a larger budget adds trials.

    \b
      firth sweep skipgram text.txt -o words --similarity pairs.tsv --budget 600 --try dim=50,100,200 --try window=2:15
    """


def sweep_command(name: str, method: type[Method]) -> click.Command:
    """The command of a method: its own options are the ones that stay, --try names those that vary."""
    kind = KINDS[method.kind]
    flags = [flag_of(option, "Method options") for option in options_of(method)]
    flags += [flag_of(option, "Run settings") for option in options_of(Run) if option.name != "budget"]
    flags += [Flag(flag.split(", "), section="Data", **settings) for flag, settings in kind.flags]
    known = {flag.name for flag in flags}
    names = {task: [f"--{task}", *(["--sts"] if task == "sentences" else [])] for task in TASKS}  # as in compare
    flags += [Flag(names[task], metavar="FILE", section="Task", help=text) for task, text in TASKS.items()]
    layouts = click.Choice(("auto", "labels", "communities"))
    flags += [Flag(["--node-layout"], type=layouts, default="auto", section="Task", help="What a line of --nodes is.")]
    texts = {column: text for column, text in COLUMNS.items() if column not in known}
    flags += [Flag([f"--{column}"], metavar="NAME", section="Task", help=text) for column, text in texts.items()]
    tries = "An option to vary: NAME=A,B,C or NAME=LOW:HIGH, or NAME for a range about its default; may be repeated. "
    return TrainCommand(
        name,
        help=f"Search the options of {method.__name__}: {method.summary}.",
        short_help=method.summary,
        options_metavar="-o FOLDER [OPTIONS]",
        callback=lambda **values: run_command(method, values),
        params=[
            click.Argument(["data"], nargs=-1, required=True, metavar="DATA…"),
            *flags,
            Flag(["--try", "tries"], multiple=True, metavar="NAME=…", help=f"{tries}Else every number varies."),
            Flag(["--budget"], type=float, default=600, show_default=True, metavar="SECONDS", help="For all trials."),
            Flag(["-o", "--output", "folder"], required=True, metavar="FOLDER", help="Trials, and the best model."),
            Flag(["--start"], metavar="MODEL", help="Every trial begins from this model."),
            Flag(["--overwrite"], is_flag=True, help="Forget another sweep in FOLDER."),
            Flag(["--progress"], type=click.Choice(("auto", "json", "none")), default="auto", help="As in train."),
            Flag(["--json", "as_json"], is_flag=True, help="Print all trials as JSON; errors and notes are JSON too."),
        ],
    )


def run_command(method_class: type[Method], values: dict[str, Any]) -> None:
    from firth.studies import sweep
    from firth.studies.space import parse_range
    from firth.studies.sweeping import check_sweep

    def given(kind: type) -> dict[str, Any]:
        known = [option.name for option in options_of(kind) if not (kind is Run and option.name == "budget")]
        return {name: value for name in known if (value := values[name]) is not None}

    method = build_settings(method_class, given(method_class))
    run = Run(**given(Run), report=choose_report(values["progress"]))
    check_sweep(method, run, Path(values["folder"]))
    tries = dict(parse_range(method_class, text) for text in values["tries"]) or None
    data = KINDS[method_class.kind].open(values)
    task = task_of(method_class.kind, values, run.seed, data)
    start = open_model(values["start"]) if values["start"] else None
    if method_class.needs_start and start is None:
        raise FirthError(
            "missing_start",
            "{method_class} begins from a model; give it by --start MODEL.",
            method_class=method_class.__name__,
        )
    try:
        found = sweep(
            method,
            data,
            task,
            values["folder"],
            space=tries,
            budget=values["budget"],
            run=run,
            start=start,
            overwrite=values["overwrite"],
        )
    except KeyboardInterrupt:
        raise Interrupted("interrupted", "stopped; the same command goes on from here.") from None
    if values["as_json"]:
        print_json(found.to_json())
    else:
        click.echo(str(found))


def task_of(kind: str, values: dict[str, Any], seed: int, data: Any) -> Task:
    """The one task that is given; `data` is what is learned from."""
    from firth.data.examples import Examples
    from firth.data.interactions import Interactions
    from firth.data.labeled_texts import LabeledTexts
    from firth.data.readers import format_and_compression
    from firth.studies import documents, tasks

    asked = [name for name in TASKS if values[name]]
    if len(asked) != 1:
        said = f"got {', '.join(f'--{name}' for name in asked)}" if asked else "none is given"
        raise click.UsageError(f"A sweep chooses by one task, {', '.join(f'--{name}' for name in TASKS)} FILE; {said}.")
    path = values[asked[0]]
    columns: dict[str, Any] = {name: values.get(name) for name in ("title", "name")}
    columns["column"] = values.get("column") or values.get("text")  # fine-tuning calls it text
    if asked[0] == "documents":
        return tasks.document_task(documents.draw(path, seed=seed, unit=values.get("unit") or "line", **columns), seed)
    if (
        asked[0] == "labelled" and kind == "examples" and format_and_compression(Path(path))[0]
    ):  # read as those that are learned from
        known = Examples(path, text=columns["column"], label=values["label"])
        return tasks.labeled_task(zip(known.texts(), known.labels(), strict=True), seed)
    if asked[0] == "labelled":
        return tasks.labeled_task(LabeledTexts(path, column=columns["column"], label=values["label"]), seed)
    if asked[0] == "ratings":
        return tasks.rating_task(Interactions(path), seed)
    if asked[0] == "nodes":
        return tasks.node_task(path, seed, set(data.keys) if kind == "graph" else None, values["node_layout"])
    makers = {
        "similarity": tasks.similarity_task,
        "analogies": tasks.analogy_task,
        "sentences": tasks.sentence_task,
    }
    return makers[asked[0]](path, seed)
