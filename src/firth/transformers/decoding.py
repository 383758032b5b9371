"""Decoding settings of encoder-decoders: special tokens, beam width, length limits and what may not be generated.

Firth's own models score a hypothesis by log p(y | x) / ((5 + |y|) / 6)^α (Wu et al. 2016, equation 14). Loaded ones
follow the conventions of transformers, so that its `generate` gives the same texts: log p(y | x) / |y|^α, excluded
tokens keep their share of the probability, and hypotheses cut at the token limit compete with finished ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from firth.core.errors import FirthError
from firth.transformers.families.family import Config
from firth.transformers.families.weights import warn

#: When the search for a source ends: its best finished hypothesis beats the unfinished ones; all of the beam do; the
#: beam is full; all beat what the unfinished ones could score at the token limit.
STOPS = ("best", "all", "full", "never")
SEARCH = "num_beams", "length_penalty", "early_stopping"
LENGTHS = "max_length", "max_new_tokens", "min_length", "min_new_tokens"
TOKENS = "pad_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"
EXCLUDED = "no_repeat_ngram_size", "bad_words_ids", "suppress_tokens"
#: Settings of generation_config.json that Firth follows, and others with the values that change nothing.
FOLLOWED = (*SEARCH, *LENGTHS, *TOKENS, *EXCLUDED)
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "do_sample": (False,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0.0,),
    "exponential_decay_length_penalty": (),
    "begin_suppress_tokens": (),
    "sequence_bias": (),
    "forced_decoder_ids": (),
}


@dataclass(frozen=True)
class Decoding:
    """How the output of a decoder is searched for."""

    begin: int
    end: int
    pad: int
    beam: int = 4
    length_penalty: float = 0.6
    stop: str = "best"
    like_transformers: bool = False
    max_tokens: int = 0  # with the end token; 0 = by the length of the source
    min_tokens: int = 0  # without the end token
    first: int | None = None  # every output begins with it
    last: int | None = None  # an output of max_tokens ends with it
    no_repeat: int = 0  # no sequence of so many tokens occurs twice; 0 = any may
    never: tuple[int, ...] = ()  # tokens that are not generated

    def divisor(self, length: int) -> float:
        """Return what the log-probability of so many tokens is divided by."""
        return float((length if self.like_transformers else (5 + length) / 6) ** self.length_penalty)

    def log_probabilities(self, logits: Tensor, prefixes: Tensor, at_limit: Tensor) -> Tensor:
        """Return log p of each next token, −∞ for those that are excluded.

        `logits` are (rows, vocabulary), `prefixes` (rows, tokens so far), and `at_limit` says which rows end now.
        """
        never, excluded = torch.tensor(self.never, dtype=torch.long, device=logits.device), -math.inf
        if not self.like_transformers:
            return torch.log_softmax(logits.index_fill(-1, never, excluded), dim=-1)
        length, log_p = prefixes.shape[1] + 1, torch.log_softmax(logits, dim=-1).index_fill(-1, never, excluded)
        if self.no_repeat:
            for row, tokens in enumerate(prefixes.tolist()):
                log_p[row, repeating([self.begin, *tokens], self.no_repeat)] = excluded
        if length <= self.min_tokens:
            log_p[:, self.end] = excluded
        for token, rows in ((self.first, torch.full_like(at_limit, length == 1)), (self.last, at_limit)):
            if token is not None and rows.any():
                forced = torch.full_like(log_p, excluded)
                forced[:, token] = 0.0
                log_p = torch.where(rows[:, None], forced, log_p)
        return log_p


def repeating(tokens: list[int], size: int) -> list[int]:
    """Return the tokens that would repeat a sequence of `size` tokens."""
    end = tokens[len(tokens) - size + 1 :]
    begins = range(len(tokens) - size + 1)
    return [tokens[at + size - 1] for at in begins if tokens[at : at + size - 1] == end]


def generation_settings(defaults: Mapping[str, Any], *documents: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that Firth follows; later documents come first. Others are reported."""
    merged = dict(defaults)
    for document in documents:
        merged |= {name: value for name, value in document.items() if value is not None}
    ignored = [name for name, neutral in NEUTRAL.items() if name in merged and merged[name] not in neutral]
    if ignored:
        warn(
            f"Settings of generation_config.json that Firth does not follow: {', '.join(ignored)}.", "settings_ignored"
        )
    return {name: merged[name] for name in FOLLOWED if name in merged}


def decoding_of(settings: Mapping[str, Any], vocabulary_size: int) -> Decoding:
    """Return the decoding settings that a generation_config.json describes."""
    config = Config({name: first_of(value) if name in TOKENS else value for name, value in settings.items()})
    highest = vocabulary_size - 1
    pad, end, begin = (config.integer(name, low=0, high=highest) for name in TOKENS[:3])
    first, last = (
        config.integer(name, low=0, high=highest) if config.get(name) is not None else None for name in TOKENS[3:]
    )
    stopping = config.get("early_stopping", False)
    if stopping not in (True, False, "never"):
        raise FirthError(
            "damaged_model",
            "generation_config.json: {name} must be true, false or never; got {got!r:.60}.",
            name="early_stopping",
            got=stopping,
        )
    longest, shortest = config.integer("max_length", 1, low=1), config.integer("min_length", 0, low=0)
    return Decoding(
        begin=begin,
        end=end,
        pad=pad,
        beam=config.integer("num_beams", 1, high=vocabulary_size),
        length_penalty=config.number("length_penalty", 1.0, low=-10.0, high=10.0),
        stop="never" if stopping == "never" else "full" if stopping else "all",
        like_transformers=True,
        max_tokens=config.integer("max_new_tokens", longest - 1, low=0),
        min_tokens=config.integer("min_new_tokens", max(shortest - 1, 0), low=0),
        first=first,
        last=last,
        no_repeat=config.integer("no_repeat_ngram_size", 0, low=0),
        never=excluded_tokens(config, highest),
    )


def first_of(value: Any) -> Any:
    """Return the only entry of a list; other values as they are."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def excluded_tokens(config: Config, highest: int) -> tuple[int, ...]:
    """Return the tokens that suppress_tokens and bad_words_ids exclude; words of several tokens are not supported."""
    words = [*config.get("bad_words_ids", []), *([token] for token in config.get("suppress_tokens", []))]
    for word in words:
        if not isinstance(word, list) or len(word) != 1 or type(word[0]) is not int or not 0 <= word[0] <= highest:
            raise FirthError(
                "unsupported_architecture",
                "generation_config.json: {name} must list single tokens from 0 to {limit:,}; got {got!r:.60}.",
                name="bad_words_ids",
                limit=highest,
                got=word,
            )
    return tuple(sorted({word[0] for word in words}))
