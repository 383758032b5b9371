"""`firth convert IN OUT`: vectors in another format."""

from __future__ import annotations

import click

from firth.cli.common import open_vectors


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
def command(source: str, target: str, format: str | None, storage: str) -> None:
    """Write the vectors of IN, a model folder or any vector file, to the file OUT.

    \b
    .txt .w2v      word2vec text        .npy           NumPy, keys in NAME.keys.json
    .bin           word2vec binary      .safetensors   one file, mapped when opened
    .vec           fastText text        .glove         GloVe text
    """
    from firth.formats import write_vectors

    vectors = open_vectors(source)
    write_vectors(vectors, target, format, storage)
    click.echo(f"{len(vectors):,} vectors of {vectors.dim} in {target}")
