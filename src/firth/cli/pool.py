"""`firth pool MODEL -o FOLDER`: a BERT with another way from its tokens to a text's vector, set, whitened or chosen."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import data_options, json_flag, open_model, print_json
from firth.cli.pooling import given_pooling, pooling_flags
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.evaluate.sentences import PoolingChoice
    from firth.transformers.bert_model import BertModel


@click.command()
@click.argument("model")
@click.option("-o", "--output", "folder", required=True, metavar="FOLDER", help="Where the changed model goes.")
@click.option("--overwrite", is_flag=True, help="Replace what is in FOLDER.")
@pooling_flags
@click.option("--choose", metavar="PAIRS", help="Take the layers and pooling that fit people's scores of pairs best.")
@click.option("--whiten", metavar="DATA", help="Whiten the vectors, by what these texts are like.")
@click.option("--dim", type=int, default=0, metavar="N", help="Whitened: keep N dimensions; 0 = all.")
@data_options
@json_flag
def command(model: str, folder: str, overwrite: bool, as_json: bool, **values: Any) -> None:
    """Write MODEL, a BERT, with another way from its tokens to a text's vector.

    PAIRS is a .csv, .tsv or .jsonl file with two texts and a score in each row; half of them choose, the other half
    tells what the choice is worth. sentence-transformers opens the folder too, where it knows that pooling.
    """
    from firth.data.corpus import Corpus

    found: Any = open_model(model)
    settings = given_pooling(found, values)
    if not hasattr(found, "with_pooling"):
        raise FirthError(
            "unsupported_model",
            "{model} is no BERT ({method}): it has no pooling to change.",
            model=model,
            method=type(found.method).method_name(),
        )
    changed: BertModel = found.with_pooling(**settings)
    choice = None
    if values["choose"]:
        flags = {"how": "--pooling", "layers": "--layers", "combine": "--combine"}
        for name in flags.keys() & settings.keys():
            raise click.UsageError(f"--choose or {flags[name]}, not both.")
        if found.projection is not None:
            raise FirthError(
                "conflicting_options",
                "--choose is of plain vectors; those of {model} are whitened or cut. Choose before that.",
                model=model,
            )
        choice = chosen(changed, values["choose"])
        changed = changed.with_pooling(how=choice.best.how, layers=choice.best.layers, combine="mean")
    if values["whiten"]:
        texts = Corpus(values["whiten"], unit=values["unit"], column=values["column"], key=values["key"])
        changed = changed.whitened([text for _, text in texts], values["dim"])
    elif values["dim"]:
        raise click.UsageError("--dim goes with --whiten.")
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


def chosen(model: BertModel, path: str) -> PoolingChoice:
    from firth.evaluate.sentences import choose_pooling, read_sentence_pairs

    every = replace(model.pooling, layers=tuple(range(model.size.layers + 1)), combine="concat", normalize=False)

    def layers_of(how: str, texts: Any) -> Any:
        return model.embed(texts, replace(every, how=how)).reshape(len(texts), model.size.layers + 1, -1)

    return choose_pooling(layers_of, read_sentence_pairs(path))
