"""A BERT in files: its architecture, as options of the method and as the config of its family, and its documents."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import build_settings
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.nets.architecture import PLAIN_ACTIVATIONS, Architecture
from firth.nets.encoder import Encoder
from firth.transformers.adapters import adapter_parts
from firth.transformers.families import ENCODERS
from firth.transformers.families.encoders import encoder_config, write_encoder
from firth.transformers.families.family import Config
from firth.transformers.sentence_transformers_folder import sentence_documents, step_arrays

if TYPE_CHECKING:
    from firth.transformers.bert_model import BertModel

NETWORK = "network"  # document with the config of a network that the method's options do not describe
OLD_SIZE_NAMES = {"hidden": "feedforward_dim", "places": "max_positions"}  # of folders that earlier versions saved


def check_tokenizer(tokenizer: SubwordTokenizer, net: Encoder) -> None:
    """Raise invalid_tokenizer if a tokenizer does not fit a network."""
    segments = tokenizer._call(tokenizer.engine.encode, "a").type_ids
    if 0 < net.size.segments <= max(segments, default=0):
        raise FirthError(
            "invalid_tokenizer",
            "The tokenizer gives a text segment {got:,}, but the model has {segments} segments (type_vocab_size). Use "
            "the tokenizer that the weights were trained with.",
            got=max(segments),
            segments=net.size.segments,
        )
    if not tokenizer.template.added:
        raise FirthError(
            "invalid_tokenizer",
            "The tokenizer of an encoder must add special tokens to a text, such as [CLS] and [SEP]; this one adds "
            "{tokens}. Check its post_processor.",
            tokens="nothing",
        )
    rows = net.input.tokens.num_embeddings
    if len(tokenizer) > rows:
        raise FirthError(
            "invalid_tokenizer",
            "The tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows. Use the "
            "tokenizer that the weights were trained with.",
            n_tokenizer=len(tokenizer),
            rows=rows,
        )


def model_parts(model: BertModel) -> Parts:
    """Return the arrays and documents of a model, in Hugging Face's format, or those of its adapter."""
    if model.adapter is not None:
        stored = adapter_parts(model.adapter, model.net, model.size, "FEATURE_EXTRACTION", {}, prefixed=False)
        sentence = sentence_documents(model.pooling, model.projection, model.sentence, model.size)
        documents = {**stored.documents, "pooling": asdict(model.pooling), **sentence}
        return replace(stored, documents=documents, more={**stored.more, **step_arrays(model.projection)})
    lowercase = bool((model.tokenizer._document.get("normalizer") or {}).get("lowercase"))
    is_wordpiece = model.tokenizer._document["model"]["type"] == "WordPiece" and model.size.family == "bert"
    documents = {
        "tokenizer": json.loads(model.tokenizer.to_json()),
        "tokenizer_config": {
            "tokenizer_class": "BertTokenizer" if is_wordpiece else "PreTrainedTokenizerFast",
            "do_lower_case": lowercase,
            "model_max_length": model.pooling.max_tokens or model.size.max_positions,
            **model.tokenizer.special.config(),
        },
        "pooling": asdict(model.pooling),
        **sentence_documents(model.pooling, model.projection, model.sentence, model.size),
    }
    ids = {role: token.id for role, token in model.tokenizer.special.by_role.items() if role not in ("unk", "mask")}
    foreign = encoder_config(ENCODERS[model.size.family], model.net, ids)
    if not isinstance(model.method, Shaped) or size_of(model.method) != model.size:
        documents[NETWORK] = foreign  # more than the options of the method say
    more = step_arrays(model.projection)
    return Parts(write_encoder(ENCODERS[model.size.family], model.net), documents, foreign, more=more)


def shape_options(size: Architecture) -> dict[str, Any]:
    """Return the options of the method BERT that describe a network."""
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "epsilon")
    options = {name: getattr(size, name) for name in names} | {"context_length": size.max_positions}
    return options | ({"activation": size.activation} if size.activation in PLAIN_ACTIVATIONS[:3] else {})


def stored_architecture(method: Method, parts: Parts) -> Architecture:
    """Return the architecture of a saved network: its config, or the options of the method."""
    network, older = parts.documents.get(NETWORK), parts.documents.get("size")
    if network is not None:
        if not isinstance(network, dict) or network.get("model_type") not in ENCODERS:
            raise FirthError("damaged_model", "{name}.json must have a model_type that Firth opens.", name=NETWORK)
        size = ENCODERS[network["model_type"]].architecture(Config(network))
        build_settings(registry.method("bert"), shape_options(size))  # checks the ranges
        return size
    if older is not None:
        options = {OLD_SIZE_NAMES.get(name, name): value for name, value in older.items()}
        names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
        described = {name: options[name] for name in names} | {"context_length": options["max_positions"]}
        method = build_settings(registry.method("bert"), described)
    segments = parts.arrays.get("embeddings.token_type_embeddings.weight")
    if segments is None:
        segments = parts.arrays.get("bert.embeddings.token_type_embeddings.weight")
    return replace(size_of(method), segments=2 if segments is None or not segments.ndim else len(segments))


@runtime_checkable
class Shaped(Protocol):
    """Options that give the size of a network."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The layers, dim and heads."""


def size_of(method: Method) -> Architecture:
    """Return the architecture that a method's options give."""
    assert isinstance(method, Shaped)
    (layers, dim, heads), options = method.shape, method.options()
    return Architecture(
        layers=layers,
        dim=dim,
        heads=heads,
        feedforward_dim=options["feedforward_dim"],
        max_positions=options["context_length"],
        dropout=options["dropout"],
        activation=options["activation"],
        family="bert",
        pre_norm=False,
        epsilon=options["epsilon"],
        segments=2,
        embedding_norm=True,
    )
