"""Models in single files of other libraries: fastText .bin and .ftz, GGUF, and ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.remote import RemotePath, as_path
from firth.core.report import Silence
from firth.core.storage import new_file
from firth.formats.detect import refuse_gensim_pickle
from firth.formats.fasttext import FastTextFile, SparseRows, is_fasttext, read_fasttext, write_fasttext
from firth.formats.gguf import is_gguf, read_gguf
from firth.kernels.product import ProductCodes
from firth.training.network_options import networks
from firth.words.fasttext_quantization import quantize

SUFFIXES = (".bin", ".ftz")
MANY_ZEROS = 100_000_000  # bytes of zeros in a file from which on a note is given


@runtime_checkable
class ReadsFastText(Protocol):
    """A model class that opens fastText files."""

    @classmethod
    def from_file(cls, file: FastTextFile) -> Model:
        """Return the model in the file."""


@runtime_checkable
class WritesFastText(Protocol):
    """A model that can be written as a fastText file."""

    def to_file(self) -> FastTextFile:
        """Return the contents of the file."""


@runtime_checkable
class WritesOnnx(Protocol):
    """A model that can be written as an ONNX file."""

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the file."""


def load_file(path: Path, in_memory: bool = False) -> Model:
    """Load the model in a file, memory-mapped or in memory, for `firth.load`."""
    if is_gguf(path):
        with networks():
            from firth.transformers.gguf_model import GGUFModel
        return GGUFModel(read_gguf(path, in_memory))
    if not is_fasttext(path):
        refuse_gensim_pickle(path)
        raise FirthError(
            "wrong_input",
            "{path} is not a fastText or GGUF model. Vector files are read by firth.read_vectors({path!r}).",
            path=str(path),
        )
    file = read_fasttext(path, in_memory)
    name = "FastTextClassifier" if file.args.model == "sup" else "FastText"
    method = registry.class_named(name)
    if method is None:
        raise FirthError(
            "missing_method", "{path} needs the method {method}, which is not installed.", path=path, method=name
        )
    model_class = method.model_class()
    assert issubclass(model_class, ReadsFastText)
    return model_class.from_file(file)


def export(model: Model, path: str | os.PathLike[str], **settings: Any) -> float | None:
    """Write a model as a fastText .bin or .ftz file, or a BERT model as an .onnx file.

    A .ftz file is quantized with the settings of `words.fasttext_quantization.quantize`. Return the quantization error
    as a share of Σ|row|², or None if nothing was quantized.
    """
    target = as_path(path)
    if isinstance(target, RemotePath):
        with new_file(target) as work:
            return export(model, work, **settings)
    if target.suffix == ".onnx":
        if not isinstance(model, WritesOnnx):
            raise FirthError(
                "unsupported_model",
                "{method} models cannot be exported to {suffix}, which is for models such as BERT.",
                suffix=".onnx",
                method=type(model.method).method_name(),
            )
        model.to_onnx(target)
        return None
    if target.suffix not in SUFFIXES:
        raise FirthError(
            "unknown_format",
            "Export files must end in {suffixes} (fastText) or .onnx; got {got}.",
            suffixes=", ".join(SUFFIXES),
            got=target.name,
        )
    if not isinstance(model, WritesFastText):
        raise FirthError(
            "unsupported_model",
            "{method} models cannot be exported to {suffix}, which is for fastText models.",
            suffix=target.suffix,
            method=type(model.method).method_name(),
        )
    file = model.to_file()
    is_quantized = isinstance(file.inputs, ProductCodes)
    if is_quantized and target.suffix == ".bin":
        raise FirthError(
            "conflicting_options",
            "The model is quantized and cannot be written as {suffix}. Write it as .ftz.",
            suffix=target.suffix,
        )
    if settings and (is_quantized or target.suffix == ".bin"):
        raise FirthError(
            "conflicting_options",
            "{options} only apply to writing an unquantized model as .ftz.",
            options=", ".join(settings),
        )
    error = None
    if target.suffix == ".ftz" and not is_quantized:
        file, error = quantize(file, **settings)
    write_fasttext(target, file)
    if isinstance(file.inputs, SparseRows):
        zeros = file.inputs.size - len(file.inputs.row_ids)
        if 4 * zeros * file.inputs.shape[1] > MANY_ZEROS:
            Silence().note(
                f"{4 * zeros * file.inputs.shape[1] / 1e6:,.0f} MB of {target} are zeros: a .bin file stores a row for "
                f"each of buckets={file.inputs.size:,}, but n-grams use only {len(file.inputs.row_ids):,}. Train with "
                "fewer buckets, or write a quantized .ftz file.",
                "empty_buckets",
            )
    return error
