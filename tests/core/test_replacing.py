"""A folder that is replaced while it is opened, and what killed processes leave behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import firth
from firth import Method, Model, Run, option
from firth.core import registry, storage
from firth.core.model import Parts

SOURCE = str(Path(firth.__file__).parents[1])


class Numbered(Model):
    """The same number in the options, an array, a document that is read late and the training facts."""

    before_documents: ClassVar[Callable[[], object]] = staticmethod(lambda: None)

    def __init__(self, method: Method, number: int, parts: Parts, training: Mapping[str, Any]) -> None:
        self.method, self.number, self.stored, self.training = method, number, parts, training

    def parts(self) -> Parts:
        return Parts({"number": np.array([self.number])}, {"number": [self.number]})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Numbered:
        cls.before_documents()
        return cls(method, int(parts.arrays["number"][0]), parts, training)

    def numbers(self) -> set[int]:
        document = self.stored.documents["number"]
        return {int(self.method.power), self.number, document[0], self.training["number"]}  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Numbering(Method):
    model: ClassVar[type[Model]] = Numbered
    summary: ClassVar[str] = "keeps a number"
    power: float = option(1.0, "the number", low=0)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Numbered:
        number = int(self.power)
        return Numbered(self, number, Parts({}), {"number": number})


@pytest.fixture(autouse=True)
def numbering_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "method_classes", lambda: {"numbering": f"{__name__}:Numbering"})


def save(number: int, folder: Path) -> Path:
    return Numbering(power=float(number)).fit(None).save(folder, overwrite=True)


def once(work: Callable[[], object]) -> Callable[[], None]:
    """Does it at the first call alone."""
    left = [work]

    def at_first_call() -> None:
        if left:
            left.pop()()

    return at_first_call


def test_what_is_read_late_is_of_the_folder_that_was_opened(tmp_path: Path) -> None:
    model = firth.load(save(1, tmp_path / "model"), Numbering)
    save(2, tmp_path / "model")
    assert model.numbers() == {1}
    assert firth.load(tmp_path / "model", Numbering).numbers() == {2}


def test_replaced_between_arrays_and_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save(1, tmp_path / "model")
    monkeypatch.setattr(Numbered, "before_documents", staticmethod(once(lambda: save(2, folder))))
    assert len(firth.load(folder, Numbering).numbers()) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_replaced_after_any_file_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The sizes of the files are equal, so that only their content could tell."""
    folder, read, calls = save(1, tmp_path / "model"), json.loads, []

    def loads(data: Any, *args: Any, **settings: Any) -> Any:
        found = read(data, *args, **settings)
        calls.append(found)
        if len(calls) == times:
            save(2, folder)
        return found

    monkeypatch.setattr(json, "loads", loads)
    assert len(firth.load(folder, Numbering).numbers()) == 1


def test_a_link_that_is_switched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(1, tmp_path / "one"), save(2, tmp_path / "two")
    (tmp_path / "current").symlink_to("one")

    def switch() -> None:
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").replace(tmp_path / "current")

    monkeypatch.setattr(Numbered, "before_documents", staticmethod(once(switch)))
    assert len(firth.load(tmp_path / "current", Numbering).numbers()) == 1


REPLACING = """
import sys; from pathlib import Path; import firth
places = [firth.load(path) for path in sys.argv[2:]]
print("ready", flush=True)
while True:
    for model in places:
        model.save(Path(sys.argv[1]), overwrite=True)
"""


def test_a_folder_that_another_process_keeps_replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models of equal sizes: words of one with the vectors of the other would go unnoticed."""
    monkeypatch.undo()
    texts = ["one two three four"] * 9, ["five six seven eight"] * 9
    models = [firth.SkipGram(dim=4, epochs=1, min_count=1).fit(text) for text in texts]
    truth = {tuple(sorted(model.vectors.keys)): model.vectors.matrix.tobytes() for model in models}
    folders = [str(model.save(tmp_path / str(number))) for number, model in enumerate(models)]
    folder = models[0].save(tmp_path / "model")
    command = [sys.executable, "-c", REPLACING, str(folder), *folders]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            for _ in range(300):
                found = firth.load(folder, firth.SkipGram)
                assert truth[tuple(sorted(found.vectors.keys))] == found.vectors.matrix.tobytes()
            assert process.poll() is None
        finally:
            process.kill()


def killed(code: str, *arguments: Path) -> None:
    """Runs code that ends by kill -9."""
    start = "import os, signal, sys; from pathlib import Path; from firth.core.storage import *\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_save_left_is_removed_by_the_next(tmp_path: Path) -> None:
    folder, file = tmp_path / "model", tmp_path / "file.txt"
    killed(f"with new_folder(Path(sys.argv[1])) as work: (work / 'half').write_text('x'); {KILL}", folder)
    killed(f"with new_file(Path(sys.argv[1])) as work: work.write_text('x'); {KILL}", file)
    assert len(names(tmp_path)) == 2
    with storage.new_file(tmp_path / "another") as work:
        work.write_text("x")
    assert len(names(tmp_path)) == 3  # what belongs to other names is theirs
    save(1, folder)
    with storage.new_file(file) as work:
        work.write_text("whole")
    assert names(tmp_path) == ["another", "file.txt", "model"]


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    with storage.new_folder(tmp_path / "model") as mine, storage.new_file(tmp_path / "file") as my_file:
        other = "save = new_folder(Path(sys.argv[1])); work = save.__enter__(); save.__exit__(None, None, None)\n"
        other += "with new_file(Path(sys.argv[2])) as work: work.write_text('x')\n" + KILL
        killed(other, tmp_path / "model", tmp_path / "file")
        with storage.new_folder(tmp_path / "model"), storage.new_file(tmp_path / "file"):  # and of this process
            pass
        (mine / "mine").write_text("mine")
        my_file.write_text("mine")
    assert names(tmp_path) == ["file", "model"] and names(tmp_path / "model") == ["mine"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_the_folder_was_put_in_place(tmp_path: Path, moment: str) -> None:
    """Where two folders can't be exchanged in one step, there is a moment without any: nothing is lost in it."""
    folder = save(1, tmp_path / "model")
    code = f"""
import firth.core.storage as storage
storage.exchange = lambda a, b: False
rename = Path.rename
def renamed(path, target):
    if path.name.startswith('.model') and '{moment}' == 'before': {KILL}
    rename(path, target)
    if path.name.startswith('.model'): {KILL}
Path.rename = renamed
with storage.new_folder(Path(sys.argv[1])) as work:
    (work / 'new').write_text('new')
"""
    killed(code, folder)
    assert folder.exists() == (moment == "after") and len(names(tmp_path)) == 2
    if moment == "before":
        assert firth.load(folder, Numbering).numbers() == {1}
    save(3, folder)
    assert names(tmp_path) == ["model"] and firth.load(folder, Numbering).numbers() == {3}


def test_no_file_stays_open(tmp_path: Path) -> None:
    save(1, tmp_path / "model")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for number in range(20):
        save(number, tmp_path / "model")
        with storage.new_file(tmp_path / "file") as work:
            work.write_text("x")
        assert firth.load(tmp_path / "model", Numbering).numbers() == {number}
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
