"""`firth pooling MODEL -o FOLDER`: a BERT with another pooling: set, whitened, or selected on scored pairs; a model of
words with smoothing, or with a transform for vectors of unknown words."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import data_options, json_flag, open_model, print_json, unsupported
from firth.cli.pooling_options import given_pooling, pooling_flags
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Model
    from firth.data.corpus import Corpus
    from firth.evaluate.sentences import PoolingChoice
    from firth.transformers.bert_model import BertModel


@click.command()
@click.argument("path", metavar="MODEL")
@click.option("-o", "--output", "folder", required=True, metavar="FOLDER", help="The folder of the new model.")
@click.option("--overwrite", is_flag=True, help="Replace the model in FOLDER.")
@pooling_flags
@click.option("--choose", metavar="PAIRS", help="Select layers and pooling by correlation with scored sentence pairs.")
@click.option("--whiten", metavar="DATA", help="Whiten the vectors; mean and covariance come from these texts.")
@click.option("--dim", type=int, default=0, metavar="N", help="--whiten: keep N dimensions; 0 = all.")
@click.option("--smoothing", type=float, metavar="A", help="Models of words: weight words by A/(A+frequency); 0 = off.")
@click.option(
    "--contexts",
    metavar="DATA",
    help="Models of words: learn from this text how the context of an unknown word becomes its vector.",
)
@data_options
@json_flag
def command(path: str, folder: str, overwrite: bool, as_json: bool, **values: Any) -> None:
    """Write MODEL with another pooling: of token vectors (BERT), or of word vectors (--smoothing, such as 0.001).

    PAIRS is a .csv, .tsv or .jsonl file with two texts and a score per row: one half selects the pooling, the other
    half measures it. sentence-transformers opens the folder too, if it supports that pooling.
    """
    from firth.data.corpus import Corpus
    from firth.transformers.pooling import PoolsTokens

    model = open_model(path)
    settings = given_pooling(model, path, values)
    if values["smoothing"] is not None or values["contexts"]:
        corpus = values["contexts"] and Corpus(
            values["contexts"], unit=values["unit"], column=values["column"], key=values["key"]
        )
        write_words(model, path, folder, values["smoothing"], corpus, overwrite, as_json)
        return
    if not isinstance(model, PoolsTokens):
        advice = "Choose a bert model, or pass --smoothing for a model of words."
        raise unsupported(model, path, "has no pooling", advice)
    changed = model.with_pooling(**settings)
    choice = None
    if values["choose"]:
        flags = {"how": "--pooling", "layers": "--layers", "combine": "--combine"}
        for name in flags.keys() & settings.keys():
            raise click.UsageError(f"--choose and {flags[name]} cannot be combined.")
        if model.projection is not None:
            raise FirthError(
                "conflicting_options",
                "--choose needs plain vectors, and those of {path} are whitened or shortened. Use --choose first.",
                path=path,
            )
        choice = select_pooling(changed, values["choose"])
        changed = changed.with_pooling(how=choice.best.how, layers=choice.best.layers, combine="mean")
    if values["whiten"]:
        texts = Corpus(values["whiten"], unit=values["unit"], column=values["column"], key=values["key"])
        changed = changed.whitened([text for _, text in texts], values["dim"])
    elif values["dim"]:
        raise click.UsageError("--dim needs --whiten.")
    changed.save(folder, overwrite=overwrite)
    if as_json:
        print_json(
            {
                "folder": folder,
                "pooling": asdict(changed.pooling),
                "dim": changed.dim_of(changed.pooling),
                "choice": choice and choice.to_json(),
            }
        )
        return
    if choice is not None:
        click.echo(f"{choice}\n")
    pooling = changed.pooling
    layers = ", ".join(map(str, pooling.layers))
    click.echo(f"{folder}: {pooling.how} of layers {layers}, {changed.dim_of(pooling)} dimensions")


def write_words(
    model: Model, path: str, folder: str, smoothing: float | None, corpus: Corpus | None, overwrite: bool, as_json: bool
) -> None:
    """Write a model of words with another default of `smoothing`, or a transform for vectors of unknown words."""
    from firth.core.model import AveragesWords

    changed = model
    for flag, given in (("smoothing", smoothing), ("contexts", corpus)):
        if given is not None and not isinstance(changed, AveragesWords):
            raise unsupported(model, path, f"does not average word vectors, so --{flag} does not apply to it")
    if smoothing is not None and isinstance(changed, AveragesWords):
        changed = changed.with_smoothing(smoothing)
    if corpus is not None and isinstance(changed, AveragesWords):
        changed = changed.with_context_transform(corpus)
    changed.save(folder, overwrite=overwrite)
    assert isinstance(changed, AveragesWords)
    if as_json:
        print_json({"folder": folder, "smoothing": changed.smoothing, "contexts": corpus is not None})
        return
    transform = ", vectors of unknown words from their contexts" if corpus is not None else ""
    click.echo(f"{folder}: mean of word vectors, smoothing {changed.smoothing:g}{transform}")


def select_pooling(model: BertModel, path: str) -> PoolingChoice:
    """Return the layers and pooling with the highest correlation on sentence pairs."""
    from firth.evaluate.sentences import choose_pooling, read_sentence_pairs

    every = replace(model.pooling, layers=tuple(range(model.size.layers + 1)), combine="concat", normalize=False)

    def layers_of(how: str, texts: Any) -> Any:
        return model.embed(texts, pooling=replace(every, how=how)).reshape(len(texts), model.size.layers + 1, -1)

    return choose_pooling(layers_of, read_sentence_pairs(path))
