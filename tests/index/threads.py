"""Threads that change and search one index concurrently: `python threads.py FOLDER HOW PREFIX`. It is a separate
process, because the fault that it guards against is SIGBUS. HOW is `one` (all threads share an `Index`) or `each`
(every thread opens its own, and tries again while another one writes). Prints the keys whose change was
acknowledged."""

from __future__ import annotations

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from firth import FirthError
from firth.index import Index

DIM, ROUNDS, ADDERS = 8, 12, 4


def vector(key: str) -> np.ndarray:
    """Return a vector that is a function of the key, so that a search can check that the two belong together."""
    return np.random.default_rng(list(key.encode())).normal(size=DIM).astype(np.float32)


def rows(keys: list[str]) -> tuple[list[str], np.ndarray, dict[str, list[str]]]:
    return keys, np.stack([vector(key) for key in keys]), {"text": [f"row {key}" for key in keys]}


class Work:
    def __init__(self, folder: str, how: str, prefix: str) -> None:
        self.folder, self.how, self.prefix = folder, how, prefix
        self.shared = Index.open(folder) if how == "one" else None
        self.added: set[str] = set()
        self.deleted: set[str] = set()
        self.faults: list[str] = []
        self.done = threading.Event()

    @contextmanager
    def index(self) -> Iterator[Index]:
        if self.shared is not None:
            yield self.shared
            return
        with Index.open(self.folder) as own:
            yield own

    def change(self, call: Callable[[Index], None]) -> None:
        """Repeat a change while another writer holds the lock."""
        while not self.changed(call):
            time.sleep(0.005)

    def changed(self, call: Callable[[Index], None]) -> bool:
        try:
            with self.index() as index:
                call(index)
        except FirthError as error:
            if error.code != "locked" or self.shared is not None:
                raise
            return False
        return True

    def add(self, number: int) -> None:
        for turn in range(ROUNDS):
            keys = [f"{self.prefix}{number}-{turn}-{i}" for i in range(3)]
            self.change(lambda index, keys=keys: index.add(*rows(keys)))  # type: ignore[misc]
            self.added.update(keys)
            if turn % 3 == 1:
                self.change(lambda index, key=keys[0]: index.delete([key]))  # type: ignore[misc]
                self.deleted.add(keys[0])
            if turn % 3 == 2:
                self.change(lambda index, keys=keys: index.update(*rows(keys[:2])))  # type: ignore[misc]

    def optimize(self, approximate: bool) -> None:
        for _ in range(ROUNDS // 3):
            self.change(lambda index: index.optimize(approximate=approximate, threads=1))

    def search(self) -> None:
        while not self.done.is_set():
            with self.index() as index:
                expected = len(index)
                for results in [*index.search(np.ones((2, DIM)), 5), index.search("row", 5, mode="words")]:
                    for hit in results:
                        assert hit.attributes["text"] == f"row {hit.key}", "a row has the attributes of another"
                hits = index.search(np.ones(DIM), 1000)
                assert len({hit.key for hit in hits}) == len(hits), "a key is found twice"
                assert len(hits) >= min(expected, 5), "existing rows are not returned"
                for hit in hits:
                    own = vector(hit.key)
                    cosine = float(own.sum() / np.linalg.norm(own) / np.sqrt(DIM))
                    assert abs(hit.score - cosine) < 1e-4, "a key has the vector of another"

    def guarded(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except BaseException:
            self.faults.append(traceback.format_exc())


def main() -> None:
    work = Work(*sys.argv[1:4])
    calls = [(work.add, number) for number in range(ADDERS)] + [(work.optimize, flag) for flag in (False, True)]
    changing = [threading.Thread(target=work.guarded, args=call) for call in calls]
    asking = [threading.Thread(target=work.guarded, args=(work.search,)) for _ in range(2)]
    for thread in changing + asking:
        thread.start()
    for thread in changing:
        thread.join()
    work.done.set()
    for thread in asking:
        thread.join()
    if work.faults:
        sys.exit("\n".join(work.faults))
    print(json.dumps(sorted(work.added - work.deleted)))


if __name__ == "__main__":
    main()
