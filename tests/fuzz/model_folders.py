"""Damages the saved model of every method in every way of tests/damage.py: each is opened and used, or refused.

    python tests/fuzz/model_folders.py [METHOD ...] [--part 1/3] [--seed 1] [--keep FOLDER]

What must never come of it: an error that is no FirthError, a process that dies or hangs, more memory than a model of
this size may need, numbers that are not finite.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

SECONDS = 60.0  # until a model that is opened and used is taken to hang
MEMORY = 3 << 30  # bytes of address space beyond what the libraries take


def make_models(folder: Path, names: list[str]) -> dict[str, Path]:
    """A small model of each method, and folders as other libraries write them."""
    from test_contract import fitted
    from tiny import tiny_gpt

    from firth.core import registry

    found = {}
    for name in names or sorted(registry.method_modules()):
        if not (folder / name).exists():
            model: Any = tiny_gpt(layers=1) if name == "gpt" else fitted(registry.method(name))
            model.save(folder / name)
        found[name] = folder / name
    for name in [name for name in ("bert", "gpt", "classify", "distil", "tags") if name in found]:
        place = folder / f"foreign-{name}"
        if not place.exists():
            make_foreign(found[name], place)
        found[place.name] = place
    return found


def make_foreign(folder: Path, target: Path) -> None:
    """As another library leaves a folder of ours that it has saved again."""
    import shutil

    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    ours = ("format", "firth", "method", "options", "files")
    theirs = {name: value for name, value in config.items() if name not in ours}
    (target / "config.json").write_text(json.dumps({**theirs, "transformers_version": "4.50.0"}))
    for name in ("training.json", "size.json", "pooling.json", "task.json"):
        (target / name).unlink(missing_ok=True)


def verdict(folder: Path) -> str:
    """What comes of opening and using a model: "used", "refused CODE", or what is wrong."""
    from using import use

    import firth

    try:
        odd = use(firth.load(folder))
    except firth.FirthError as error:
        return f"refused {error.code}" if str(error).strip() else "WRONG: no message"
    except MemoryError:
        return "WRONG: MemoryError " + place_of()
    except Exception as error:
        return f"WRONG: {type(error).__name__}: {str(error)[:100]!r} {place_of()}"
    return f"WRONG: not finite: {', '.join(odd)}" if odd else "used"


def place_of() -> str:
    frames = [frame for frame in traceback.extract_tb(sys.exc_info()[2]) if "/firth/" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-1:-4:-1])


def work() -> None:
    """A worker: a folder a line, a verdict a line."""
    import torch

    import firth

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in ("SkipGram", "BERT"):
        getattr(firth, name)
    answers, sys.stdout = sys.stdout, sys.stderr
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    for line in sys.stdin:
        print(verdict(Path(line.strip())), file=answers, flush=True)


class Worker:
    """A process that opens damaged models; another one after it has died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, folder: Path) -> str:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, __file__, "--worker"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        late = threading.Timer(SECONDS, process.kill)
        late.start()
        began = time.monotonic()
        try:
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        finally:
            late.cancel()
        if not answer:
            hung = time.monotonic() - began > SECONDS - 1
            return "WRONG: hangs" if hung else f"WRONG: the process died ({process.wait()})"
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def cases(places: dict[str, Path], seed: int, part: tuple[int, int]) -> Iterator[tuple[str, str, Any, bool]]:
    from damage import damages

    number = 0
    for name, place in places.items():
        for what, damage in damages(place, seed):
            for hashes in (True, False):
                number += 1
                if not hashes and number % 8:  # sizes and hashes that don't fit are mostly seen at once
                    continue
                if number % part[1] == part[0] - 1:
                    yield name, what, damage, hashes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where the undamaged models are kept for the next time")
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        work()
        return 0
    from damage import damaged_copy

    number, parts = map(int, given.part.split("/"))
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        places = make_models(given.keep or Path(scratch, "models"), given.methods)
        worker = Worker()
        for name, place in places.items():
            if (found := worker.ask(place)) != "used":
                wrong.setdefault(found, []).append(f"{name}: undamaged")
        for name, what, damage, hashes in cases(places, given.seed, (number, parts)):
            answer = worker.ask(damaged_copy(places[name], Path(scratch, "copy"), damage, hashes))
            counts[answer if answer.startswith(("used", "refused")) else "WRONG"] += 1
            if answer.startswith("WRONG"):
                wrong.setdefault(answer, []).append(f"{name}: {what}{'' if hashes else ', hashes as they were'}")
        worker.close()
    for answer, found in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):4} {answer}\n" + "".join(f"       {each[:150]}\n" for each in found[:3]), end="")
    print(f"{sum(counts.values()):,} damaged models: {dict(counts.most_common())}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
