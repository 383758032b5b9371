"""`firth convert IN OUT`: vectors in another format, models from and to fastText's, a BERT as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firth.cli.common import is_model_file, json_flag, keep_inputs, open_model, open_vectors, print_json, table_option
from firth.core.errors import FirthError


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--format", metavar="NAME", help="The format of OUT, where its suffix does not say it.")
@click.option(
    "--storage",
    type=click.Choice(("float", "half", "int8")),
    default="float",
    show_default=True,
    help="Bytes a number: 4, 2 or 1 (the last two in .safetensors).",
)
@table_option
@click.option("--cutoff", type=int, metavar="N", help=".ftz: keep only the N longest rows.")
@click.option("--norms", is_flag=True, help=".ftz: rows' lengths get codes of their own.")
@click.option(
    "--pickled", is_flag=True, help="IN is a folder with pytorch_model.bin: read its tensors alone, as safetensors."
)
@json_flag
def command(
    source: str,
    target: str,
    format: str | None,
    storage: str,
    table: str | None,
    cutoff: int | None,
    norms: bool,
    pickled: bool,
    as_json: bool,
) -> None:
    """Write the vectors of IN, a model or any vector file, to the file OUT.

    \b
    .txt .w2v      word2vec text        .npy           NumPy, keys in NAME.keys.json
    .bin           word2vec binary      .safetensors   one file, mapped when opened
    .vec           fastText text        .glove         GloVe text

    A model with subwords or labels becomes a fastText model: .bin whole, .ftz quantised. A fastText model, and a
    network's folder that another library wrote, become a model folder where OUT has no suffix. A BERT becomes .onnx,
    with its pooling inside.
    """
    from firth.core.foreign import foreign_config
    from firth.formats import format_of_name, write_vectors

    def tell(said: str, **facts: Any) -> None:
        print_json({**facts, "output": target}) if as_json else click.echo(said)

    keep_inputs(target, source)
    if pickled:
        from firth.training.network_options import torch_module

        count = torch_module("transformers.pickled_weights").convert_pickled(Path(source), Path(target))
        return tell(f"{count:,} arrays as safetensors in {target}", arrays=count)
    settings: dict[str, Any] = {"cutoff": cutoff} if cutoff is not None else {}
    settings |= {"norms": True} if norms else {}
    place = Path(target)
    suffix = place.suffix.lower()
    if suffix == ".onnx" and format is None:
        size, _ = written(open_model(source), place, {})
        return tell(f"an ONNX model of {size:,} bytes in {target}", bytes=size)
    is_model = Path(source).is_dir() or is_model_file(source)
    whole_model = is_model and format is None and table is None
    model = open_model(source) if whole_model and suffix in (".bin", ".ftz") else None
    if model is not None and (hasattr(model, "to_file") or suffix == ".ftz"):
        if storage != "float":
            raise FirthError(
                "conflicting_options",
                "fastText's models hold float, or codes in .ftz; --storage {storage} needs .safetensors.",
                storage=storage,
            )
        size, error = written(model, place, settings)
        lost = "" if error is None else f", quantised with a relative squared error of {error:.2%}"
        return tell(f"a fastText model of {size:,} bytes in {target}{lost}", bytes=size, error=error)
    if settings:
        raise FirthError("conflicting_options", "--cutoff and --norms are for fastText's models in .ftz.")
    foreign = is_model_file(source) or (is_model and foreign_config(Path(source)))
    if foreign and whole_model and format_of_name(place) is None and not suffix:
        open_model(source).save(place)
        return tell(f"a model folder in {target}")
    vectors = open_vectors(source, table)
    write_vectors(vectors, target, format, storage)
    return tell(f"{len(vectors):,} vectors of {vectors.dim} in {target}", rows=len(vectors), dim=vectors.dim)


def written(model: Any, place: Path, settings: dict[str, Any]) -> tuple[int, float | None]:
    """A model as a file of another library: its bytes, and what quantising lost."""
    from firth.model_files import export

    error = export(model, place, **settings)
    return place.stat().st_size, error
