"""Preparation of inputs: tokens are counted and limits are checked before a request queues."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.long_texts import CHUNK, REFUSE, TRUNCATE, TooLongError
from firth.core.model import LimitsTexts, Model, TokenizesWords, base_model
from firth.core.vectors import Matrix
from firth.data.subword_tokenizer import HasSubwordTokenizer, checked_texts
from firth.data.vocabulary import HasVocabulary
from firth.server.errors import RequestError
from firth.server.models import Served
from firth.transformers.pooling import PoolsTokens
from firth.transformers.static_model import StaticModel
from firth.transformers.text_encoder import prompt_tokens

REMEDY = (
    "Split it into parts. (The field truncate, where there is one, or the server's --long truncate uses the beginning.)"
)
Inputs = Sequence[str] | Sequence[list[int]]  # texts, or token ids


class ReadInputs(NamedTuple):
    """Inputs that are ready for a model."""

    items: list[Any]  # texts; for encoders, token ids and the number of them that is not pooled
    tokens: list[int]  # number of tokens of each
    truncated: int  # number of truncated inputs


class TextReader:
    """Reader for any model: texts are passed to the model unchanged."""

    special_count = 0  # special tokens that are added to a text

    def __init__(self, model: Served, precision: str = "auto") -> None:
        if not isinstance(model, EmbedsTexts):
            raise RequestError(400, "This model does not embed texts.", field="model")
        self.model, self.precision = model, precision
        owner = model.reader if isinstance(model, StaticModel) else model
        self.tokenizer = owner.tokenizer if isinstance(owner, HasSubwordTokenizer) else None
        base = base_model(model)
        self.max_tokens = base.max_text_tokens if isinstance(base, LimitsTexts) else None  # None: no limit
        self.dim = self.rows(self.read(["a"], TRUNCATE).items).shape[1]  # also initializes what the model caches

    def prompt(self, name: str | None = None, text: str | None = None, default: str | None = None) -> str:
        """Return the text to put before inputs: `text`, the model's prompt of a name, or its `default` prompt."""
        if name or text:
            raise RequestError(400, "This model has no prompts.", field="prompt_name" if name else "prompt")
        return ""

    def read(self, inputs: Inputs, long: str, prompt: str = "") -> ReadInputs:
        """Tokenize inputs with a prompt; `long` is `REFUSE` or `TRUNCATE` for inputs over the limit."""
        texts = [each if isinstance(each, str) else self.text_of(each) for each in inputs]
        counts = self.count(checked_texts(texts))
        if self.max_tokens is None or max(counts, default=0) <= self.max_tokens:
            return ReadInputs(texts, counts, 0)
        too_long = over_limit(self.max_tokens, counts, long)
        for position in too_long:
            texts[position] = self.shortened(texts[position])
        return ReadInputs(texts, self.count(texts), len(too_long))

    def rows(self, items: list[Any]) -> Matrix:
        """Return one vector per item."""
        return self.model.embed(items)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        if self.tokenizer is not None:
            return [len(ids) + self.special_count for ids in self.tokenizer.ids_batch(texts, special=False)]
        if isinstance(self.model, TokenizesWords):
            return [len(self.model.tokenize(text)) for text in texts]
        embedded = self.model.embed_with_counts(texts)
        counts: list[int] = (embedded.known + embedded.unknown).tolist()
        return counts

    def tokens(self, text: str, special: bool) -> list[dict[str, Any]]:
        """Return tokens in the format of text-embeddings-inference; offsets are characters, if available."""
        checked_texts([text])
        if self.tokenizer is not None:
            encoding = self.tokenizer.encode(text, special)
            special_ids = set(self.tokenizer.special_tokens.values())
            return [
                {"id": id, "text": token, "special": id in special_ids, "start": begin, "stop": end}
                for id, token, (begin, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
            ]
        pairs: list[tuple[int | None, str]] = []
        if isinstance(self.model, TokenizesWords) and isinstance(self.model, HasVocabulary):
            pairs = [(self.model.vocabulary.id(token), token) for token in self.model.tokenize(text)]
        elif isinstance(self.model, StaticModel):
            pairs = [(id, self.model.tokens[id]) for id in self.model.reader.ids([text])[0].tolist()]
        return [{"id": id, "text": token, "special": False, "start": None, "stop": None} for id, token in pairs]

    def shortened(self, text: str) -> str:
        """Truncate a text to the maximum number of tokens."""
        assert self.tokenizer is not None and self.max_tokens is not None
        max_tokens = self.max_tokens - self.special_count
        while self.count([text])[0] > self.max_tokens:
            text = text[: self.tokenizer.encode(text, special=False).offsets[max_tokens - 1][1]]
            max_tokens -= 1  # the last word of the truncated text may have other subwords
        return text

    def text_of(self, ids: list[int]) -> str:
        """Return the text of token ids."""
        names = self.token_names()
        self.check_ids(ids, len(names))
        if self.tokenizer is not None:
            return self.tokenizer.decode(ids, special=True)
        return " ".join(names[id] for id in ids).replace(" ##", "")

    def token_names(self) -> Sequence[str]:
        """Return the vocabulary, or its range of ids."""
        if self.tokenizer is not None:
            return range(len(self.tokenizer))  # type: ignore[return-value]
        if isinstance(self.model, HasVocabulary):
            return self.model.vocabulary.tokens
        return self.model.tokens if isinstance(self.model, StaticModel) else ()

    def check_ids(self, ids: Sequence[int], size: int) -> None:
        """Refuse token ids outside the vocabulary."""
        invalid = next((id for id in ids if not 0 <= id < size), None)
        if invalid is not None:
            allowed = f"valid ids are 0 to {size - 1:,}" if size else "this model accepts only texts"
            raise RequestError(
                400, f"There is no token {invalid}; {allowed}.", field="input", code="token_out_of_range"
            )


class EncoderReader(TextReader):
    """Reader for BERT encoders: inputs queue as token ids, so that many requests can share a batch."""

    max_tokens: int

    def __init__(self, model: Model, encoder: PoolsTokens, precision: str = "auto") -> None:
        self.encoder, self.pooling = encoder, encoder.pooling
        self.template = encoder.tokenizer.template
        self.special_count = self.template.added
        super().__init__(model, precision)
        self.max_tokens = self.pooling.max_tokens or self.encoder.size.max_positions

    def prompt(self, name: str | None = None, text: str | None = None, default: str | None = None) -> str:
        try:
            return self.encoder.sentence.prompt(name if name is not None else default, text)
        except FirthError as error:
            raise RequestError(400, str(error), field="prompt_name", code=error.code) from None

    def read(self, inputs: Inputs, long: str, prompt: str = "") -> ReadInputs:
        tokenizer = self.encoder.tokenizer
        texts = [prompt + each for each in inputs if isinstance(each, str)]
        if texts:
            items = tokenizer.ids_batch(texts)
        else:
            given_ids = [each for each in inputs if not isinstance(each, str)]
            self.check_ids(list(chain.from_iterable(given_ids)), len(tokenizer))
            prompt_ids = tokenizer.encode(prompt, special=False).ids
            items = [self.template.text([*prompt_ids, *self.inner(list(ids))]) for ids in given_ids]
        counts = [len(ids) for ids in items]
        too_long = list[int]()
        if max(counts, default=0) > self.max_tokens and self.pooling.long != CHUNK:
            too_long = over_limit(self.max_tokens, counts, long)
        for position in too_long:
            items[position] = self.template.truncated(items[position], self.max_tokens)
        skipped = 0 if self.pooling.include_prompt else prompt_tokens(tokenizer, prompt)
        return ReadInputs([(ids, skipped) for ids in items], [len(ids) for ids in items], len(too_long))

    def inner(self, ids: list[int]) -> list[int]:
        """Return token ids without the special tokens around them, such as [CLS] and [SEP], if they have both."""
        before, after = self.template.before, self.template.after
        end = len(ids) - len(after)
        has_both = end >= len(before) and tuple(ids[: len(before)]) == before and tuple(ids[end:]) == after
        return ids[len(before) : end] if has_both else ids

    def rows(self, items: list[Any]) -> Matrix:
        ids, skipped = [each for each, _ in items], [count for _, count in items]
        return self.encoder.embed_ids(ids, precision=self.precision, skipped=skipped)


def make_reader(model: Served, precision: str) -> TextReader:
    """Return the reader for a model."""
    encoder = base_model(model) if isinstance(model, Model) else None
    if isinstance(model, Model) and isinstance(encoder, PoolsTokens):
        return EncoderReader(model, encoder, precision)
    return TextReader(model, precision)


def over_limit(max_tokens: int, counts: Sequence[int], on_long: str) -> list[int]:
    """Return the positions of inputs over the limit; if `on_long` is `REFUSE`, there must be none."""
    positions = [position for position, count in enumerate(counts) if count > max_tokens]
    if positions and on_long == REFUSE:
        first = positions[0]
        error = TooLongError(first, counts[first], max_tokens, REMEDY, f"Input {first}")
        raise RequestError(400, str(error), field="input", code="context_length_exceeded")
    return positions
