"""Models shared by threads: lazily read parts are complete before another thread sees them."""

from __future__ import annotations

import threading
from typing import Any

import firth
from firth.core.model import Parts


class Paused(dict[str, Any]):
    """A document whose phrases are first read when another thread has tokenized a text."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.reading, self.tokenized = threading.Event(), threading.Event()

    def get(self, name: str, default: Any = None) -> Any:
        if name == "phrases" and not self.reading.is_set():
            self.reading.set()
            assert self.tokenized.wait(60)
        return super().get(name, default)


def test_vocabulary_and_phrases_are_published_together():
    """A thread that saw the vocabulary but not yet the phrases would tokenize without phrases."""
    model = firth.SkipGram(dim=4, min_count=1, phrases=1).fit(["in new york today", "new york is far"] * 50)
    expected = model.tokenize("new york")
    assert expected == ["new_york"]
    parts = model.parts()
    paused = Paused(parts.documents["vocabulary"])
    shared = type(model).from_parts(model.method, Parts(parts.arrays, {"vocabulary": paused}), model.training)
    tokenized = []

    def second() -> None:
        assert paused.reading.wait(60)
        tokenized.append(shared.tokenize("new york"))
        paused.tokenized.set()

    thread = threading.Thread(target=second)
    thread.start()
    tokenized.append(shared.tokenize("new york"))
    thread.join()
    assert tokenized == [expected, expected]
