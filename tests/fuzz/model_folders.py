"""Damages the saved model of every method in every way of tests/damage.py: each is opened and used, or refused.

    python tests/fuzz/model_folders.py [METHOD ...] [--part 1/3] [--seed 1] [--keep FOLDER]

What must never come of it: an error that is no FirthError, a process that dies or hangs, more memory than a model of
this size may need, numbers that are not finite.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

GOLDEN = Path(__file__).parents[1] / "golden/methods-1"  # models that are there need not be trained
NETWORK = "network-"
GROWTH = 600  # MB that a small model may take


def make_models(folder: Path, names: list[str]) -> dict[str, Path]:
    """A small model of each method, and folders as other libraries write them: network-FAMILY, and adapter of peft."""
    from encoder_folders import FAMILIES, write_folder
    from test_contract import fitted
    from tiny import tiny_gpt

    from firth.core import registry

    found = {}
    for name in names or [*(f"{NETWORK}{family}" for family in FAMILIES), "adapter"]:
        if name.startswith(NETWORK) and not (folder / name).exists():
            write_folder(folder / name, name.removeprefix(NETWORK))
        if name == "adapter" and not (folder / name).exists():
            make_adapter(folder)
        if name.startswith(NETWORK) or name == "adapter":
            found[name] = folder / name
    for name in [name for name in names if name not in found] if names else sorted(registry.method_classes()):
        if (GOLDEN / name).is_dir():
            shutil.copytree(GOLDEN / name, folder / name, dirs_exist_ok=True)
        if not (folder / name).exists():
            model: Any = tiny_gpt(layers=1) if name == "gpt" else fitted(registry.method(name))
            model.save(folder / name)
        found[name] = folder / name
    for name in [name for name in ("bert", "gpt", "classify", "distil", "tags") if name in found]:
        place = folder / f"foreign-{name}"
        if not place.exists():
            make_foreign(found[name], place)
        found[place.name] = place
    return found


def make_adapter(folder: Path) -> None:
    """A base and an adapter of it that peft wrote."""
    import peft
    import transformers
    from encoder_folders import write_folder

    write_folder(folder / "base", "roberta")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "base", num_labels=3)
    config = peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query", "value"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(net, config)
    adapted.peft_config["default"].base_model_name_or_path = str(folder / "base")
    adapted.save_pretrained(str(folder / "adapter"))


def make_foreign(folder: Path, target: Path) -> None:
    """As another library leaves a folder of ours that it has saved again."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    ours = ("format", "firth", "method", "options", "files")
    theirs = {name: value for name, value in config.items() if name not in ours}
    (target / "config.json").write_text(json.dumps({**theirs, "transformers_version": "4.50.0"}))
    for name in ("training.json", "size.json", "pooling.json", "task.json", "base.json"):
        (target / name).unlink(missing_ok=True)


def judge(folder: Path) -> str:
    """What comes of opening and using a model: "used", "refused CODE", or what is wrong."""
    from using import use

    import firth

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        refused = use(firth.load(folder))
    except firth.FirthError as error:
        refused = [error]
        if error.code == "damaged_model" and str(folder) not in str(error):
            return f"WRONG: does not say which folder: {error}"
    for each in refused:
        if isinstance(each.__cause__, MemoryError) or "alloc" in f"{each.__cause__} {each}":
            return f"WRONG: too much memory: {each}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    if grown > GROWTH:
        return f"WRONG: took {grown >> 8 << 8} MB"
    return f"refused {refused[0].code}" if refused else "used"


def cases(place: Path, seed: int) -> Iterator[tuple[str, Any, bool]]:
    from damage import damages

    for number, (what, damage) in enumerate(damages(place, seed)):
        yield what, damage, True
        if number % 8 == 0:  # sizes and hashes that don't fit are mostly seen at once
            yield what, damage, False


def main() -> int:
    from damage import damaged_copy, fix_hashes
    from worker import Worker, arguments, summary

    given = arguments(__doc__)
    if given.worker:
        Worker.serve(judge)
        return 0
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        worker = Worker(__file__)
        for name, place in make_models(given.keep or Path(scratch, "models"), given.names).items():
            answer = worker.ask(place)
            found.append((f"{name}: undamaged", answer if answer == "used" else f"WRONG: {answer}"))
            for number, (what, damage, hashes) in enumerate(cases(place, given.seed)):
                if number % given.parts == given.part - 1:
                    damaged_copy(place, copy, damage)
                    if hashes:
                        fix_hashes(copy)
                    found.append((f"{name}: {what}{', hashes fixed' if hashes else ''}", worker.ask(copy)))
        worker.close()
    return summary(found)


if __name__ == "__main__":
    sys.exit(main())
