"""Makes this user's key with a fault at every touch of the file system: `python sealing.py FOLDER`."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from faults import every_fault

from firth.index.graph import SEAL, made_key, seal_key


def main() -> None:
    cache = Path(sys.argv[1]) / "cache"
    os.environ["FIRTH_CACHE"] = str(cache)
    warnings.simplefilter("ignore")
    made_key()  # everything is imported before the first fault
    faults = 0
    for before in (None, b"", b"x" * 31):

        def begin(before: bytes | None = before) -> None:
            shutil.rmtree(cache)
            cache.mkdir()
            if before is not None:
                (cache / SEAL).write_bytes(before)

        def check(through: bool, before: bytes | None = before) -> None:
            found = (cache / SEAL).read_bytes() if (cache / SEAL).exists() else None
            assert found == before or (found is not None and len(found) == 32), found
            key = made_key()
            assert len(key) == 32 and key == seal_key() and (not through or key == found)

        faults += every_fault(begin, lambda: made_key() and None, check)
    print(faults)


if __name__ == "__main__":
    main()
