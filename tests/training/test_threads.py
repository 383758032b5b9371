"""Models shared by threads: lazily read parts are complete before another thread sees them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import firth
from firth.core.model import Parts


class Slow(Mapping[str, Any]):
    """Documents whose second read waits until another thread has run."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents, self.reads = documents, 0
        self.other, self.done = threading.Event(), threading.Event()

    def __getitem__(self, name: str) -> Any:
        self.reads += 1
        if self.reads == 2:
            self.other.set()
            self.done.wait(1)
        return self.documents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


def test_vocabulary_and_phrases_are_published_together():
    """A thread that saw the vocabulary but not yet the phrases would tokenize without phrases."""
    model = firth.SkipGram(dim=4, min_count=1, phrases=1).fit(["in new york today", "new york is far"] * 50)
    expected = model.tokenize("new york")
    assert expected == ["new_york"]
    parts = model.parts()
    slow = Slow(parts.documents)
    shared = type(model).from_parts(model.method, Parts(parts.arrays, slow), model.training)
    tokenized = []

    def second() -> None:
        slow.other.wait(1)
        tokenized.append(shared.tokenize("new york"))
        slow.done.set()

    thread = threading.Thread(target=second)
    thread.start()
    tokenized.append(shared.tokenize("new york"))
    thread.join()
    assert tokenized == [expected, expected]
