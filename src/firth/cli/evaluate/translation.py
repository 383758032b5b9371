"""`firth evaluate translation MODEL DATA…`: BLEU of translations."""

from __future__ import annotations

import click

from firth.cli.common import add_flags, file_flags, json_flag, print_json
from firth.cli.generate.translation import DECODING_OPTIONS, note_truncated, open_translator
from firth.data.shared_options import TRANSLATION_OPTIONS


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@add_flags(file_flags(TRANSLATION_OPTIONS))
@add_flags(DECODING_OPTIONS)
@json_flag
def command(
    path: str,
    data: tuple[str, ...],
    source: str,
    target: str,
    beam: int | None,
    length_penalty: float | None,
    max_new_tokens: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure the BLEU score of translations. Needs the package sacrebleu.

    DATA are two parallel files (sources, references), or one table (csv, tsv, jsonl, Parquet).
    """
    from firth.data.translation_pairs import TranslationPairs
    from firth.evaluate.translation import bleu

    translator = open_translator(path).to(device)
    pairs = list(TranslationPairs(*data, source=source, target=target))
    translations = translator.translations([pair.source for pair in pairs], beam, length_penalty, max_new_tokens)
    score = bleu([translation.text for translation in translations], [pair.target for pair in pairs])
    note_truncated(translations)
    if as_json:
        print_json({path: {"bleu": score, "texts": len(pairs)}})
    else:
        click.echo(f"BLEU {score:.2f} on {len(pairs):,} texts")
