"""A sketch of the labeled rows that a model was trained on, small enough for training.json.

Bottom-k sketch (Cohen & Kaplan 2007): the k smallest row hashes are stored. Rows of other data whose hash is at most
the largest of them are a random sample of that data, and the sketch tells for each whether it was in the training data.
With fewer than k rows, it does so for every row.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from firth.core.errors import FirthError
from firth.core.report import Report, Silence

KEY = "labelled_rows"  # key in a model's `training`
SIZE = 4096  # hashes, 44 kB in training.json; 1,000 rows that share 10% with 60,000 are missed once in a thousand times
HIGHEST = (1 << 64) - 1
STEP = 1 << 16  # rows between two reports of progress
LABEL = re.compile(r"(?:^|(?<=\s))__label__\S*")  # fastText files have labels in the text

Row = str | Sequence[str]


class RowSketch:
    """`hashes` are the row hashes up to `limit`; `count` is the number of rows."""

    def __init__(self, hashes: Iterable[int] = (), limit: int = HIGHEST, count: int = 0, size: int = SIZE) -> None:
        self.hashes, self.limit, self.count, self.size = set(hashes), limit, count, size

    @classmethod
    def of(cls, rows: Iterable[Row], size: int = SIZE) -> RowSketch:
        """The sketch of texts or text pairs (of longer rows, the first two). A pair adds itself and both texts."""
        sketch = cls(size=size)
        for row in rows:
            sketch.count += 1
            if isinstance(row, str):
                sketch.add(row)
            else:
                sketch.add(row[0])
                sketch.add(row[1])
                sketch.add(*row[:2])
        return sketch.cut()

    @classmethod
    def of_pairs(cls, pairs: Iterable[Sequence[str]], size: int = SIZE) -> RowSketch:
        """The sketch of pairs, without their texts."""
        sketch = cls(size=size)
        for pair in pairs:
            sketch.count += 1
            sketch.add(*pair[:2])
        return sketch.cut()

    def add(self, *texts: str) -> None:
        """Add a text, or a group of texts in any order. Empty texts are ignored."""
        plain = sorted(" ".join(without_labels(text).lower().split()) for text in texts)
        if not all(plain):
            return
        digest = hashlib.blake2b("\0".join(plain).encode("utf-8", "replace"), digest_size=8).digest()
        if (hash := int.from_bytes(digest, "little")) <= self.limit:
            self.hashes.add(hash)
            if len(self.hashes) >= 2 * self.size:
                self.cut()

    def cut(self) -> RowSketch:
        """Keep the smallest hashes."""
        if len(self.hashes) >= self.size:
            self.hashes = set(nsmallest(self.size, self.hashes))
            self.limit = max(self.hashes)
        return self

    def joined(self, other: RowSketch) -> RowSketch:
        """The sketch of the rows of both."""
        limit = min(self.limit, other.limit)
        hashes = (hash for hash in self.hashes | other.hashes if hash <= limit)
        return RowSketch(hashes, limit, self.count + other.count, self.size).cut()

    def share_of(self, other: RowSketch) -> tuple[float, int]:
        """The share of the rows of `other` in this sketch, and the number of rows it was estimated from."""
        limit = min(self.limit, other.limit)
        sample = {hash for hash in other.hashes if hash <= limit}
        return len(sample & self.hashes) / max(1, len(sample)), len(sample)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        packed = struct.pack(f"<{len(self.hashes)}Q", *sorted(self.hashes))
        return {"count": self.count, "hashes": base64.b64encode(packed).decode("ascii")}

    @classmethod
    def from_json(cls, document: Any) -> RowSketch:
        """Rebuild a sketch from its stored form, checked."""
        try:
            packed = base64.b64decode(document["hashes"], validate=True)
            hashes, count = struct.unpack(f"<{len(packed) // 8}Q", packed), int(document["count"])
        except (KeyError, TypeError, ValueError, struct.error):
            raise FirthError("damaged_model", "training.json: {key} is not a valid sketch of rows.", key=KEY) from None
        return cls(hashes, HIGHEST, count).cut()


def without_labels(text: str) -> str:
    """Return a text without the labels of fastText's format."""
    return LABEL.sub(" ", text) if "__label__" in text else text


def sketch_in(training: Mapping[str, Any]) -> RowSketch | None:
    """The sketch in a model's `training`; None if it had no labels or no sketch was stored."""
    return RowSketch.from_json(training[KEY]) if KEY in training else None


def recorded_rows(rows: Iterable[Row], report: Report = Silence()) -> dict[str, Any]:
    """The entry of `training` for labeled rows."""
    report.begin("hashing rows", 0, "rows")
    sketch = RowSketch.of(stepping(rows, report))
    report.end()
    return {KEY: sketch.to_json()}


def stepping(rows: Iterable[Row], report: Report) -> Iterator[Row]:
    """Yield rows, and report the number of rows read."""
    for number, row in enumerate(rows):
        if number % STEP == STEP - 1:
            report.step(number + 1)
        yield row


def inherited(training: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """Add the labeled rows of the start model to the record of a model."""
    own, before = sketch_in(training), sketch_in(start)
    if before is None:
        return dict(training)
    return {**training, KEY: (before if own is None else own.joined(before)).to_json()}
