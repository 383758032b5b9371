"""Paths that are URLs: objects in S3 (through pyarrow.fs), and other schemes through the package fsspec.

Readers take a `Path` or a `RemotePath`, which has the same methods for what they need. S3 finds credentials, region and
endpoint in the usual places: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL, ….
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import secrets
import urllib.parse
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.remote_stores import REASONS, explained, filesystem_of

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # two letters at least: c:// is a drive
MAGIC = "*?["
AHEAD = 8 << 20  # bytes per request where a file is read from its beginning to its end
#: Uploads that failed halfway. They are never closed, which would complete them with a part of the file; what is not
#: completed is not visible.
ABANDONED: list[Any] = []


def is_url(source: object) -> bool:
    """Whether a source is a URL, such as s3://bucket/folder, rather than a path of this machine."""
    return isinstance(source, RemotePath) or (
        isinstance(source, str) and bool(URL.match(source)) and not source.startswith("file://")
    )


def as_path(source: str | os.PathLike[str] | RemotePath) -> Path | RemotePath:
    """Return a source as a path: a `RemotePath` for a URL, otherwise a `Path`; file:// is this machine."""
    if isinstance(source, RemotePath):
        return source
    if isinstance(source, str) and source.startswith("file://"):
        return Path(urllib.parse.unquote(urllib.parse.urlsplit(source).path))
    return RemotePath(source) if isinstance(source, str) and is_url(source) else Path(source)


def refuse_url(path: Path) -> None:
    """Refuse a URL that became a path of this machine, where only a folder or file of this machine will do."""
    scheme, _, rest = str(path).partition(":/")
    if rest and URL.fullmatch(f"{scheme}://"):
        raise FirthError(
            "unsafe_output",
            "{url} is a URL, but this output must be a local path, because it is locked, resumed or appended to while "
            "it is written. Write it locally, and copy it when it is finished.",
            url=f"{scheme}://{rest}",
        )


class Information(NamedTuple):
    """What a listing says of a path: "file", "folder" or "" (nothing), and the size in bytes."""

    kind: str
    size: int = 0


class Status(NamedTuple):
    """The size of a file, as in os.stat_result."""

    st_size: int


class RemotePath:
    """A file or folder at a URL, with the methods of `pathlib.Path` that readers use. It can be pickled.

    What a listing says about a path is kept, so that reading thousands of files needs no request for each.
    """

    __slots__ = ("_known", "url")

    def __init__(self, url: str, known: Information | None = None) -> None:
        head = URL.match(url)
        assert head is not None, url
        self.url = head.group() + url[head.end() :].rstrip("/")
        self._known = known

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemotePath({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.url == other.url

    def __lt__(self, other: RemotePath) -> bool:
        return self.pure.parts < other.pure.parts  # as of paths

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath, (self.url, self._known)

    # ---- names ----

    @property
    def scheme(self) -> str:
        """The scheme in lower case, such as s3."""
        return self.url.partition("://")[0].lower()

    @property
    def pure(self) -> PurePosixPath:
        """The part after the scheme."""
        return PurePosixPath("/" + self.url.partition("://")[2])

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The last suffix of the name, as of a Path."""
        return self.pure.suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name, as of a Path."""
        return self.pure.suffixes

    @property
    def stem(self) -> str:
        """The name without its last suffix, as of a Path."""
        return self.pure.stem

    @property
    def parent(self) -> RemotePath:
        """The folder of the file."""
        head, _, rest = self.url.partition("://")
        return RemotePath(f"{head}://{rest.rpartition('/')[0] or rest}")

    def __truediv__(self, name: object) -> RemotePath:
        return RemotePath(f"{self.url}/{name}")

    def with_name(self, name: str) -> RemotePath:
        """Return a file or folder beside this one."""
        return self.parent / name

    def relative_to(self, folder: RemotePath) -> PurePosixPath:
        """Return the path within a folder."""
        return self.pure.relative_to(folder.pure)

    def absolute(self) -> RemotePath:
        """Return the path itself: URLs do not depend on the working folder."""
        return self

    def expanduser(self) -> RemotePath:
        """Return the path itself: URLs have no home folder."""
        return self

    # ---- what is there ----

    @property
    def location(self) -> tuple[Any, str]:
        """The file system and the path in it."""
        return filesystem_of(self.url)

    def information(self) -> Information:
        """Ask what is at this URL, unless a listing said so."""
        if self._known is not None:
            return self._known
        with explained(self):
            filesystem, path = self.location
            refresh(filesystem)
            about = information_of(filesystem.get_file_info(path))
        if not about.kind and self.scheme == "s3":
            check_bucket(self, filesystem)
        return about

    def exists(self) -> bool:
        """Return whether there is a file or folder."""
        return self.information().kind != ""

    def is_file(self) -> bool:
        """Return whether there is a file."""
        return self.information().kind == "file"

    def is_dir(self) -> bool:
        """Return whether there is a folder."""
        return self.information().kind == "folder"

    def stat(self) -> Status:
        """Return the size of the file."""
        return Status(self.information().size)

    def version(self) -> str:
        """Identify the content of a file without reading it: its size and ETag, or what else the store knows of it."""
        with explained(self):
            filesystem, path = self.location
            if self.scheme == "s3":
                with filesystem.open_input_stream(path, compression=None) as file:
                    about = {name: value.decode() for name, value in file.metadata().items()}
                return f"{about['Content-Length']} {about.get('ETag') or about.get('Last-Modified')}"
            refresh(filesystem)
            store = filesystem.handler.fs
            about = store.info(path)
            return f"{about.get('size')} {about.get('ETag') or store.ukey(path)}"

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files and folders of this folder, in sorted order."""
        yield from self._list(recursive=False)

    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """All files and folders below this one; the only pattern is "*"."""
        assert pattern == "*"
        yield from self._list(recursive=True)

    def _list(self, recursive: bool) -> list[RemotePath]:
        from pyarrow.fs import FileSelector

        with explained(self):
            filesystem, path = self.location
            refresh(filesystem)
            listed = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        names = ((info.path.rstrip("/")[len(path.rstrip("/")) + 1 :], information_of(info)) for info in listed)
        return sorted(RemotePath(f"{self.url}/{name}", known) for name, known in names if name)

    def matches(self) -> list[RemotePath]:
        """The files that match this path as a glob, in sorted order."""
        parts = self.url.split("/")
        first = next(number for number, part in enumerate(parts) if any(sign in part for sign in MAGIC))
        if first < 3:
            raise FirthError("wrong_input", "{url}: the name of a bucket cannot be a pattern.", url=self.url)
        folder, pattern = RemotePath("/".join(parts[:first])), "/".join(parts[first:])
        fits = re.compile(pattern_of(pattern))
        below = folder._list(recursive="/" in pattern or "**" in pattern)
        names = {path.url[len(folder.url) + 1 :]: path for path in below if path.is_file()}
        return [names[name] for name in sorted(names) if fits.fullmatch(name)]

    # ---- reading and writing ----

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open for reading in binary mode. Unbuffered, each read is one range request."""
        assert mode == "rb", mode
        with explained(self):
            filesystem, path = self.location
            refresh(filesystem)
            file = RemoteFile(self, filesystem.open_input_file(path))
        return file if buffering == 0 else io.BufferedReader(file, AHEAD)

    def read_bytes(self) -> bytes:
        """Return the content."""
        with self.open() as file:
            return bytes(file.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """The text, with line ends as \\n."""
        with io.TextIOWrapper(self.open(), encoding=encoding) as file:
            return file.read()

    def fingerprint(self) -> dict[str, Any]:
        """Size and sha256 of the content."""
        digest, size = hashlib.sha256(), 0
        with self.open() as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
        return {"bytes": size, "sha256": digest.hexdigest()}

    def upload(self, local: Path) -> None:
        """Write the content of a local file. Others see the old file or the new one, never a part of it."""
        with explained(self, writing=True):
            filesystem, path = self.location
            make_parents(filesystem, path, self.scheme)
            with local.open("rb") as source:
                target = filesystem.open_output_stream(path, compression=None)
                try:
                    while block := source.read(AHEAD):
                        target.write(block)
                except BaseException:
                    ABANDONED.append(target)
                    raise
            target.close()

    def unlink(self) -> None:
        """Delete the file."""
        with explained(self, writing=True):
            filesystem, path = self.location
            filesystem.delete_file(path)

    def check_writable(self) -> None:
        """Raise the error that writing here would raise, by writing a file of no bytes beside it and deleting it."""
        probe = self.parent / f".firth-{secrets.token_hex(6)}"
        with explained(self, writing=True):
            filesystem, path = probe.location
            make_parents(filesystem, path, self.scheme)
            filesystem.open_output_stream(path, compression=None).close()
            filesystem.delete_file(path)


class RemoteFile(io.RawIOBase):
    """An open file at a URL. Errors on the way name the URL."""

    def __init__(self, path: RemotePath, file: Any) -> None:
        self.path, self.file, self.size = path, file, int(file.size())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self.file.tell())

    def seek(self, offset: int, whence: int = 0) -> int:
        begin = (0, self.tell(), self.size)[whence]
        self.file.seek(begin + offset)
        return begin + offset

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer."""
        with explained(self.path):
            data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        with explained(self.path):
            return bytes(self.file.read())

    def close(self) -> None:
        if not self.closed:
            self.file.close()
        super().close()


def information_of(info: Any) -> Information:
    """Return what a pyarrow FileInfo says."""
    kind = {"File": "file", "Directory": "folder"}.get(info.type.name, "")
    return Information(kind, int(info.size or 0) if kind == "file" else 0)


def pattern_of(glob: str) -> str:
    """Return the regular expression of a glob, in which ** stands for any number of folders, and * for no hidden
    name, as in the module glob."""
    parts = []
    for part in glob.split("/"):
        if part == "**":
            parts.append("(?:(?!\\.)[^/]+/)*")
            continue
        signs = {"*": "[^/]*", "?": "[^/]"}
        pieces = re.split(r"(\*|\?|\[!?\]?[^\]/]*\])", part)  # every second is a sign
        texts = [signs.get(each) or each.replace("[!", "[^", 1) for each in pieces[1::2]]
        plain = [re.escape(each) for each in pieces[::2]]
        text = "".join(each for pair in zip_longest(plain, texts, fillvalue="") for each in pair)
        hidden = "" if part.startswith(".") else "(?!\\.)"
        parts.append(f"{hidden}{text}/")
    return "".join(parts).removesuffix("/") if glob.split("/")[-1] != "**" else "".join(parts) + "(?!\\.)[^/]*"


def check_bucket(path: RemotePath, filesystem: Any) -> None:
    """Refuse a bucket that does not exist."""
    bucket = path.pure.parts[1]
    with contextlib.suppress(OSError):  # reading files may be allowed where asking for the bucket is not
        if not information_of(filesystem.get_file_info(bucket)).kind:
            raise FirthError("not_found", "{path}: {reason}.", path=path.url, reason=REASONS["NO_SUCH_BUCKET"](path))


def refresh(filesystem: Any) -> None:
    """Clear the listings that a store of fsspec caches."""
    store = getattr(getattr(filesystem, "handler", None), "fs", None)
    if store is not None:
        store.invalidate_cache()


def make_parents(filesystem: Any, path: str, scheme: str) -> None:
    """Create the folder of a file; in S3 there are none."""
    if scheme != "s3" and "/" in path.strip("/"):
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)


AnyPath = Path | RemotePath
