"""`firth distil TEACHER -o FOLDER [--text FILE]`: a transformer as a table of tokens; flags are its method's."""

from __future__ import annotations

import click

from firth.cli.train import Flag, train_command
from firth.core import registry

HELP = """Make a small, fast model of a BERT: a table of tokens whose means are near the BERT's vectors of texts.

TEACHER is a folder of Firth's, Hugging Face's or sentence-transformers'. Without --text the tokens alone are asked;
with text of the kind that will be embedded, the table is fitted to what the teacher says of its sentences, which is
better. The folder is model2vec's and sentence-transformers' too.
"""


def distil_command() -> click.Command:
    found = train_command("distil", registry.method("distil"), base=True, kind="maybe text")
    text = Flag(["--text", "data"], multiple=True, metavar="FILE", section="Data", help="Text to fit the table to.")
    found.params = [
        click.Argument(["start"], metavar="TEACHER"),
        *(text if param.name == "data" else param for param in found.params if param.name != "start"),
    ]
    found.help = HELP
    return found


command = distil_command()
