"""Makes the golden folder of every method that has none yet: a small model as saved now, and what it answers.

    python tests/golden/make.py

Golden folders are never made again: they show that what earlier versions saved still opens and gives the same answers.
A new method, or a new version of the format, gets a folder beside the old ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
FOLDER = HERE / "methods-1"  # of format 1


def rounded(value: Any) -> Any:
    """An answer as JSON, numbers to seven digits."""
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def answers(model: Any) -> Any:
    """What the contract tests ask of a model, as JSON: the first rows of arrays."""
    import test_contract as contract

    def first_rows(self: np.ndarray) -> Any:
        return rounded(np.atleast_2d(self)[:3])

    found = contract.outputs(model, first_rows)
    return rounded({name: value[:40] if isinstance(value, list) else value for name, value in found.items()})


def main() -> None:
    import test_contract as contract

    from firth.core.run import Run

    for name, method in contract.METHODS.items():
        folder = FOLDER / name
        if folder.exists():
            continue
        model = contract.fitted(method, Run(deterministic=True, threads=1, seed=7))
        model.save(folder)
        (FOLDER / f"{name}.json").write_text(json.dumps(answers(model), ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
