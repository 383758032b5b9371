"""Creates the user's key with a fault at every file system operation: `python sealing.py FOLDER`."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults import every_fault

from firth.index.graph import SEAL, create_key, seal_key


def main() -> None:
    cache = Path(sys.argv[1]) / "cache"
    os.environ["FIRTH_CACHE"] = str(cache)
    warnings.simplefilter("ignore")
    create_key()  # everything is imported before the first fault
    faults = 0
    for before in (None, b"", b"x" * 31):

        def begin(before: bytes | None = before) -> None:
            shutil.rmtree(cache)
            cache.mkdir()
            if before is not None:
                (cache / SEAL).write_bytes(before)

        def check(through: bool, before: bytes | None = before) -> None:
            stored = (cache / SEAL).read_bytes() if (cache / SEAL).exists() else None
            assert stored == before or (stored is not None and len(stored) == 32), stored
            key = create_key()
            assert len(key) == 32 and key == seal_key() and (not through or key == stored)

        def make() -> None:
            create_key()

        faults += every_fault(begin, make, check)
    print(faults)


if __name__ == "__main__":
    main()
