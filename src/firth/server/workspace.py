"""Files of the workbench: data under its root folder, uploaded files, and models that it trained.

Requests name files by short names, which are resolved to paths only here.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.storage import CONFIG, new_file
from firth.core.train import UNFINISHED
from firth.data.readers import COMPRESSIONS, RECORDS, format_and_compression
from firth.index.folder import MANIFEST
from firth.server.errors import RequestError
from firth.server.jobs import Jobs
from firth.server.models import Models
from firth.server.settings import Settings

TEXTS = (".txt", ".text", ".md", ".log", ".rst")
MAX_FILES = 1000  # data files that are listed
MAX_ENTRIES = 20_000  # directory entries that are visited to find them
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Workspace:
    """The files of the workbench. `root` is the folder of --root; without it, files are deleted with the server."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self.root = None if settings.root is None else settings.root.resolve()
        self.models, self.jobs = models, Jobs()
        self._made = tempfile.TemporaryDirectory(prefix="firth-studio-")  # deleted with this object
        self.temporary = Path(self._made.name).resolve()
        self.spaces: dict[str, Any] = {}  # the spaces of maps, by name

    def sources(self) -> list[dict[str, Any]]:
        """Return the data files: uploaded and generated ones, or with a root, those under it."""
        sources = [describe("here", path, self.temporary) for path in sorted(self.temporary.iterdir()) if is_data(path)]
        if self.root is not None:
            sources += [describe("root", path, self.root) for path in data_files(self.root)]
        return sources

    def source(self, name: str) -> Path:
        """Return the path of a data file by its name in `sources`. Paths outside the two folders are refused."""
        where, _, rest = name.partition("/")
        base = {"here": self.temporary, "root": self.root}.get(where)
        parts = Path(rest).parts
        if base is None or not parts or "\0" in rest or any(part.startswith((".", "/", "~")) for part in parts):
            raise unknown_source(name)
        try:
            path = (base / rest).resolve(strict=True)
        except (OSError, RuntimeError):
            raise unknown_source(name) from None
        if not path.is_relative_to(base) or not path.is_file() or not is_data(path):
            raise unknown_source(name)
        return path

    def drop(self, name: str, content: bytes) -> dict[str, Any]:
        """Store an uploaded file under its name, or a similar one if that is taken; with a root, it is kept there."""
        file_name = re.sub(r"[^\w.-]+", "-", Path(name.replace("\\", "/")).name).lstrip(".-")[:80]
        if not file_name or not is_data(Path(file_name)):
            suffixes = ", ".join((*TEXTS[:3], *RECORDS))
            raise FirthError(
                "unknown_format",
                "Data files must be {suffixes}, optionally compressed; got {got!r}.",
                suffixes=suffixes,
                got=name[:80],
            )
        if not content:
            raise FirthError("empty_data", "{name} is empty.", name=file_name)
        where, folder = ("here", self.temporary) if self.root is None else ("root", self.root)
        path, number = folder / file_name, 2
        while os.path.lexists(path) and not is_same(path, content):
            stem, _, rest = file_name.partition(".")
            path, number = folder / f"{stem}-{number}.{rest}", number + 1
        if not path.exists():
            with new_file(path) as work:
                work.write_bytes(content)
        return describe(where, path, folder)

    def inside(self, name: str, option: str) -> Path:
        """Return the path that an option of a job names, relative to the root. Paths outside are refused."""
        path = ((self.root or self.temporary) / name).resolve()
        if not any(path.is_relative_to(base) for base in (self.root, self.temporary) if base is not None):
            where = "an uploaded file" if self.root is None else "a path under --root"
            raise RequestError(403, f"{option} must be {where}; got {name[:80]!r}.", kind="forbidden", field=option)
        return path

    def output(self, name: str, resumes: bool = False) -> Path:
        """Return the path of a new model, index or corpus. Existing files are never replaced, but with `resumes` an
        unfinished run can be resumed."""
        if not NAME.fullmatch(name):
            raise FirthError(
                "invalid_value",
                "A name must consist of letters, digits, dots, dashes and underscores; got {got!r}.",
                got=name[:80],
            )
        path = (self.root or self.temporary) / name
        unfinished = resumes and (path / UNFINISHED).is_dir() and not (path / CONFIG).exists()
        if os.path.lexists(path) and not unfinished:
            raise name_taken(path)
        return path

    def source_name(self, path: Path) -> str:
        """Return the name of a data file, as `source` accepts it."""
        return f"root/{path.relative_to(self.root)}" if self.root is not None else f"here/{path.name}"


def is_same(path: Path, content: bytes) -> bool:
    """Return whether a path is a regular file with this content."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def name_taken(path: Path) -> RequestError:
    """Return the error for a file that exists."""
    return RequestError(409, f"{path.name} exists and is not replaced; choose another name.", code="output_exists")


def unknown_source(name: str) -> RequestError:
    """Return the error for an unknown data file."""
    return RequestError(404, f"There is no data file {name[:80]!r}.")


def is_data(path: Path) -> bool:
    """Return whether a file is in a format that can be read."""
    form, compression = format_and_compression(path)
    plain = Path(path.stem) if compression else path
    return not path.name.startswith(".") and (form in RECORDS or plain.suffix.lower() in TEXTS)


def folders_under(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder with its sorted file names, without hidden folders and the insides of models."""
    seen = 0
    for folder, folders, files in os.walk(root):
        is_artifact = CONFIG in files or MANIFEST in files
        folders[:] = (
            [] if is_artifact else sorted(name for name in folders if not name.startswith((".", "node_modules")))
        )
        yield Path(folder), sorted(files)
        seen += len(files) + len(folders)
        if seen >= MAX_ENTRIES:
            return


def data_files(root: Path) -> list[Path]:
    """Return the data files under the root in the order of their names, without those of models and indexes."""
    paths: list[Path] = []
    for folder, files in folders_under(root):
        if not {CONFIG, MANIFEST} & {*files}:
            paths += [path for name in files if is_data(path := folder / name)]
        if len(paths) >= MAX_FILES:
            break
    return paths[:MAX_FILES]


def describe(where: str, path: Path, base: Path) -> dict[str, Any]:
    """Describe a data file."""
    form, compression = format_and_compression(path)
    return {
        "id": f"{where}/{path.relative_to(base).as_posix()}",
        "name": path.relative_to(base).as_posix(),
        "where": where,
        "path": str(path),
        "bytes": path.stat().st_size,
        "records": form in RECORDS,
        "compressed": compression in COMPRESSIONS,
    }
