"""Model folders: whole or not there at all, and checked before they are believed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from refusing import refuses

import firth
from firth import Method, Model, Run, option
from firth.core import registry, storage
from firth.core.errors import FirthError
from firth.core.model import Parts
from firth.core.saved import verify
from firth.core.storage import new_file, new_folder, saying_which, write_arrays


class Means(Model):
    """A model as small as one can be: an array and a document."""

    def __init__(self, method: Method, means: np.ndarray, names: list[str], training: Mapping[str, Any]) -> None:
        self.method, self.means, self.names, self.training = method, means, names, training

    def parts(self) -> Parts:
        return Parts({"means": self.means}, {"names": self.names})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Means:
        return cls(method, parts.arrays["means"], parts.documents["names"], training)


@dataclass(frozen=True, kw_only=True)
class Averaging(Method):
    model: ClassVar[type[Model]] = Means
    summary: ClassVar[str] = "the mean of each column"
    power: float = option(1.0, "numbers are raised to it", low=0)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Means:
        matrix = np.asarray(data, dtype=np.float64) ** self.power
        return Means(self, matrix.mean(axis=0), [f"column {i}" for i in range(matrix.shape[1])], {"rows": len(matrix)})


@pytest.fixture(autouse=True)
def averaging_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "method_classes", lambda: {"averaging": f"{__name__}:Averaging"})


def model() -> Means:
    return Averaging(power=2.0).fit([[1, 2], [3, 4]])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_model_comes_back(tmp_path: Path) -> None:
    folder = model().save(tmp_path / "deep" / "model")
    found = firth.load(folder, Averaging)
    assert found.method == Averaging(power=2.0)
    assert found.means.tolist() == [5, 10] and found.names == ["column 0", "column 1"]
    assert found.training == {"rows": 2}
    assert isinstance(found.means, np.memmap)
    assert sorted(contents(folder)) == [
        "README.md",
        "config.json",
        "names.json",
        "training.json",
        "vectors.safetensors",
    ]
    config = json.loads((folder / "config.json").read_text())
    assert (config["format"], config["method"], config["options"]) == (1, "averaging", {"power": 2.0})
    assert set(firth.verify(folder)) == {"names.json", "training.json", "vectors.safetensors"}
    assert names(tmp_path / "deep") == ["model"]


def test_documents_are_read_at_their_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Means,
        "from_parts",
        classmethod(lambda cls, method, parts, training: SimpleNamespace(documents=parts.documents)),
    )
    folder = model().save(tmp_path / "model")
    parts: Any = firth.load(folder)
    (folder / "names.json").write_text("{]")
    assert list(parts.documents) == ["names"] and len(parts.documents) == 1
    with refuses("damaged_model"):
        parts.documents["names"]


def test_saved_files_obey_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        model().save(tmp_path / "model")
        with new_file(tmp_path / "file") as work:
            work.write_text("x")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_what_exists_is_kept_unless_overwrite(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model().save(folder)
    before = contents(folder)
    with refuses("output_exists"):
        Averaging().fit([[9, 9]]).save(folder)
    assert contents(folder) == before
    Averaging().fit([[9, 9]]).save(folder, overwrite=True)
    assert firth.load(folder, Averaging).means.tolist() == [9, 9]
    assert names(tmp_path) == ["model"]
    (tmp_path / "empty").mkdir()
    model().save(tmp_path / "empty")
    assert firth.load(tmp_path / "empty", Averaging).means.tolist() == [5, 10]


def test_a_file_is_never_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for overwrite, code in ((False, "output_exists"), (True, "unsafe_output")):
        with refuses(code, folder=tmp_path / "file"):
            model().save(tmp_path / "file", overwrite=overwrite)
    with refuses("unwritable_file"):
        model().save(tmp_path / "file" / "below")
    assert contents(tmp_path) == {"file": b"precious"}


def test_overwriting_through_a_link_replaces_what_it_names(tmp_path: Path) -> None:
    model().save(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    Averaging().fit([[9, 9]]).save(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert firth.load(tmp_path / "real", Averaging).means.tolist() == [9, 9]
    assert names(tmp_path) == ["link", "real"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("exists", [True, False])
def test_failure_inside_leaves_what_was_there(tmp_path: Path, failure: type[BaseException], exists: bool) -> None:
    if exists:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "old").write_text("old")
        (tmp_path / "file").write_text("old")
    before = contents(tmp_path)
    with pytest.raises(failure), new_folder(tmp_path / "folder") as work:
        (work / "new").write_text("half")
        raise failure
    with pytest.raises(failure), new_file(tmp_path / "file") as work:
        work.write_text("half")
        raise failure
    assert contents(tmp_path) == before
    assert names(tmp_path) == (["file", "folder"] if exists else [])


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
    if not can_exchange:
        monkeypatch.setattr(storage, "exchange", lambda a, b: False)
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "old").write_text("old")
    with new_folder(tmp_path / "folder") as work:
        (work / "new").write_text("new")
    assert contents(tmp_path) == {"folder/new": b"new"}
    assert names(tmp_path) == ["folder"]


def test_kill_while_writing_leaves_the_old_model(tmp_path: Path) -> None:
    """kill -9 inside the block: the folder is the old one; what remains is a hidden sibling."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old").write_text("old")
    code = (
        "import os, signal, sys; from pathlib import Path; from firth.core.storage import new_folder\n"
        "with new_folder(Path(sys.argv[1])) as work:\n"
        "    (work / 'new').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(firth.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], env=environment, check=False)
    assert done.returncode == -9
    assert contents(tmp_path / "model") == {"old": b"old"}
    assert all(name == "model" or name.startswith(".model-") for name in names(tmp_path))


def test_full_disk(tmp_path: Path) -> None:
    large = Averaging().fit(np.ones((1, 100_000)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with refuses("unwritable_file"):
            large.save(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not names(tmp_path)
    for write in (lambda path: write_arrays(path, {"a": np.ones(9)}), lambda path: storage.write_json(path, [1])):
        with refuses("unwritable_file"):
            write(Path("/dev/full"))


def edited(folder: Path, **changes: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))
    return folder


GOOD = {"bytes": 1, "sha256": "0"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": ...}, ("damaged_model", {})),
        ({"format": 2}, ("unsupported_format", {"format": 2, "supported": 1})),
        ({"format": "1"}, ("unsupported_format", {"format": "1", "supported": 1})),
        ({"files": ["a"]}, ("damaged_model", {})),
        ({"files": {"../x": GOOD}}, ("incomplete_model", {"name": "../x"})),
        ({"files": {"": GOOD}}, ("incomplete_model", {"name": ""})),
        ({"files": {"gone.json": GOOD}}, ("incomplete_model", {"name": "gone.json"})),
        ({"files": {"names.json": None}}, ("damaged_model", {"name": "names.json"})),
        ({"files": {"names.json": {"sha256": "0"}}}, ("damaged_model", {"name": "names.json"})),
        ({"files": {"names.json": {"bytes": 1, "sha256": 5}}}, ("damaged_model", {"name": "names.json"})),
        ({"files": {"names.json": GOOD}}, ("damaged_model", {"got": 25, "config": "config.json", "bytes": 1})),
        ({"files": {}}, ("incomplete_model", {"name": "vectors.safetensors"})),
        ({"method": 5}, ("damaged_model", {})),
        ({"method": "gone"}, ("unknown_method", {"name": "gone"})),
        ({"options": None}, ("damaged_model", {})),
        ({"options": {"power": -1}}, ("invalid_value", {"method": "Averaging", "name": "power", "got": -1})),
        ({"options": {"force": 1}}, ("unknown_option", {"kind": "Averaging", "name": "force"})),
    ],
)
def test_a_config_that_is_wrong(tmp_path: Path, changes: dict[str, Any], reason: tuple[str, dict[str, Any]]) -> None:
    folder = edited(model().save(tmp_path / "model"), **changes)
    with refuses(reason[0], **reason[1]):
        firth.load(folder)


def test_folders_that_are_no_models(tmp_path: Path) -> None:
    with refuses("not_found"):
        firth.load(tmp_path / "none")
    with refuses("not_found", config="config.json"):
        firth.load(tmp_path)
    for text in ("", "[" * 100_000, "{", "\xff"):
        (tmp_path / "config.json").write_text(text, encoding="latin-1")
        with refuses("damaged_model"):
            firth.load(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with refuses("damaged_model"):
        firth.load(tmp_path)


def test_verify_sees_one_changed_byte_and_load_a_changed_size(tmp_path: Path) -> None:
    folder = model().save(tmp_path / "model")
    path = folder / "vectors.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    firth.load(folder)
    with refuses("hash_mismatch", got="d0a28f2f75fc"):
        firth.verify(folder)
    path.write_bytes(whole[:-1])
    with refuses("damaged_model", got=95, config="config.json", bytes=96):
        firth.load(folder)
    (folder / "vectors.safetensors").unlink()
    with refuses("incomplete_model", name="vectors.safetensors"):
        firth.verify(folder)


def test_folders_of_other_libraries_are_opened_by_the_reader_that_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = model().save(tmp_path / "own"), tmp_path / "other"
    other.mkdir()
    external = model()
    monkeypatch.setattr(
        "firth.model_folders.READERS",
        (lambda folder: None, lambda folder: (lambda: external) if folder == other else None),
    )
    assert firth.load(other) is external
    assert firth.load(own).training == {"rows": 2}
    with refuses("no_hashes", path=other):
        verify(other)


def test_errors_about_a_folder_keep_their_code(tmp_path: Path) -> None:
    with refuses("invalid_value", option="power", got=-1, folder=tmp_path) as caught, saying_which(tmp_path):
        raise FirthError("invalid_value", "{option} must be positive; got {got}.", option="power", got=-1)
    assert str(caught.value) == f"{tmp_path}: power must be positive; got -1."
