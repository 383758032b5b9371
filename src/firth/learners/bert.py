"""A BERT with its tokenizer: vectors of words and texts from any layer, words for blanks, where it looks; its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Attention, Model, Parts
from firth.core.storage import read_json, read_weights
from firth.core.vectors import Matrix, Vectors
from firth.data.subword_tokenizer import BERT as SPECIAL
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.learners import bert_files
from firth.learners.pooling import Pooling
from firth.learners.words import check_texts
from firth.nets.attention import Packed, keeping_weights
from firth.nets.bert import Bert, places_of
from firth.nets.transformer import Size

BATCH_TOKENS = 4096  # of texts that are read at once
Pair = tuple[str, str]


class BertModel(Model):
    """A net that reads texts from both sides, and the tokens it knows."""

    def __init__(
        self,
        method: Method,
        net: Bert,
        tokenizer: SubwordTokenizer,
        pooling: Pooling,
        training: Mapping[str, Any],
    ) -> None:
        lacking = [token for token in SPECIAL if token not in tokenizer.ids]
        if lacking:
            raise FirthError(f"A BERT's tokenizer needs {', '.join(SPECIAL)}; this one lacks {', '.join(lacking)}.")
        rows = net.input.tokens.num_embeddings
        if len(tokenizer) > rows:
            raise FirthError(f"The tokenizer has {len(tokenizer):,} tokens, the model rows for {rows:,}.")
        self.method, self.net, self.tokenizer, self.training = method, net.eval(), tokenizer, training
        self.pooling = pooling

    @property
    def size(self) -> Size:
        return self.net.size

    @property
    def device(self) -> torch.device:
        return next(self.net.parameters()).device

    @cached_property
    def vectors(self) -> Vectors:
        """The tokens' own vectors, before any context."""
        rows, known = self.net.input.tokens.weight.detach().cpu().numpy(), self.tokenizer.tokens
        return Vectors(
            [known.get(id, f"<no token {id}>") for id in range(len(self.tokenizer))], rows[: len(self.tokenizer)]
        )

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {"tokens": self.vectors}

    # ---- reading ----

    def read(self, inputs: Sequence[str | Pair]) -> list[Any]:
        """Each text, or pair of texts, with [CLS] and [SEP] around it: `tokenizers.Encoding`s."""
        found = self.tokenizer._call(self.tokenizer.engine.encode_batch, list(inputs))
        for encoding in found:
            self.check_length(len(encoding.ids))
        return list(found)

    def check_length(self, tokens: int) -> None:
        if tokens > self.size.places:
            raise FirthError(
                f"This text has {tokens:,} tokens and the model places for {self.size.places:,}: cut it into parts."
            )

    @torch.inference_mode()
    def states(self, text: str, other: str | None = None) -> NDArray[np.float32]:
        """All layers' vectors of a text's (or pair's) tokens, (layers + 1, tokens, dim): the input's first."""
        encoding = self.read([text if other is None else (text, other)])[0]
        found = self.net.states(*self.tensors([encoding.ids], [encoding.type_ids]))
        return torch.stack(found).float().cpu().numpy()

    def tensors(
        self, ids: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Packed]:
        """Texts one behind the other, as the net takes them."""
        packed = Packed.of(tuple(map(len, ids)), device=self.device)
        flat = torch.tensor([id for each in ids for id in each], device=self.device)
        kinds = (
            torch.zeros_like(flat)
            if segments is None
            else torch.tensor([kind for each in segments for kind in each], device=self.device)
        )
        return flat, places_of(packed, len(flat)), kinds, packed

    def embed(self, inputs: Sequence[str]) -> Matrix:
        """One row a text, by this model's pooling."""
        check_texts(inputs)
        ids = [encoding.ids for encoding in self.read(inputs)]
        return encode(self.net, ids, self.pooling, self.tensors)

    # ---- blanks ----

    @torch.inference_mode()
    def fill(self, text: str, k: int = 5) -> list[list[tuple[str, float]]]:
        """For each [MASK] of the text, the k most probable tokens with their probabilities."""
        if self.net.masked is None:
            raise FirthError("This model has no head that predicts masked words: its folder holds an encoder only.")
        encoding = self.read([text])[0]
        mask = self.tokenizer.ids["[MASK]"]
        blanks = [place for place, id in enumerate(encoding.ids) if id == mask]
        if not blanks:
            raise FirthError(f"There is no [MASK] in {text!r:.80}: put it where a word is to be found.")
        if k < 1:
            raise FirthError(f"k must be at least 1; got {k}.")
        hidden = self.net(*self.tensors([encoding.ids], [encoding.type_ids]))[blanks]
        chances = torch.softmax(self.net.masked_logits(hidden)[:, : len(self.tokenizer)].float(), dim=-1)
        best = chances.topk(min(k, len(self.tokenizer)))
        return [
            [(self.tokenizer.tokens.get(id, f"<no token {id}>"), value) for id, value in zip(ids, values, strict=True)]
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def attention(self, text: str, other: str | None = None) -> Attention:
        """Where each token looks; of a pair, both texts are one sequence."""
        encoding = self.read([text if other is None else (text, other)])[0]
        ids, places, segments, _ = self.tensors([encoding.ids], [encoding.type_ids])
        with keeping_weights(self.net) as kept:
            self.net.stack(self.net.input(ids, places, segments)[None])
            weights = torch.stack([part.kept[0] for part in kept.values() if part.kept is not None])
        return Attention(list(encoding.tokens), list(encoding.tokens), weights.float().cpu().numpy())

    # ---- files ----

    def parts(self) -> Parts:
        lowercase = bool((self.tokenizer._document.get("normalizer") or {}).get("lowercase"))
        documents = {
            "tokenizer": json.loads(self.tokenizer.to_json()),
            "tokenizer_config": {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": lowercase,
                "model_max_length": self.size.places,
                **{f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")},
            },
            "pooling": asdict(self.pooling),
        }
        return Parts(bert_files.to_bert(self.net), documents, bert_files.config_of(self.net))

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> BertModel:
        tokenizer = SubwordTokenizer.from_json(json.dumps(parts.documents["tokenizer"]))
        size = size_of(method)
        stored = dict(parts.documents["pooling"])
        pooling = Pooling(**stored | {"layers": tuple(stored["layers"])})
        return cls(
            method, bert_files.net_of(bert_files.from_bert(parts.arrays, size), size), tokenizer, pooling, training
        )

    @classmethod
    def from_foreign(cls, folder: Path, config: Mapping[str, Any], method: type[Method]) -> BertModel:
        """A BERT of Hugging Face, or of sentence-transformers with its pooling."""
        size = bert_files.size_of(config)
        net = bert_files.net_of(bert_files.from_bert(read_weights(folder), size), size)
        options = {
            "layers": size.layers, "dim": size.dim, "heads": size.heads, "hidden": size.hidden,
            "context": size.places, "dropout": size.dropout, "activation": size.activation, "epsilon": size.epsilon,
        }  # fmt: skip
        tokenizer = SubwordTokenizer.load(folder)
        return cls(method(**options), net, tokenizer, foreign_pooling(folder), {"source": "bert"})

    def __repr__(self) -> str:
        return f"BERT model: {self.size.layers} layers × {self.size.dim}, {len(self.tokenizer):,} tokens"


@torch.inference_mode()
def encode(net: Bert, ids: Sequence[Sequence[int]], pooling: Pooling, tensors: Callable[..., Any]) -> Matrix:
    """Texts by length, so many that together they have `BATCH_TOKENS`, without padding."""
    found = np.zeros((len(ids), pooling.dim(net.size.dim)), np.float32)
    order = sorted(range(len(ids)), key=lambda text: len(ids[text]))
    while order:
        batch, tokens = list[int](), 0
        while order and (not batch or tokens + len(ids[order[-1]]) <= BATCH_TOKENS):
            batch.append(order.pop())
            tokens += len(ids[batch[-1]])
        given = tensors([ids[text] for text in batch])
        found[batch] = pooling(net.states(*given), given[-1], net.size.layers).cpu().numpy()
    return found


def foreign_pooling(folder: Path) -> Pooling:
    """What sentence-transformers' files say; the mean of the last layer where there are none."""
    if not (folder / "modules.json").is_file():
        return Pooling()
    modules = read_json(folder / "modules.json")
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= {"Normalize"}:
        raise FirthError(
            f"{folder}: Firth reads Transformer, Pooling and Normalize; modules.json has {', '.join(kinds)}."
        )
    config = read_json(folder / str(modules[1]["path"]) / "config.json")
    how = config.get("pooling_mode") or next(
        (name for name in ("cls", "mean", "max") if config.get(f"pooling_mode_{name}_token{'s' * (name != 'cls')}")),
        None,
    )
    if how not in ("cls", "mean", "max"):
        raise FirthError(f"{folder}: Firth pools by cls, mean or max; the folder says {config}.")
    return Pooling(how=how, normalize="Normalize" in kinds)


def size_of(method: Any) -> Size:
    """The net that a method's options tell of."""
    return Size(
        layers=method.layers,
        dim=method.dim,
        heads=method.heads,
        hidden=method.hidden,
        places=method.context,
        dropout=method.dropout,
        activation=method.activation,
        pre_norm=False,
        epsilon=method.epsilon,
    )
