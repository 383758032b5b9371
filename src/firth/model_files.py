"""Models in one file, as others define it: fastText's .bin and .ftz; ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.report import Silence
from firth.formats.fasttext import FastTextFile, SparseRows, is_fasttext, read_fasttext, write_fasttext
from firth.kernels.product import ProductCodes
from firth.words.fasttext_quantization import quantize

SUFFIXES = (".bin", ".ftz")
MANY_ZEROS = 100_000_000  # bytes of a file that are said to be zeros


def load_file(path: Path, in_memory: bool = False) -> Model:
    """The model in a file, mapped from it or in memory; `firth.load` comes here."""
    if not is_fasttext(path):
        raise FirthError(
            "wrong_input",
            "{path} is a file and no fastText model; vectors are opened by firth.read_vectors.",
            path=path,
        )
    file = read_fasttext(path, in_memory)
    name = "FastTextClassifier" if file.args.model == "sup" else "FastText"
    method = registry.class_named(name)
    if method is None:
        raise FirthError(
            "missing_method", "{path} needs the method {name}, which is not installed.", path=path, name=name
        )
    model_class: Any = method.model
    model: Model = model_class.from_file(file)
    return model


def export(model: Model, path: str | os.PathLike[str], **settings: Any) -> float | None:
    """Writes a model as fastText reads it: .bin, or .ftz, quantised with the settings of
    `words.fasttext_quantization.quantize`;
    a BERT as .onnx.

    What quantising lost is given back, as a share of Σ|row|²; None where nothing was quantised.
    """
    target = Path(path)
    if target.suffix == ".onnx":
        if not hasattr(model, "to_onnx"):
            raise FirthError(
                "unsupported_model",
                ".onnx holds models such as BERT; {method} is none.",
                method=type(model.method).method_name(),
            )
        model.to_onnx(target)
        return None
    if target.suffix not in SUFFIXES:
        raise FirthError(
            "unknown_format",
            "Models in one file end with {suffixes} (fastText) or .onnx; got {got}.",
            suffixes=", ".join(SUFFIXES),
            got=target.name,
        )
    if not hasattr(model, "to_file"):
        raise FirthError(
            "unsupported_model",
            "{suffix} holds fastText's models; {method} gives none.",
            suffix=target.suffix,
            method=type(model.method).method_name(),
        )
    file: FastTextFile = model.to_file()
    is_quantized = isinstance(file.inputs, ProductCodes)
    if is_quantized and target.suffix == ".bin":
        raise FirthError("conflicting_options", "The model's rows are in codes; write it as .ftz.")
    if settings and (is_quantized or target.suffix == ".bin"):
        raise FirthError(
            "conflicting_options",
            "{settings} are for .ftz, of a model whose rows are not in codes yet.",
            settings=", ".join(settings),
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
