"""Search results: hits, snippets and rank fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from firth.core.notebook import html_table


class Hit(NamedTuple):
    """One search result. The score is a similarity (cosine, dot), a distance (euclidean), BM25 in the mode "words", or
    a sum of reciprocal ranks in the mode "both"."""

    key: str
    score: float
    attributes: Mapping[str, Any]


class Hits(list[Hit]):
    """Search results, best first."""

    def __repr__(self) -> str:
        width = max((len(hit.key) for hit in self), default=0)
        lines = (f"{hit.key:<{width}}  {hit.score:.4f}  {snippet(hit.attributes.get('text'))}".rstrip() for hit in self)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[hit.key, f"{hit.score:.4f}", snippet(hit.attributes.get("text"))] for hit in self]
        return html_table(["key", "score", "text"], rows, numbers=(1,))


def snippet(text: Any, words: Sequence[str] = (), width: int = 80) -> str:
    """Return one line of a text, starting shortly before the first occurrence of `words`, or at its beginning."""
    line = " ".join(str(text or "").split())
    if len(line) <= width:
        return line
    folded = line.lower()
    positions = [position for word in words if (position := folded.find(word)) >= 0]
    start = max(0, min(positions, default=0) - width // 4)
    start = min(start, len(line) - width)
    if start > 0:
        start = line.find(" ", start, start + 20) + 1 or start
    piece = line[start : start + width]
    return ("…" if start else "") + piece.rstrip() + ("…" if start + width < len(line) else "")


def reciprocal_rank_fusion(rankings: Sequence[Sequence[int]], k: int, smoothing: int = 60) -> list[tuple[int, float]]:
    """Merge rankings by reciprocal rank fusion (Cormack, Clarke & Büttcher 2009): a row scores Σ 1 / (60 + rank)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, 0.0) + 1 / (smoothing + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
