"""`firth align OLD NEW`: one space turned onto another, and the words that moved most."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, keep_inputs, open_vectors, print_facts, print_json, print_table, restrict_option


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("-o", "--output", metavar="FILE", help="Write OLD's vectors, turned into NEW's space.")
@click.option("--pairs", metavar="FILE", help="Which words belong together, two a line, as between languages.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many words to tell.")
@restrict_option
@json_flag
def command(
    old: str, new: str, output: str | None, pairs: str | None, k: int, restrict: int | None, as_json: bool
) -> None:
    """Turn the space of OLD onto that of NEW by the words that both have, and tell which moved most.

    Both are model folders or vector files of the same dimension: two years, two trainings, two languages.
    """
    from firth.formats import write_vectors
    from firth.studies import align, read_word_pairs

    keep_inputs(output, old, new, pairs or "")
    known = read_word_pairs(pairs) if pairs else None
    aligned = align(open_vectors(old), open_vectors(new), pairs=known, restrict=restrict)
    if output:
        write_vectors(aligned.vectors, output)
    found = aligned.to_json(k)
    if as_json:
        print_json({**found, "output": output})
        return
    cosines = found["mean_cosine"]
    print_facts({"common words": found["words"], "mean cosine": f"{cosines['after']:.4f}", "written": output})
    click.echo()
    moved, stayed = aligned.moved(k), aligned.stayed(k)
    rows = [[a.key, f"{a.score:.4f}", b.key, f"{b.score:.4f}"] for a, b in zip(moved, stayed, strict=True)]
    print_table(("moved most", "cosine", "moved least", "cosine"), rows, numbers=(1, 3))
