"""Stand-in until data/subwords.py is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from firth.core.errors import FirthError


class Pieces:
    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    @classmethod
    def train(cls, texts: Iterable[str], kind: str, size: int, special: Sequence[str]) -> Pieces:
        if kind == "bpe":
            tokenizer = tokenizers.Tokenizer(models.BPE())
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
            trainer: Any = trainers.BpeTrainer(
                vocab_size=size, special_tokens=list(special), show_progress=False,
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            )
        else:
            raise FirthError("later")
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.decode([number], skip_special_tokens=False) for number in ids]

    def to_json(self) -> Any:
        return json.loads(self.tokenizer.to_str())

    @classmethod
    def from_json(cls, document: Any) -> Pieces:
        return cls(tokenizers.Tokenizer.from_str(json.dumps(document)))
