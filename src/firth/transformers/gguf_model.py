"""A decoder in a GGUF file. Text is generated from its weights as they are stored."""

from __future__ import annotations

import json
from functools import cached_property
from math import prod

import torch

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.memory import check_memory
from firth.core.options import build_settings
from firth.core.vectors import Vectors
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.formats.gguf import GGUFFile
from firth.formats.gguf_tokenizer import tokenizer_document
from firth.kernels.decoder import Decoder as NativeDecoder
from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.transformers.chat import checked
from firth.transformers.families.decoders import read_decoder
from firth.transformers.families.gguf import GGUFWeights, gguf_architecture
from firth.transformers.families.weights import match_state
from firth.transformers.generation import Engine
from firth.transformers.gpt_files import TextSettings, options_of
from firth.transformers.gpt_model import GPTModel
from firth.transformers.native_decoder import PRECISIONS, checked_precision, native_net, quantized
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_settings import SentenceSettings
from firth.transformers.sentence_transformers_folder import SentenceFiles

ROLES = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}  # of special tokens, there and here


class GGUFModel(GPTModel):
    """A causal language model in a GGUF file. Its torch network is made when it is needed, with weights as float32."""

    def __init__(self, file: GGUFFile) -> None:
        architecture = gguf_architecture(file)
        self.weights = GGUFWeights(file, architecture)
        self.method = build_settings(registry.method("gpt"), options_of(architecture))
        self.tokenizer = tokenizer_of(file)
        self.training = {"source": f"gguf {file.metadata['general.architecture']}"}
        template = file.metadata.get("tokenizer.chat_template")
        more = (file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot"))
        ends = tuple(id for id in more if type(id) is int)
        self.settings = TextSettings(checked(template) if isinstance(template, str) else None, ends)
        self.sentence = SentenceFiles(Pooling(), None, SentenceSettings())
        self.check()

    def check(self) -> None:
        """Raise an error unless the file has the tensors of its architecture, with finite values, that fit memory."""
        file = self.weights.file
        rows = len(file.tensors["token_embd.weight"]) if "token_embd.weight" in file.tensors else 1
        if len(self.tokenizer) > rows:
            raise FirthError(
                "invalid_tokenizer",
                "{path}: the tokenizer has {n_tokenizer:,} tokens, but the model has {rows:,} embedding rows.",
                path=file.path,
                n_tokenizer=len(self.tokenizer),
                rows=rows,
            )
        with torch.device("meta"):  # shapes without allocation
            shapes = {name: tuple(part.shape) for name, part in Decoder(rows, self.size).state_dict().items()}
        try:
            match_state(self.weights.family(), file.tensors, self.size, shapes)
        except FirthError as error:
            raise error.within(file.path) from None
        check_memory(sum(tensor.rows.nbytes for tensor in file.tensors.values()), file.path)
        damaged = next((name for name, tensor in file.tensors.items() if not tensor.is_finite()), None)
        if damaged:
            raise FirthError(
                "damaged_model",
                "{path}: {array} contains NaN or infinity: the file is damaged, or training diverged.",
                path=file.path,
                array=damaged,
            )

    @property
    def size(self) -> Architecture:
        """The dimensions of the network."""
        return self.weights.size

    @cached_property
    def net(self) -> Decoder:  # type: ignore[override]
        """The torch network."""
        file = self.weights.file
        check_memory(4 * sum(prod(tensor.shape) for tensor in file.tensors.values()), f"{file.path} as float32")
        return read_decoder(self.weights.family(), self.weights.arrays(), self.size)

    @cached_property
    def vectors(self) -> Vectors:
        """The token embeddings, without context, read without the rest of the network."""
        rows = self.weights.array("embedding.tokens.weight")
        assert rows is not None
        return self.token_vectors(rows)

    def engine(self, precision: str = "auto") -> Engine:
        """Return the native engine; `precision` is that of the file (auto), float32, int8 or int4."""
        if precision not in self._engines:
            net = native_net(self.weights, self.weights.stored_size, len(self.tokenizer))
            if precision != "auto":
                net = quantized(net, PRECISIONS[checked_precision(precision)])
            self._engines[precision] = NativeDecoder(net, torch.get_num_threads())
        return self._engines[precision]

    @property
    def engine_description(self) -> str:
        """Which engine generates text, and why."""
        kinds = sorted({tensor.storage.name for tensor in self.weights.file.tensors.values() if tensor.ndim > 1})
        return f"native, with weights as stored in the file ({', '.join(kinds)}); torch in float32 for everything else"


def tokenizer_of(file: GGUFFile) -> SubwordTokenizer:
    """Return the tokenizer of a file, with its special tokens."""
    document = tokenizer_document(file)
    tokens = file.metadata["tokenizer.ggml.tokens"]
    ids = {ours: file.metadata.get(f"tokenizer.ggml.{theirs}_token_id") for theirs, ours in ROLES.items()}
    names = {f"{role}_token": tokens[id] for role, id in ids.items() if type(id) is int and 0 <= id < len(tokens)}
    return SubwordTokenizer.from_json(json.dumps(document), str(file.path), config=names)
