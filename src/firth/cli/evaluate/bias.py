"""`firth evaluate bias MODEL… DATA`: association tests of word vectors (WEAT)."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_vectors
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool) -> None:
    """Test which words are associated with which attributes (WEAT): effect sizes with permutation p-values.

    DATA has tests of four sets of words, two of targets and two of attributes:

    \b
      : occupations and gender
      science: physics chemistry engineer …
      arts: poetry dance novel …
      male: he man brother …
      female: she woman sister …

    A positive effect associates the first targets with the first attributes. MODEL is a model folder or a vector file.
    """
    from firth.evaluate import associations, read_association_tests

    tests = read_association_tests(data)
    print_results(models, lambda path: associations(open_vectors(path), tests), as_json)
