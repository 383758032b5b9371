"""A full disk: one clear error with the path, nothing left behind, and the same call succeeds with more space.

A small tmpfs is filled up to different levels, so that each write fails in turn. If no tmpfs can be mounted (no root),
the limit on the file size is used instead.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from breaking import Notes
from refusing import refuses

import firth
from firth import FirthError, Run
from firth.data import cooccurrence
from firth.data.tokens import read_tokens

PAGE = 4096


class Disk:
    """A file system with a limited number of pages and files."""

    def __init__(self, folder: Path, pages: int, files: int) -> None:
        self.folder, self.pages, self.files = folder, pages, files

    def reset(self) -> None:
        for path in self.folder.rglob("ballast*"):
            path.unlink()

    def leave(self, pages: int | None = None, files: int | None = None) -> None:
        """Fill the disk so that this number of pages or files is left."""
        status = os.statvfs(self.folder)
        if pages is not None:
            (self.folder / "ballast").write_bytes(bytes(PAGE * (status.f_bavail - pages)))
        for number in range(0 if files is None else status.f_ffree - files):
            (self.folder / f"ballast-{number}").touch()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    settings = f"size={256 * PAGE},nr_inodes=64"
    mounted = (
        subprocess.run(["mount", "-t", "tmpfs", "-o", settings, "tmpfs", str(folder)], check=False).returncode == 0
    )
    if not mounted:
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield Disk(folder, 256, 64)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"new york {n % 97} is w{n} big\n" for n in range(9000)))
    return path


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if not path.name.startswith("ballast"))


def each_shortage(disk: Disk, work: Callable[[], Any], pages: list[int], files: list[int]) -> int:
    """Call `work` with different amounts of free space; return the number of failures."""
    failed = 0
    before = file_names(disk.folder)
    for room in [{"pages": each} for each in pages] + [{"files": each} for each in files]:
        disk.leave(**room)
        try:
            work()
        except FirthError as error:
            failed += 1
            assert error.code == "unwritable_file" and "No space left" in error.values["reason"], error
            assert str(disk.folder) in str(error.values["path"])
            assert file_names(disk.folder) == before
        finally:
            disk.reset()
    return failed


@pytest.mark.parametrize("settings", [{}, {"phrases": 1}, {"memory": "1MB"}], ids=["plain", "phrases", "bounded"])
def test_full_disk_while_encoding(
    disk: Disk, text: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.setenv("FIRTH_CACHE", str(disk.folder / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    (disk.folder / "cache").mkdir()
    run = Run(report=Notes(), threads=1, memory=settings.get("memory", ""))
    phrases = settings.get("phrases", 0)
    seen = []

    def work() -> None:
        read_tokens(text, min_count=1, phrases=phrases, run=run)
        seen.append(file_names(disk.folder))
        for path in (disk.folder / "cache").iterdir():
            for file in path.iterdir():
                file.unlink()
            path.rmdir()

    assert each_shortage(disk, work, [0, 1, 2, 9, 30, 60, 90, 120, 150, 180, 210], list(range(9))) >= 8
    assert seen  # it succeeded with enough space
    work()


def test_full_disk_while_training(disk: Disk, text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Affects the lock, the record of the run, checkpoints and the model."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    run = Run(report=Notes(), threads=1)
    (disk.folder / "models").mkdir()

    def work() -> None:
        firth.train(firth.SkipGram(dim=4, epochs=1, min_count=50), text, disk.folder / "models/m", run=run)
        for path in [*(disk.folder / "models/m").iterdir(), disk.folder / "models/m"]:
            path.rmdir() if path.is_dir() else path.unlink()

    assert each_shortage(disk, work, [0, 1, 2, 3, 4, 8], list(range(9))) >= 8
    work()


def test_full_disk_while_counting_pairs(
    disk: Disk, text: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokens = read_tokens(text, min_count=50)
    monkeypatch.setenv("FIRTH_CACHE", str(disk.folder / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(disk.folder))
    (disk.folder / "cache").mkdir()
    run = Run(report=Notes(), threads=1)

    def work() -> None:
        cooccurrence.Cooccurrence.count(tokens, window=5, run=run)

    assert each_shortage(disk, work, [0, 1, 2, 9], list(range(4))) >= 3
    work()


COUNTS = """
import sys, tempfile, firth
from firth.documents import document_matrix as documents
tempfile.tempdir, documents.IN_MEMORY = sys.argv[2], 64
try:
    firth.Counts(min_count=1).fit(sys.argv[1])
except firth.FirthError as error:
    print(error.code)
"""


def test_full_disk_with_a_mapped_file_of_counts(disk: Disk, text: Path) -> None:
    """Writing to a mapped file without space on its disk would kill the process."""
    disk.leave(pages=9)
    done = subprocess.run([sys.executable, "-c", COUNTS, str(text), str(disk.folder)], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"unwritable_file\n")


@contextlib.contextmanager
def max_file_size(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 100, 5000, 60_000, 150_000])
@pytest.mark.parametrize("settings", [{}, {"phrases": 1}, {"memory": "1MB"}], ids=["plain", "phrases", "bounded"])
def test_file_size_limit_while_encoding(text: Path, cache: Path, settings: dict[str, Any], size: int) -> None:
    run = Run(report=Notes(), threads=1, memory=settings.get("memory", ""))
    with refuses("unwritable_file") as caught, max_file_size(size):
        read_tokens(text, min_count=1, phrases=settings.get("phrases", 0), run=run)
    assert str(cache) in str(caught.value.values["path"])
    assert list(cache.iterdir()) == []
    assert len(read_tokens(text, min_count=1, phrases=settings.get("phrases", 0), run=run)) == 9000
