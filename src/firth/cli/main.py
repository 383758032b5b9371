"""The command `firth`: a table of verbs, each loaded only when used, and what happens when something goes wrong."""

from __future__ import annotations

import codecs
import contextlib
import difflib
import importlib
import io
import json
import math
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import click

from firth.core.errors import FirthError, FirthWarning
from firth.core.processes import is_first_process, refuse_processes
from firth.core.report import discard
from firth.version import __version__

#: One line for each verb; its command stands in the module of the same name.
VERBS = {
    "train": "Learn from text, tables, graphs or ratings into a folder; a killed run goes on.",
    "finetune": "Teach a trained network a task: labels, pairs, tags, answers.",
    "distil": "Make a small, fast model of a transformer: a table of tokens.",
    "methods": "List what can be trained.",
    "info": "Tell what a model, an unfinished run, an index or a vector file holds.",
    "neighbors": "What is nearest to words, documents, nodes, items.",
    "analogy": "A is to B as C is to what?",
    "similarity": "How alike two words are; which of several is the odd one.",
    "associations": "What goes with a word more than by chance.",
    "predict": "The labels of texts, one a line.",
    "answer": "The answer to a question, found in a passage.",
    "recommend": "Items that a user may like.",
    "evaluate": "Accuracy on tests of words, labels, graphs, recommendations.",
    "compare": "Which of several models is best for your data: one table, one report.",
    "sweep": "Search the options of a method by a task of your own; a killed sweep goes on.",
    "align": "Turn one space onto another; tell which words moved.",
    "generate": "Write text with a language model.",
    "fill": "What may stand in a blank.",
    "attention": "Where a network looks.",
    "senses": "One word in several texts: how far its vectors part, layer by layer.",
    "words": "Words with the vectors they have in context, or one a word from all contexts.",
    "sample": "Make up rows like those a model learned from.",
    "reconstruct": "Rebuild a table's rows from their codes; find the odd ones.",
    "compress": "PCA, LSA, autoencoder and VAE side by side on your rows.",
    "embed": "Turn texts into vectors, one row a line.",
    "pool": "Set how a BERT's tokens become a text's vector, or have it chosen.",
    "index": "Embed texts and index them for search; a killed run goes on.",
    "search": "Find texts by meaning, by words, or both.",
    "serve": "Put models and indexes behind HTTP, as other programs call them.",
    "studio": "See data, training, maps and attention in the browser.",
    "translate": "Turn texts into others: translations, summaries.",
    "convert": "Write vectors in another format.",
    "corpus": "Make a corpus, or look at one.",
    "tokenizer": "Learn a subword tokenizer; text to ids and back.",
    "verify": "Check the files of a model or an index against their hashes.",
    "plot": "Draw maps, analogies, losses, frequencies, matrices.",
    "demo": "Learn from Python's own documentation and search it.",
    "completion": "Print the completion script of a shell.",
}
#: The verbs that share their work between the processes of torchrun; the others are refused there.
IN_PROCESSES = ("train", "finetune", "embed")


def wants_json() -> bool:
    """Whether the command line has --json: then errors, notes and progress are JSON too."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get("json"))


class Failure(click.ClickException):
    """One line on standard error: the message, with --debug its code before it, with --json an object."""

    exit_code = 1

    def __init__(self, code: str, message: str, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.values = code, values or {}
        context = click.get_current_context(silent=True)
        self.debug = bool(context and context.meta.get("debug"))
        self.as_json = wants_json()  # now: there is no context any more when it is shown

    def show(self, file: Any = None) -> None:
        if self.as_json:
            show_json({"error": {"code": self.code, "message": self.message, "values": self.values}})
        else:
            click.echo(f"firth: [{self.code}] {self.message}" if self.debug else f"firth: {self.message}", err=True)


class Interrupted(Failure):
    """Ctrl-C: 128 + SIGINT, as shells have it."""

    exit_code = 130


class Misused(Failure):
    """A command line that click refuses, where --json asks for objects."""

    exit_code = 2


def show_json(line: Mapping[str, Any]) -> None:
    """One JSON object on a line of standard error; what JSON does not know becomes text."""
    click.echo(json.dumps(finite(line), ensure_ascii=False, default=str), err=True)


def finite(value: Any) -> Any:
    """NaN and infinity as texts, which JSON does not have as numbers."""
    if isinstance(value, Mapping):
        return {str(name): finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Verbs(click.Group):
    """Commands by the table above. Listing them loads none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"firth.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], VERBS, n=1)
        if args[0] not in VERBS and near and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        if args[0] in VERBS and args[0] not in IN_PROCESSES:
            refuse_processes(f"firth {args[0]}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = args[: args.index("--")] if "--" in args else args
        # Known before anything is parsed: what is wrong with the command line is said in the form that it asks for.
        ctx.meta["json"], ctx.meta["debug"] = "--json" in flags, "--debug" in flags
        with failures():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with failures(), warnings.catch_warnings():
            warnings.simplefilter("always", FirthWarning)
            warnings.showwarning = show_warning
            return super().invoke(ctx)


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Whatever goes wrong becomes one line and an exit code."""
    try:
        yield
        sys.stdout.flush()  # here, where a full disk can still be told, not at the interpreter's end
    except click.UsageError as error:
        if not wants_json():
            raise
        raise Misused("usage", usage_message(error)) from error
    except click.FileError as error:
        raise Failure("unreadable_file", error.format_message(), {"path": error.ui_filename}) from error
    except (click.ClickException, click.exceptions.Exit):
        raise
    except FirthError as error:
        raise Failure(error.code, str(error), error.values) from error
    except (KeyboardInterrupt, click.Abort):
        raise Interrupted("interrupted", "stopped.") from None
    except BrokenPipeError:  # `firth … | head` has read enough
        discard(sys.stdout)
        raise click.exceptions.Exit(0) from None
    except Exception as error:
        raise unexpected(error) from error


def usage_message(error: click.UsageError) -> str:
    """One line; a command group without a command would show its whole help."""
    if type(error).__name__ == "NoArgsIsHelpError" and error.ctx:  # of click 8.2 and later
        return f"Missing command; {error.ctx.command_path} --help lists them."
    return error.format_message()


def unexpected(error: Exception) -> Failure:
    """An error that is not Firth's own. --debug shows its trace, with --json among the values."""
    debug = click.get_current_context().meta["debug"]
    if debug and not wants_json():
        raise error
    discard(sys.stdout)
    trace = {"trace": traceback.format_exception(error)} if debug else {}
    if is_out_of_memory(error):
        why = f"not enough memory ({error})." if str(error) else "not enough memory."
        return Failure("out_of_memory", why.partition("\n")[0], trace)
    if isinstance(error, OSError):
        where = f"{error.filename!s:.200}: " if error.filename else ""  # a text may stand where a file should
        return Failure("operating_system", f"{where}{error.strerror or error}.", {"errno": error.errno, **trace})
    what = f"{type(error).__name__}: {error}".partition("\n")[0]
    return Failure("fault", f"{what} (a fault in Firth; `firth --debug …` shows the trace)", trace)


def is_out_of_memory(error: Exception) -> bool:
    """Of Python, NumPy, Arrow and the kernels, or of torch, which has no common class for GPU and CPU."""
    of_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator: can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and of_torch)


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **more: Any) -> None:
    if not issubclass(category, FirthWarning) or not is_first_process():
        return
    if wants_json():
        show_json({"event": "note", "code": getattr(message, "code", "note"), "text": str(message)})
    else:
        over_bar = "\r\x1b[2K" if sys.stderr.isatty() else ""
        click.echo(f"{over_bar}note: {message}", err=True)


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 110,
    "token_normalize_func": lambda name: name.replace("_", "-"),  # of options and choices: both are the same
}


@click.command(cls=Verbs, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="firth")
@click.option("--debug", is_flag=True, help="Show error codes, and the trace of an unexpected error.")
def cli(debug: bool) -> None:
    """Firth turns text, tables, graphs and who-used-what into vectors and lets you ask them.

    \b
      firth train skipgram text.txt -o model     learn
      firth neighbors model river                ask
      firth demo                                 see it work on this machine

    Every command takes --json: then results, errors, notes and progress are JSON.
    `firth COMMAND --help` shows its options.
    """


def in_utf8() -> None:
    """Begins anew in Python's UTF-8 mode where the locale C leaves nothing but ASCII. Python does that by itself unless
    PYTHONUTF8=0 forbids it, and then no argument or file name with other letters could be understood."""
    if codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def main() -> None:
    in_utf8()
    # Before torch is there: its threads wait asleep. Spinning they are no faster, and on a busy machine half as fast.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # whatever the locale
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a batch system's "time is up" leaves a checkpoint too
    try:
        cli(prog_name="firth")
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
