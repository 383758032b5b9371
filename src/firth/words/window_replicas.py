"""Word vectors trained by several workers (`training.replicas`): each trains ranges of the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.data.shard_jobs import read_array, token_files
from firth.kernels import predict as kernel
from firth.training.replicas import ReplicaLoop, Step, new_tables, rate_factor, row_frequencies, train_round
from firth.training.task_files import read_task, write_task
from firth.words.subword_training import SubwordTraining
from firth.words.window_training import Training
from firth.words.word_model import TextModel

PART_TOKENS = 16 * kernel.BLOCK  # that a worker trains between two exchanges of the frequent rows
LEAST_STEPS = 16  # of an epoch, unless the parts would be smaller than a block of the kernel
ROUND_STEPS = 64  # steps between two exchanges of all rows


# ---- in a worker ----


class WindowReplica:
    """A copy of the tables, trained on ranges of the tokens."""

    def __init__(self, common: Mapping[str, Any]) -> None:
        self.tables = new_tables(common["tables"])
        ids, starts = read_array(Path(common["ids"]), np.int32), read_array(Path(common["starts"]), np.int64)
        path = Path(common["folder"]) / "task.safetensors"
        self.trainer = kernel.native_trainer(read_task(path, common["task"], ids=ids, starts=starts, **self.tables))

    def train(self, step: Step, seed: int, threads: int) -> kernel.Tally:
        """Train a range of tokens; the rates are those of the epoch's first and last token."""
        return kernel.Tally(*self.trainer.racing(step.first, step.last, seed, *step.rates, threads))


_replicas: dict[str, WindowReplica] = {}  # the replica of the current job


def train_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Train a worker's part of a round; a job's function."""
    if common["folder"] not in _replicas:
        _replicas.clear()
        _replicas[common["folder"]] = WindowReplica(common)
    return train_round(_replicas[common["folder"]], common, parameters, folder)


# ---- in the driver ----


class ReplicatedTraining(ReplicaLoop, Training):
    """The training loop of SkipGram and CBOW on a cluster."""

    function: ClassVar[Any] = staticmethod(train_shard)
    round_steps = ROUND_STEPS

    def go(self) -> dict[str, Any]:
        """Train on the workers."""
        self.ordered = False
        return super().go()

    def first_tables(self, start: TextModel | None) -> tuple[kernel.Table, kernel.Table]:
        """Return the initial tables, if the memory suffices for the copies."""
        words = len(self.tokens.vocabulary)
        self.check_room(2 * words + self.ngram_rows(), self.method.dim)
        return super().first_tables(start)

    def ngram_rows(self) -> int:
        """Return the number of input rows in addition to those of words."""
        return 0

    def write_task(self, folder: Path) -> dict[str, Any]:
        """Write what workers need."""
        blocks = self.size // (LEAST_STEPS * self.workers * kernel.BLOCK)  # of a part, in a small text
        self.part_units = min(PART_TOKENS, max(1, blocks) * kernel.BLOCK)
        ids, starts = token_files(self.tokens, folder)
        values = write_task(self.task(), folder / "task.safetensors")
        shapes = {name: table.shape for name, table in self.arrays.items()}
        return {"ids": str(ids), "starts": str(starts), "tables": shapes, "task": values}

    def frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return how often each row is updated."""
        return row_frequencies(self.tokens.vocabulary.counts, self.task())

    def rates_of(self, first: int, last: int) -> tuple[float, float]:
        """Return the learning rates at the first and last token of the epoch, as the kernel expects."""
        begin, end = self.rates()
        return begin * rate_factor(self.workers), end * rate_factor(self.workers)

    def next_part(self) -> int:
        """Return the next token."""
        return self.progress.position

    def last_part(self) -> int:
        """Return the end of the trained text."""
        return self.size

    def move_to(self, part: int) -> None:
        """Record the position."""
        self.progress.position = part


class ReplicatedSubwordTraining(ReplicatedTraining, SubwordTraining):
    """The training loop of FastText on a cluster."""

    def ngram_rows(self) -> int:
        """Return the number of rows of n-grams."""
        return self.subwords.rows
