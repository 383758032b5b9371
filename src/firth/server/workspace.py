"""What the workbench reads and writes: data under the folder it was given, files dropped on it, models it trained.

Requests name files by short names; where these lie is decided here.
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
from firth.data.readers import COMPRESSIONS, RECORDS, kind_of
from firth.index.folder import MANIFEST
from firth.server.errors import RequestError
from firth.server.jobs import Jobs
from firth.server.models import Models
from firth.server.settings import Settings

TEXTS = (".txt", ".text", ".md", ".log", ".rst")
MAX_FILES = 1000  # files shown of a folder
MAX_ENTRIES = 20_000  # entries looked at to find them
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Workspace:
    """`root` is what --root named; without it, what is made here is gone with the server."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self.root = None if settings.root is None else settings.root.resolve()
        self.models, self.jobs = models, Jobs()
        self._made = tempfile.TemporaryDirectory(prefix="firth-studio-")  # gone with this object
        self.temporary = Path(self._made.name).resolve()
        self.spaces: dict[str, Any] = {}  # what maps are drawn of, by its name

    def sources(self) -> list[dict[str, Any]]:
        """Files of data: first what was dropped or made here, then what lies under the root."""
        sources = [describe("here", path, self.temporary) for path in sorted(self.temporary.iterdir()) if is_data(path)]
        if self.root is not None:
            sources += [describe("root", path, self.root) for path in data_files(self.root)]
        return sources

    def source(self, name: str) -> Path:
        """The file that `sources` calls so. Nothing outside the two folders can be named, by whatever detour."""
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
        """Keeps a file that was dropped on the page, under its own name or one like it."""
        file_name = re.sub(r"[^\w.-]+", "-", Path(name.replace("\\", "/")).name).lstrip(".-")[:80]
        if not file_name or not is_data(Path(file_name)):
            suffixes = ", ".join((*TEXTS[:3], *RECORDS))
            raise FirthError(
                "unknown_format",
                "Data is a file of {kinds}, also compressed; got {got!r}.",
                suffixes=suffixes,
                got=name[:80],
            )
        if not content:
            raise FirthError("empty_data", "{plain} is empty.", file_name=file_name)
        path, number = self.temporary / file_name, 2
        while path.exists() and path.read_bytes() != content:
            stem, _, rest = file_name.partition(".")
            path, number = self.temporary / f"{stem}-{number}.{rest}", number + 1
        with new_file(path) as work:
            work.write_bytes(content)
        return describe("here", path, self.temporary)

    def inside(self, name: str, option: str) -> Path:
        """The file or folder that an option of a job names, from the root on; nothing outside, by whatever detour."""
        path = ((self.root or self.temporary) / name).resolve()
        if not any(path.is_relative_to(base) for base in (self.root, self.temporary) if base is not None):
            where = "dropped here" if self.root is None else "under --root"
            raise RequestError(
                403, f"{option} must name something {where}; got {name[:80]!r}.", kind="forbidden", field=option
            )
        return path

    def output(self, name: str, resumes: bool = False) -> Path:
        """Where a new model, index or corpus of this name goes. What is there stays; `resumes` goes on with a run that
        was not finished."""
        if not NAME.fullmatch(name):
            raise FirthError(
                "invalid_value", "A name has letters, digits, dots, dashes and underscores; got {got!r}.", got=name[:80]
            )
        path = (self.root or self.temporary) / name
        unfinished = resumes and (path / UNFINISHED).is_dir() and not (path / CONFIG).exists()
        if os.path.lexists(path) and not unfinished:
            raise name_taken(path)
        return path

    def source_name(self, path: Path) -> str:
        """The inverse of `source`."""
        return f"root/{path.relative_to(self.root)}" if self.root is not None else f"here/{path.name}"


def name_taken(path: Path) -> RequestError:
    return RequestError(
        409, f"{path.name} exists already and is not replaced; give another name.", code="output_exists"
    )


def unknown_source(name: str) -> RequestError:
    return RequestError(404, f"There is no data {name[:80]!r} here.")


def is_data(path: Path) -> bool:
    form, compression = kind_of(path)
    plain = Path(path.stem) if compression else path
    return not path.name.startswith(".") and (form in RECORDS or plain.suffix.lower() in TEXTS)


def folders_under(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each folder with the names of its files, in order; without what is hidden and what models are made of."""
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
    """In the order of their names, without what is hidden and what models and indexes are made of."""
    paths: list[Path] = []
    for folder, files in folders_under(root):
        if not {CONFIG, MANIFEST} & {*files}:
            paths += [path for name in files if is_data(path := folder / name)]
        if len(paths) >= MAX_FILES:
            break
    return paths[:MAX_FILES]


def describe(where: str, path: Path, base: Path) -> dict[str, Any]:
    form, compression = kind_of(path)
    return {
        "id": f"{where}/{path.relative_to(base).as_posix()}",
        "name": path.relative_to(base).as_posix(),
        "where": where,
        "path": str(path),
        "bytes": path.stat().st_size,
        "records": form in RECORDS,
        "compressed": compression in COMPRESSIONS,
    }
