"""What the scripts in tests/fuzz share: a process of limited memory that judges folders one by one and may die, and
what is said of all of them at the end."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SECONDS = 120.0  # until a folder that is judged is taken to hang
MEMORY = 3 << 30  # bytes of address space beyond what the libraries take


def arguments(text: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--part", default="1/1", help="such as 2/3: the second third of the cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where undamaged models are kept for the next time")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.part, given.parts = map(int, given.part.split("/"))
    return given


class Worker:
    """A process of `script` that judges folders; another one after it has died."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.process: subprocess.Popen[str] | None = None

    def ask(self, folder: Path) -> str:
        """The verdict; what is WRONG begins so."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, self.script, "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
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
        if answer:
            return answer
        hung = time.monotonic() - began > SECONDS - 1
        return "WRONG: hangs" if hung else f"WRONG: the process died ({process.wait()})"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @staticmethod
    def serve(judge: Callable[[Path], str]) -> None:
        """The process itself: a folder a line comes in, a verdict a line goes out."""
        import torch

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        answers, sys.stdout = sys.stdout, Path("/dev/null").open("w")  # noqa: SIM115
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        for line in sys.stdin:
            try:
                answer = judge(Path(line.strip()))
            except Exception as error:
                answer = f"WRONG: {type(error).__name__}: {str(error)[:100]!r} {place_of(error)}"
            print(answer.replace("\n", " "), file=answers, flush=True)


def place_of(error: Exception) -> str:
    """The last lines of Firth's that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/firth/" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-1:-4:-1])


def summary(found: list[tuple[str, str]]) -> int:
    """Prints what is wrong, with some examples each, and counts of all verdicts; 1 where anything is wrong."""
    wrong: dict[str, list[str]] = {}
    for what, verdict in found:
        if verdict.startswith("WRONG"):
            wrong.setdefault(verdict, []).append(what)
    for verdict, cases in sorted(wrong.items(), key=lambda item: -len(item[1])):
        print(f"{len(cases):4} {verdict}\n" + "".join(f"       {case[:150]}\n" for case in cases[:3]), end="")
    counts = Counter("WRONG" if verdict.startswith("WRONG") else verdict for _, verdict in found)
    print(f"{len(found):,} cases: {dict(counts.most_common())}")
    return int(bool(wrong))
