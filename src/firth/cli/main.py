"""The command `firth`: the table of its commands, and how errors and notes are shown."""

from __future__ import annotations

import codecs
import contextlib
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

from firth.cli.groups import LazyGroup
from firth.core.errors import FirthError, FirthWarning
from firth.core.processes import is_first_process, refuse_processes
from firth.core.report import discard
from firth.version import __version__

#: The commands by heading, each with its summary. The command is in the module or package of the same name.
SECTIONS = {
    "Train": {
        "train": "Train a model on text, a table, a graph or interactions.",
        "finetune": "Fine-tune a BERT or GPT on labeled data.",
        "sweep": "Search for the best options of a method within a time budget.",
    },
    "Use": {
        "embed": "Embed texts or table rows as vectors.",
        "query": "Neighbors, analogies, similarities, recommendations.",
        "predict": "Predict labels, numbers, tags or answers.",
        "generate": "Generate text, masked tokens, translations or table rows.",
        "index": "Build an index for search.",
        "search": "Search an index by meaning, by words, or both.",
        "serve": "Serve models and indexes over HTTP.",
        "studio": "Open the workbench in the browser.",
    },
    "Evaluate": {
        "evaluate": "Measure models on test data, one command per task.",
        "compare": "Compare models on your data; align two vector spaces.",
    },
    "Look inside": {
        "inspect": "Attention, contextual word vectors, reconstruction errors.",
        "plot": "Draw maps, losses, confusion matrices and more.",
        "info": "Describe a model, run, index, tokenizer or vector file.",
        "verify": "Check the files of a model or index against their hashes.",
    },
    "Data and files": {
        "corpus": "Make a corpus or describe one.",
        "tokenizer": "Train a subword tokenizer; encode and decode text.",
        "convert": "Convert vectors and models to other formats.",
        "pooling": "Change how a model pools token or word vectors.",
        "methods": "List the methods that can be trained.",
        "demo": "Train on the documentation of Python and search it.",
        "completion": "Print the completion script of a shell.",
    },
}
#: The commands that distribute their work over the processes of torchrun; the others refuse to run there.
DISTRIBUTED = ("train", "finetune", "embed")


def wants_json() -> bool:
    """Return whether the command line has --json, which applies to errors, notes and progress too."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get("json"))


class Failure(click.ClickException):
    """An error as one line on standard error: the message, with --debug also its code, with --json an object."""

    exit_code = 1

    def __init__(self, code: str, message: str, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.values = code, values or {}
        context = click.get_current_context(silent=True)
        self.debug = bool(context and context.meta.get("debug"))
        self.as_json = wants_json()  # read here, because show() runs without a context

    def show(self, file: Any = None) -> None:
        """Print the error as text, or as JSON with its code and values."""
        if self.as_json:
            show_json({"error": {"code": self.code, "message": self.message, "values": self.values}})
        else:
            click.echo(f"firth: [{self.code}] {self.message}" if self.debug else f"firth: {self.message}", err=True)


class Interrupted(Failure):
    """Ctrl-C or SIGTERM. The exit code is 128 + SIGINT, as in shells."""

    exit_code = 130


class UsageFailure(Failure):
    """A command line that click rejects, shown as JSON."""

    exit_code = 2


def show_json(line: Mapping[str, Any]) -> None:
    """Print one JSON object as a line of standard error. Values that JSON cannot represent become strings."""
    click.echo(json.dumps(finite(line), ensure_ascii=False, default=str), err=True)


def finite(value: Any) -> Any:
    """Return the value with NaN and infinity as strings, because JSON has no such numbers."""
    if isinstance(value, Mapping):
        return {str(name): finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Firth(LazyGroup):
    """The top-level group: refuses torchrun where it is not supported, and shows errors and warnings."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; refuse it if it cannot run in several processes."""
        if args[0] in self.summaries and args[0] not in DISTRIBUTED:
            refuse_processes(f"firth {args[0]}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the form of errors before the command line is parsed."""
        flags = args[: args.index("--")] if "--" in args else args
        # Set before parsing, so that errors in the command line itself are shown in the requested form.
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
    """Turn every exception into one line on standard error and an exit code."""
    try:
        yield
        sys.stdout.flush()  # a full disk is reported here, not when the interpreter exits
    except click.UsageError as error:
        if not wants_json():
            raise
        raise UsageFailure("usage", usage_message(error)) from error
    except click.FileError as error:
        raise Failure("unreadable_file", error.format_message(), {"path": error.ui_filename}) from error
    except (click.ClickException, click.exceptions.Exit):
        raise
    except FirthError as error:
        raise Failure(error.code, str(error), error.values) from error
    except (KeyboardInterrupt, click.Abort):
        raise Interrupted("interrupted", "stopped.") from None
    except BrokenPipeError:  # for example `firth … | head`
        discard(sys.stdout)
        raise click.exceptions.Exit(0) from None
    except Exception as error:
        raise unexpected(error) from error


def usage_message(error: click.UsageError) -> str:
    """Return the message as one line; click would show the whole help of a group without a command."""
    if type(error).__name__ == "NoArgsIsHelpError" and error.ctx:  # click 8.2 and later
        return f"Missing command; {error.ctx.command_path} --help lists them."
    return error.format_message()


def unexpected(error: Exception) -> Failure:
    """Return the failure for an exception that is not a FirthError. --debug shows the traceback."""
    debug = click.get_current_context().meta["debug"]
    if debug and not wants_json():
        raise error
    discard(sys.stdout)
    trace = {"trace": traceback.format_exception(error)} if debug else {}
    if is_out_of_memory(error):
        message = f"not enough memory ({error})." if str(error) else "not enough memory."
        return Failure("out_of_memory", message.partition("\n")[0], trace)
    if isinstance(error, OSError):
        path = f"{error.filename!s:.200}: " if error.filename else ""  # the name may be a long text
        return Failure("operating_system", f"{path}{error.strerror or error}.", {"errno": error.errno, **trace})
    message = f"{type(error).__name__}: {error}".partition("\n")[0]
    return Failure("fault", f"{message} (a defect in Firth; `firth --debug …` shows the traceback)", trace)


def is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out: in Python, NumPy, Arrow, a kernel, or in torch, which has no common class."""
    in_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator: can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and in_torch)


def show_warning(message: Warning | str, category: type[Warning], *_: Any, **more: Any) -> None:
    """Print a FirthWarning as a note; other warnings are not shown."""
    if not issubclass(category, FirthWarning) or not is_first_process():
        return
    if wants_json():
        show_json({"event": "note", "code": getattr(message, "code", "note"), "text": str(message)})
    else:
        clear_line = "\r\x1b[2K" if sys.stderr.isatty() else ""  # over the progress bar
        click.echo(f"{clear_line}note: {message}", err=True)


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 110,
    # Hyphens and underscores are equivalent in options and choices.
    "token_normalize_func": lambda name: name.replace("_", "-"),
}


@click.command(cls=Firth, package="firth.cli", sections=SECTIONS, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="firth")
@click.option("--debug", is_flag=True, help="Show error codes, and the traceback of an unexpected error.")
def cli(debug: bool) -> None:
    """Turn text, tables, graphs and interactions into vectors, and query them.

    \b
      firth train skipgram text.txt -o model
      firth query neighbors model river

    Every command takes --json. `firth COMMAND --help` shows its options.
    """


def ensure_utf8() -> None:
    """Restart in Python's UTF-8 mode if file names are decoded as ASCII.

    Python enters that mode by itself in the C locale unless PYTHONUTF8=0 is set; then arguments and file names with
    other characters could not be read.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def main() -> None:
    """Run the command line; the entry point of the program `firth`."""
    ensure_utf8()
    # Set before torch is imported: idle threads sleep. Spinning is not faster, and twice as slow on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # independent of the locale
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a batch system's time limit leaves a checkpoint too
    try:
        cli(prog_name="firth")
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
