"""Folders and files at URLs as local copies: fetched into the cache, and uploaded when they are complete.

A store has no rename of folders, so the manifest commits: files are uploaded first and config.json, which has their
sizes and hashes, last. Fetching checks the files against it and is repeated until they fit, so that it gives the old
model or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.remote import AHEAD, RemotePath, as_path

CACHE = "firth.data.cache"  # imported by name, because it depends on packages above core
MANIFESTS = ("config.json", "index.json")
MAPS = "maps/"
ATTEMPTS, WAIT = 20, 0.5  # to fetch a folder that is being replaced, and the seconds between


@contextlib.contextmanager
def local_copy(source: str | os.PathLike[str] | RemotePath) -> Iterator[Path]:
    """Yield the path itself, or for a URL the path of a copy in the cache; errors of the block name the URL."""
    path = as_path(source)
    if isinstance(path, Path):
        yield path
        return
    local = fetched(path)
    try:
        yield local
    except FirthError as error:
        raise error._renaming(str(local), path.url) from error


def local_path(source: str | os.PathLike[str] | RemotePath) -> Path:
    """Return the path itself, or for a URL the path of a copy in the cache."""
    path = as_path(source)
    return path if isinstance(path, Path) else fetched(path)


# ---- fetching ----


def fetched(source: RemotePath) -> Path:
    """Return the local copy of a folder or file, from the cache if it has this version."""
    problem: FirthError | None = None
    versions: dict[str, str] | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT)
        try:
            before, versions = versions, versions_of(source)
            if versions != before:  # the same versions would not fit again
                return fetched_version(source, versions)
        except FirthError as error:
            passing = ("locked", "hash_mismatch") if problem is None else ("locked", "hash_mismatch", "not_found")
            if error.code not in passing:
                raise
            problem = error
    assert problem is not None
    raise problem


def fetched_version(source: RemotePath, versions: Mapping[str, str]) -> Path:
    """Return the local copy of these versions of the files; raises "locked" if they are replaced meanwhile."""
    cache = importlib.import_module(CACHE)
    name = cache.entry_name("remote", source.url, versions)
    entry = cache.find_entry(name)
    if entry is None:
        with cache.working_folder() as (work, cached):
            if not cached:
                raise FirthError(
                    "unwritable_file",
                    "{url} must be copied to the cache folder {folder}, which is not writable. Set FIRTH_CACHE to "
                    "another folder.",
                    url=source.url,
                    folder=cache.cache_folder(),
                )
            check_sizes(source, versions)
            download(source, versions, work / source.name)
            if versions_of(source) != versions:
                raise changing(source)
            cache.write_entry(name, work, {"url": source.url})
        entry = cache.find_entry(name)
    if entry is None:  # another process removed it from the cache
        raise changing(source)
    folder: Path = entry[0]
    return folder / source.name


def changing(source: RemotePath) -> FirthError:
    """Return the error for a folder that changed during every attempt to fetch it."""
    return FirthError("locked", "{folder} is being replaced repeatedly. Try again later.", folder=source.url)


def versions_of(source: RemotePath) -> dict[str, str]:
    """The version of each file of a folder by its name, without hidden ones; of a file, that of the file itself."""
    about = source.information()
    if about.kind == "file":
        keys = source.with_name(source.name.removesuffix(".npy") + ".keys.json")
        beside = [keys] if source.suffix == ".npy" and keys.is_file() else []  # belongs to the matrix
        return {path.name: path.version() for path in (source, *beside)}
    names = {path.relative_to(source).as_posix(): path for path in source.rglob("*") if path.is_file()}
    shown = {name: path for name, path in names.items() if not any(part.startswith(".") for part in name.split("/"))}
    if not shown:
        raise FirthError("not_found", "There is no file or folder {url}.", url=source.url)
    return {name: path.version() for name, path in sorted(shown.items())}


def file_at(source: RemotePath, name: str, versions: Mapping[str, str]) -> RemotePath:
    """Return the path of a listed file: inside a folder, or beside a single file."""
    return source.with_name(name) if source.name in versions else source / name


def check_sizes(source: RemotePath, versions: Mapping[str, str]) -> None:
    """Compare the sizes with config.json before anything large is fetched."""
    listed = listed_files(source) if "config.json" in versions else {}
    for name, entry in listed.items():
        if name in versions and versions[name].split()[0] != str(entry.get("bytes")):
            raise mismatch(source, name)


def listed_files(folder: RemotePath) -> dict[str, Any]:
    """The files that the config.json of a model lists; none if another library wrote it."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        files = config["files"]
        return {name: entry for name, entry in files.items() if isinstance(entry, dict)}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, FirthError) and error.code != "not_found":
            raise
        return {}


def mismatch(source: RemotePath, name: str) -> FirthError:
    """Return the error for a file whose hash is not the one in config.json."""
    return FirthError(
        "hash_mismatch",
        "{path} does not match config.json: the model is being replaced, its upload was interrupted, or it is damaged. "
        "Try again when the upload has ended, or save the model again.",
        path=f"{source}/{name}",
    )


def download(source: RemotePath, versions: Mapping[str, str], target: Path) -> None:
    """Copy the files, and compare those that config.json lists with their hashes."""
    hashes = {}
    for name in versions:
        path = target.parent / name if source.name in versions else target / name
        if ".." in path.parts:
            raise FirthError(
                "wrong_input",
                "{url} has a file named {name}, which cannot be copied into a folder. Rename it.",
                url=source.url,
                name=name,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with file_at(source, name, versions).open("rb", buffering=0) as remote, path.open("wb") as file:
            while block := remote.read(AHEAD):
                digest.update(block)
                file.write(block)
        hashes[name] = digest.hexdigest()
    config = target / "config.json"
    document = json_of(config) if config.is_file() else None
    files = document.get("files") if isinstance(document, dict) else None
    for name, entry in (files if isinstance(files, dict) else {}).items():
        if name in hashes and isinstance(entry, dict) and entry.get("sha256") != hashes[name]:
            raise mismatch(source, name)


def json_of(path: Path) -> Any:
    """The content of a JSON file; None if it is not valid, which is reported when the folder is opened."""
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


# ---- uploading ----


@contextlib.contextmanager
def uploaded_folder(target: RemotePath) -> Iterator[Path]:
    """Yield a local folder whose files are uploaded at the end of the block: manifests last.

    Files of a model that was there are replaced or removed; other files stay.
    """
    (target / "config.json").check_writable()
    with tempfile.TemporaryDirectory(prefix="firth-") as name:
        work = Path(name, "folder")
        work.mkdir()
        yield work
        upload_folder(work, target)


def upload_folder(work: Path, target: RemotePath) -> None:
    """Upload the files of a folder, manifests last."""
    before = {*listed_files(target), *(f"{MAPS}{path.name}" for path in (target / MAPS.rstrip("/")).iterdir())}
    files = sorted(path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file())
    for name in sorted(files, key=lambda name: name in MANIFESTS):
        (target / name).upload(work / name)
    for name in sorted(before - set(files)):
        if (target / name).is_file():
            (target / name).unlink()


@contextlib.contextmanager
def uploaded_file(target: RemotePath) -> Iterator[Path]:
    """Yield a local path whose file is uploaded at the end of the block, with others beside it first."""
    target.check_writable()
    with tempfile.TemporaryDirectory(prefix="firth-") as name:
        work = Path(name, target.name)
        yield work
        files = [path for path in work.parent.iterdir() if not path.name.startswith(".")]
        for path in sorted(files, key=lambda path: path == work):
            target.with_name(path.name).upload(path)
