"""`firth compare spaces OLD NEW`: one vector space aligned with another, and the words that moved most."""

from __future__ import annotations

import click

from firth.cli.common import (
    json_flag,
    open_vectors,
    print_fields,
    print_json,
    print_table,
    protect_inputs,
    restrict_option,
)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("-o", "--output", metavar="FILE", help="Write the vectors of OLD, rotated into the space of NEW.")
@click.option("--pairs", metavar="FILE", help="Corresponding words, two per line, as between languages.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many words to list.")
@restrict_option
@json_flag
def command(
    old: str, new: str, output: str | None, pairs: str | None, k: int, restrict: int | None, as_json: bool
) -> None:
    """Rotate the space of OLD onto that of NEW by their common words, and list the words that moved most.

    Both are model folders or vector files of the same dimension: two years, two training runs, two languages.
    """
    from firth.formats import write_vectors
    from firth.studies import align, read_word_pairs

    protect_inputs(output, old, new, pairs or "")
    word_pairs = read_word_pairs(pairs) if pairs else None
    aligned = align(open_vectors(old), open_vectors(new), pairs=word_pairs, restrict=restrict)
    if output:
        write_vectors(aligned.vectors, output)
    summary = aligned.to_json(k)
    if as_json:
        print_json({**summary, "output": output})
        return
    cosines = summary["mean_cosine"]
    print_fields({"common words": summary["words"], "mean cosine": f"{cosines['after']:.4f}", "written": output})
    click.echo()
    moved, stayed = aligned.moved(k), aligned.stayed(k)
    rows = [[a.key, f"{a.score:.4f}", b.key, f"{b.score:.4f}"] for a, b in zip(moved, stayed, strict=True)]
    print_table(("moved most", "cosine", "moved least", "cosine"), rows, numbers=(1, 3))
