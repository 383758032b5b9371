"""Model folders of other libraries: the readers that `firth.load` asks.

A reader is called with a folder and returns a function that opens it, or None if the folder is not of its library.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firth.core.model import Model
from firth.transformers import huggingface_folder

Opener = Callable[[], Model]

#: Readers in the order in which they are asked. They must not import torch before a folder is opened.
READERS: tuple[Callable[[Path], Opener | None], ...] = (huggingface_folder.opener,)


def opener_of(folder: Path) -> Opener | None:
    """Return the function that opens a folder of another library; None for other folders."""
    return next((opener for reader in READERS if (opener := reader(folder)) is not None), None)
