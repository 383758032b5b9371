"""`firth convert IN OUT`: vectors in another format, models from and to fastText, a BERT as ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import (
    is_model_file,
    json_flag,
    open_model,
    open_vectors,
    print_json,
    protect_inputs,
    table_option,
)
from firth.core.errors import FirthError
from firth.core.remote import AnyPath, as_path, is_url
from firth.core.remote_folders import local_path

if TYPE_CHECKING:
    from firth.core.model import Model

STORAGE = {"float32": "float", "float16": "half", "int8": "int8"}  # the name of each dtype in firth.formats


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--format", metavar="NAME", help="The format of OUT, if its suffix does not determine it.")
@click.option(
    "--dtype",
    type=click.Choice(tuple(STORAGE)),
    default="float32",
    show_default=True,
    help="How vectors are stored; float16 and int8 need .safetensors.",
)
@table_option
@click.option("--cutoff", type=int, metavar="N", help=".ftz: keep only the N rows with the largest norms.")
@click.option("--norms", is_flag=True, help=".ftz: quantize the norms of rows separately.")
@click.option(
    "--pickled", is_flag=True, help="IN is a folder with pytorch_model.bin: convert its tensors to safetensors."
)
@json_flag
def command(
    source: str,
    target: str,
    format: str | None,
    dtype: str,
    table: str | None,
    cutoff: int | None,
    norms: bool,
    pickled: bool,
    as_json: bool,
) -> None:
    """Write the vectors of IN, a model or a vector file, to the file OUT.

    \b
    .txt .w2v      word2vec text        .npy           NumPy, keys in NAME.keys.json
    .bin           word2vec binary      .safetensors   one file, memory-mapped
    .vec           fastText text        .glove         GloVe text

    A model with subwords or labels can be written as a fastText model: .bin, or .ftz quantized. A fastText model, or a
    network of another library, is written as a model folder if OUT has no suffix. Adapters (LoRA) are merged into their
    base. A BERT can be written as .onnx, with its pooling.
    """
    from firth.core.model import merged
    from firth.core.saved import external_opener
    from firth.formats import format_of_name, write_vectors
    from firth.model_files import WritesFastText
    from firth.transformers.huggingface_folder import ADAPTER_CONFIG

    def report(text: str, **fields: Any) -> None:
        print_json({**fields, "output": target}) if as_json else click.echo(text)

    protect_inputs(target, source)
    if pickled:
        from firth.training.network_options import networks

        with networks():
            from firth.transformers.pickled_weights import convert_pickled
        count = convert_pickled(local_path(source), as_path(target))
        return report(f"{count:,} arrays as safetensors in {target}", arrays=count)
    settings: dict[str, Any] = {"cutoff": cutoff} if cutoff is not None else {}
    settings |= {"norms": True} if norms else {}
    output = as_path(target)
    suffix = output.suffix.lower()
    if suffix == ".onnx" and format is None:
        size, _ = export_model(open_model(source), output, {})
        return report(f"an ONNX model of {size:,} bytes in {target}", bytes=size)
    is_model = as_path(source).is_dir() or is_model_file(source)
    is_complete = is_model and format is None and table is None
    model = open_model(source) if is_complete and suffix in (".bin", ".ftz") else None
    if model is not None and (isinstance(model, WritesFastText) or suffix == ".ftz"):
        size, error = export_fasttext(model, output, settings, dtype)
        lost = "" if error is None else f", quantized with a relative squared error of {error:.2%}"
        return report(f"a fastText model of {size:,} bytes in {target}{lost}", bytes=size, error=error)
    if settings:
        raise FirthError("conflicting_options", "--cutoff and --norms need the output format .ftz.")
    foreign = is_model_file(source) or (is_model and external_opener(local_path(source)) is not None)
    adapter = is_model and (local_path(source) / ADAPTER_CONFIG).is_file()
    copied = is_url(source) or is_url(target)  # a model folder as it is
    if (foreign or adapter or copied) and is_complete and format_of_name(output) is None and not suffix:
        merged(open_model(source)).save(target)
        return report(f"a model folder in {target}")
    vectors = open_vectors(source, table)
    write_vectors(vectors, target, format, STORAGE[dtype])
    return report(f"{len(vectors):,} vectors of {vectors.dim} in {target}", rows=len(vectors), dim=vectors.dim)


def export_fasttext(model: Model, output: AnyPath, settings: dict[str, Any], dtype: str) -> tuple[int, float | None]:
    """Write a model as a fastText file; return its bytes and the quantization error."""
    if dtype != "float32":
        raise FirthError(
            "conflicting_options",
            "A fastText model has float32 vectors, or quantized ones in .ftz. --dtype {dtype} needs .safetensors.",
            dtype=dtype,
        )
    return export_model(model, output, settings)


def export_model(model: Model, output: AnyPath, settings: dict[str, Any]) -> tuple[int, float | None]:
    """Write a model as a file of another library; return its bytes and the quantization error."""
    from firth.model_files import export

    error = export(model, str(output), **settings)
    return output.stat().st_size, error
