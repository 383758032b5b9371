"""`Method`: hyperparameters and how to learn with them."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import check_options, options_of
from firth.core.run import Run


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A frozen dataclass of options. Nothing learned lives in it; `fit` gives a complete `Model`."""

    #: The kind of model that `fit` gives and `firth.load` restores.
    model: ClassVar[type[Model]]
    #: One line for `firth methods`.
    summary: ClassVar[str]
    #: What it learns from, and how the command line opens its data: a key of `cli.kinds.KINDS`.
    kind: ClassVar[str] = "text"
    #: Whether `fit` needs `start`, a model whose weights it learns a task with.
    needs_start: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def method_name(cls) -> str:
        """The name scripts use: the method's file name."""
        return cls.__module__.rpartition(".")[2]

    def options(self) -> dict[str, Any]:
        """Option values by name, as they are saved."""
        values = dataclasses.asdict(self)
        return {item.name: values[item.name] for item in options_of(self)}

    @abstractmethod
    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Model:
        """Learns from `data`; `start` is a model to go on from."""
