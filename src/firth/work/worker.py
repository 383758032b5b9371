"""What a worker does: it computes shards from requests, which are JSON, and answers in JSON.

`python -m firth.work.worker` reads one request per line from standard input and answers one line each, after lines with
the share that is computed. Ray calls `answer` in its own processes. The worker stops at once when its input ends, which
is when its driver stops or dies.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import queue
import signal
import socket
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError, FirthWarning
from firth.core.remote import AnyPath, RemotePath, as_path
from firth.core.storage import new_file, saying_where, sync, temporary
from firth.version import __version__

Counts = dict[str, int]

RECORDS = ".shards"  # in the folder of the results: the record of each finished shard, and unfinished files


def python_version() -> str:
    """Return the version of Python without its patch level, as in 3.11."""
    return ".".join(platform.python_version_tuple()[:2])


def record_path(folder: AnyPath, name: str) -> AnyPath:
    """Return the path of a shard's record."""
    return folder / RECORDS / f"{name}.json"


def tell(share: float) -> None:
    """Report which share of the current shard is computed, for the progress of the job."""
    for receiver in receivers:
        receiver(share)


receivers: list[Callable[[float], None]] = []  # of the shares: the executor, where it can be reached


def answer(line: str) -> str:
    """Compute the shard of a request, and return its counts and notes, or its error."""
    request = json.loads(line)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FirthWarning)
        try:
            check_versions(request)
            if "check" in request:
                check_files(**request["check"])
                result: dict[str, Any] = {}
            else:
                if request["threads"]:
                    os.environ["FIRTH_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(request["threads"])
                result = {"counts": compute(request)}
        except FirthError as error:
            result = {"error": {"code": error.code, "message": str(error), "values": error.values}}
        except MemoryError as error:
            message = f"not enough memory on {socket.gethostname()} ({error})."
            result = {"error": {"code": "out_of_memory", "message": message, "values": {}}}
        except OSError as error:
            message = f"{error.filename or ''}: {error.strerror or error} (on {socket.gethostname()})."
            result = {"error": {"code": "operating_system", "message": message, "values": {"errno": error.errno}}}
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            result = {"error": {"message": f"{type(error).__name__}: {error}", "trace": trace}}
    notes = [(each.message.code, str(each.message)) for each in caught if isinstance(each.message, FirthWarning)]
    return json.dumps({**result, "notes": notes}, default=str)


def check_versions(request: Mapping[str, Any]) -> None:
    """Refuse work of a driver with another version of Firth or Python."""
    here = {"firth": __version__, "python": python_version()}
    for name, version in here.items():
        if request[name] != version:
            raise FirthError(
                "version_mismatch",
                "The worker on {host} has {name} {version}, but the driver has {expected}. Install the same versions.",
                host=socket.gethostname(),
                name={"firth": "Firth", "python": "Python"}[name],
                version=version,
                expected=request[name],
            )


def check_files(probe: str, token: str, inputs: Mapping[str, int]) -> None:
    """Check that this machine sees the inputs, with their sizes, and what the driver wrote into the output folder."""
    for name, size in inputs.items():
        path = as_path(name)
        size_here = path.stat().st_size if path.is_file() else None
        if size_here != size:
            raise invisible(path, f"{size:,} bytes", "no file" if size_here is None else f"{size_here:,} bytes")
    shown = as_path(probe)
    if not shown.is_file() or shown.read_text() != token:
        raise invisible(shown.parent.parent, "the driver's files", "none")
    if isinstance(shown, RemotePath):
        shown.check_writable()
    else:
        with saying_where(shown.parent), tempfile.TemporaryFile(dir=shown.parent):
            pass


def enter(directory: str) -> None:
    """Make the driver's current folder that of this process, for relative paths."""
    if not Path(directory).is_dir():
        raise invisible(Path(directory), "a folder", "none")
    os.chdir(directory)


def invisible(path: AnyPath, expected: str, got: str) -> FirthError:
    """Return the error for a path that a worker does not see as the driver does."""
    return FirthError(
        "not_shared",
        "{path} is not the same on {host}: expected {expected}, found {got}. All machines must see the input and the "
        "output under the same path: use a shared file system or object storage.",
        path=path,
        host=socket.gethostname(),
        expected=expected,
        got=got,
    )


def compute(request: Mapping[str, Any]) -> Counts:
    """Run the function of a request in a temporary folder, move its files to the results, and record them.

    Results at a URL are computed in a temporary folder of this machine; the record is uploaded last.
    """
    module, _, name = request["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    folder = as_path(request["folder"])
    remote = isinstance(folder, RemotePath)
    here = Path(tempfile.gettempdir(), "firth") if remote else folder / RECORDS / request["name"]
    with temporary(here, tempfile.mkdtemp) as work:
        counts: Counts = dict(function(request["common"], request["parameters"], work) or {})
        with saying_where(folder):
            sizes = move_files(work, folder, request["durable"])
        if request["durable"]:
            with new_file(record_path(folder, request["name"])) as path:
                path.write_text(json.dumps({"key": request["key"], "files": sizes, "counts": counts}))
    return counts


def move_files(work: Path, folder: AnyPath, durable: bool) -> dict[str, int]:
    """Move finished files to the folder of the results, and return their sizes."""
    sizes = {}
    for path in sorted(work.iterdir()):
        sizes[path.name] = path.stat().st_size
        if isinstance(folder, RemotePath):
            (folder / path.name).upload(path)
            continue
        if durable:
            sync(path)
        path.replace(folder / path.name)
    if durable and isinstance(folder, Path):
        sync(folder)
    return sizes


def main() -> None:
    """Answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the driver stops us
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what functions print must not mix with the answers

    def write(text: str) -> None:
        out.write(text + "\n")
        out.flush()

    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)  # the driver has ended: what is computed now is of no use

    receivers.append(lambda share: write(json.dumps({"share": share})))
    threading.Thread(target=read, daemon=True).start()
    while True:
        write(answer(lines.get()))


if __name__ == "__main__":
    importlib.import_module("firth.work.worker").main()  # the module whose `tell` functions import
