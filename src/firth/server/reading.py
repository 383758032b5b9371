"""From the inputs of a request to what a model computes on: tokens are counted, limits held, before anything waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from firth.core.model import Embeds, Translates
from firth.core.vectors import Matrix
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.server.errors import RequestError

Inputs = Sequence[str] | Sequence[list[int]]  # texts, or ids of tokens


class Reading(NamedTuple):
    """What a model is given."""

    items: list[Any]  # texts, or ids
    tokens: list[int]  # of each
    cut: int  # how many were longer than the model reads


class TextReader:
    """Of any model: texts go to it as they are."""

    around = 0  # tokens that are put around a text and counted

    def __init__(self, model: Any, precision: str = "auto") -> None:
        self.model: Any = model
        self.precision = precision
        if not isinstance(model, Embeds) or self.model.method.kind == "table":
            raise RequestError(400, "This model does not embed texts.", field="model")
        found = getattr(getattr(model, "reader", model), "tokenizer", None)  # of a static model, its reader's
        self.tokenizer: SubwordTokenizer | None = found
        self.room: int | None = None  # most tokens of a text
        base = getattr(model, "base", model)
        if isinstance(base, Translates):
            self.room = self.model.method.context_length - 1  # its end is a token too
        elif hasattr(base, "max_text_tokens"):
            self.room = base.max_text_tokens
        self.dim = self.rows(self.read(["a"], "truncate").items).shape[1]  # also makes ready what is made once

    def read(self, inputs: Inputs, long: str) -> Reading:
        """`long` says what becomes of longer texts: refuse, or truncate."""
        texts = [each if isinstance(each, str) else self.text_of(each) for each in inputs]
        counts = self.count(checked_texts(texts))
        if self.room is None or max(counts, default=0) <= self.room:
            return Reading(texts, counts, 0)
        longer = longer_than(self.room, counts, long)
        for place in longer:
            texts[place] = self.shortened(texts[place])
        return Reading(texts, self.count(texts), len(longer))

    def rows(self, items: list[Any]) -> Matrix:
        found: Matrix = self.model.embed(items)
        return found

    def count(self, texts: Sequence[str]) -> list[int]:
        if self.tokenizer is not None:
            return [len(ids) + self.around for ids in self.tokenizer.ids_batch(texts, special=False)]
        if hasattr(self.model, "tokenize"):
            return [len(self.model.tokenize(text)) for text in texts]
        pooled = self.model.pool(texts)
        return np.asarray(pooled.known + pooled.unknown).tolist()  # type: ignore[no-any-return]

    def tokens(self, text: str, special: bool) -> list[dict[str, Any]]:
        """As text-embeddings-inference tells them; places are characters, where the tokenizer tells any."""
        checked_texts([text])
        if self.tokenizer is not None:
            found = self.tokenizer.encode(text, special)
            marks = set(self.tokenizer.special_tokens.values())
            return [
                {"id": id, "text": token, "special": id in marks, "start": begin, "stop": end}
                for id, token, (begin, end) in zip(found.ids, found.tokens, found.offsets, strict=True)
            ]
        if hasattr(self.model, "tokenize"):
            pairs = [(self.model.vocabulary.id(token), token) for token in self.model.tokenize(text)]
        else:
            pairs = [(id, self.model.tokens[id]) for id in self.model.reader.ids([text])[0].tolist()]
        return [{"id": id, "text": token, "special": False, "start": None, "stop": None} for id, token in pairs]

    def shortened(self, text: str) -> str:
        """As much of its beginning as the model reads."""
        assert self.tokenizer is not None and self.room is not None
        room = self.room - self.around
        while self.count([text])[0] > self.room:
            text = text[: self.tokenizer.encode(text, special=False).offsets[room - 1][1]]
            room -= 1  # cut there, its last word may have other pieces
        return text

    def text_of(self, ids: list[int]) -> str:
        names = self.token_names()
        self.check_ids(ids, len(names))
        if self.tokenizer is not None:
            return self.tokenizer.decode(ids, special=True)
        return " ".join(names[id] for id in ids).replace(" ##", "")

    def token_names(self) -> Sequence[str]:
        if self.tokenizer is not None:
            return range(len(self.tokenizer))  # type: ignore[return-value]
        if hasattr(self.model, "vocabulary"):
            return self.model.vocabulary.tokens  # type: ignore[no-any-return]
        return getattr(self.model, "tokens", ())

    def check_ids(self, ids: Sequence[int], size: int) -> None:
        wrong = next((id for id in ids if not 0 <= id < size), None)
        if wrong is not None:
            last = f"this model's go from 0 to {size - 1:,}" if size else "this model takes texts alone"
            raise RequestError(400, f"There is no token {wrong}; {last}.", field="input", code="token_out_of_range")


class EncoderReader(TextReader):
    """Of a BERT: texts wait as tokens, so that those of many requests are computed together."""

    around = 2
    room: int

    def __init__(self, model: Any, precision: str = "auto") -> None:
        self.encoder = getattr(model, "base", model)
        self.pooling = self.encoder.pooling
        self.first, self.last = (self.encoder.tokenizer.ids[token] for token in ("[CLS]", "[SEP]"))
        super().__init__(model, precision)
        self.room = self.pooling.max_tokens or self.encoder.size.max_positions

    def read(self, inputs: Inputs, long: str) -> Reading:
        if inputs and isinstance(inputs[0], str):
            items = self.encoder.tokenizer.ids_batch(inputs)
        else:
            self.check_ids(list(chain.from_iterable(inputs)), len(self.encoder.tokenizer))  # type: ignore[arg-type]
            items = [self.enclosed(list(ids)) for ids in inputs]  # type: ignore[arg-type]
        counts = [len(ids) for ids in items]
        if max(counts, default=0) <= self.room or self.pooling.long == "chunk":
            return Reading(items, counts, 0)
        longer = longer_than(self.room, counts, long)
        for place in longer:
            items[place] = [*items[place][: self.room - 1], self.last]
        return Reading(items, [len(ids) for ids in items], len(longer))

    def enclosed(self, ids: list[int]) -> list[int]:
        """With [CLS] and [SEP], unless they are there."""
        return ids if ids[0] == self.first and ids[-1] == self.last else [self.first, *ids, self.last]

    def rows(self, items: list[Any]) -> Matrix:
        found: Matrix = self.encoder.embed_ids(items, precision=self.precision)
        return found


def reader_of(model: Any, precision: str) -> TextReader:
    base = getattr(model, "base", model)
    return EncoderReader(model, precision) if hasattr(base, "embed_ids") else TextReader(model, precision)


def longer_than(room: int, counts: Sequence[int], long: str) -> list[int]:
    """Which inputs have more tokens than the model reads; with long="refuse" there may be none."""
    longer = [place for place, count in enumerate(counts) if count > room]
    if longer and long == "refuse":
        raise RequestError(
            400,
            f"Input {longer[0]} has {counts[longer[0]]:,} tokens and the model reads {room:,}: cut it into "
            "parts. (The field truncate, where there is one, or the server's --long truncate reads the beginning.)",
            field="input",
            code="context_length_exceeded",
        )
    return longer
