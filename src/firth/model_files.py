"""Models in one file, as others define it: fastText's .bin and .ftz; ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.report import Silence
from firth.formats.fasttext import FastTextFile, SpreadRows, is_fasttext, read_fasttext, write_fasttext
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
    kind: Any = method.model
    model: Model = kind.from_file(file)
    return model


def export(model: Model, path: str | os.PathLike[str], **settings: Any) -> float | None:
    """Writes a model as fastText reads it: .bin, or .ftz, quantised with the settings of
    `words.fasttext_quantization.quantize`;
    a BERT as .onnx.

    What quantising lost is given back, as a share of Σ|row|²; None where nothing was quantised.
    """
    place = Path(path)
    if place.suffix == ".onnx":
        if not hasattr(model, "to_onnx"):
            raise FirthError(
                "unsupported_model",
                ".onnx holds models such as BERT; {method} is none.",
                method=type(model.method).method_name(),
            )
        model.to_onnx(place)
        return None
    if place.suffix not in SUFFIXES:
        raise FirthError(
            "unknown_format",
            "Models in one file end with {suffixes} (fastText) or .onnx; got {got}.",
            suffixes=", ".join(SUFFIXES),
            got=place.name,
        )
    if not hasattr(model, "to_file"):
        raise FirthError(
            "unsupported_model",
            "{suffix} holds fastText's models; {method} gives none.",
            suffix=place.suffix,
            method=type(model.method).method_name(),
        )
    file: FastTextFile = model.to_file()
    coded = isinstance(file.inputs, ProductCodes)
    if coded and place.suffix == ".bin":
        raise FirthError("conflicting_options", "The model's rows are in codes; write it as .ftz.")
    if settings and (coded or place.suffix == ".bin"):
        raise FirthError(
            "conflicting_options",
            "{settings} are for .ftz, of a model whose rows are not in codes yet.",
            settings=", ".join(settings),
        )
    error = None
    if place.suffix == ".ftz" and not coded:
        file, error = quantize(file, **settings)
    write_fasttext(place, file)
    if isinstance(file.inputs, SpreadRows):
        zeros = file.inputs.size - len(file.inputs.places)
        if 4 * zeros * file.inputs.shape[1] > MANY_ZEROS:
            Silence().note(
                f"{4 * zeros * file.inputs.shape[1] / 1e6:,.0f} MB of {place} are zeros: a .bin has a row for each of "
                f"buckets={file.inputs.size:,}, and n-grams use {len(file.inputs.places):,}. Train with fewer buckets, "
                "or write a .ftz, which is quantised."
            )
    return error
