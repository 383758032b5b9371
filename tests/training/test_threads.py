"""Models that threads share: what is read at its first use is read whole before another thread sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import firth
from firth.core.model import Parts


class Slow(Mapping[str, Any]):
    """Documents of which each but the first look waits until another thread has had its turn."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents, self.looks = documents, 0
        self.other, self.done = threading.Event(), threading.Event()

    def __getitem__(self, name: str) -> Any:
        self.looks += 1
        if self.looks == 2:
            self.other.set()
            self.done.wait(1)
        return self.documents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


def test_phrases_are_there_as_soon_as_the_vocabulary():
    """A thread that found the vocabulary read, and the phrases not yet, tokenized without them."""
    model = firth.SkipGram(dim=4, min_count=1, phrases=1).fit(["in new york today", "new york is far"] * 50)
    expected = model.tokenize("new york")
    assert expected == ["new_york"]
    parts = model.parts()
    slow = Slow(parts.documents)
    shared = type(model).from_parts(model.method, Parts(parts.arrays, slow), model.training)
    found = []

    def second() -> None:
        slow.other.wait(1)
        found.append(shared.tokenize("new york"))
        slow.done.set()

    thread = threading.Thread(target=second)
    thread.start()
    found.append(shared.tokenize("new york"))
    thread.join()
    assert found == [expected, expected]
