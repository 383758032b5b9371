"""`Method`: hyperparameters and how to learn with them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from firth.core.errors import FirthError
from firth.core.functions import plain
from firth.core.model import Model
from firth.core.options import check_options, options_of
from firth.core.run import Run
from firth.core.sketch import KEY, inherited

Self = TypeVar("Self", bound="Method")


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A frozen dataclass of options. Nothing learned lives in it; `fit` gives a complete `Model`."""

    #: The kind of model that `fit` gives and `firth.load` restores.
    model: ClassVar[type[Model]]
    #: One line for `firth methods`.
    summary: ClassVar[str]
    #: What it learns from, and how the command line opens its data: a key of `cli.kinds.KINDS`.
    kind: ClassVar[str] = "text"
    #: What users of its models should know, a sentence each, for the model card.
    limits: ClassVar[tuple[str, ...]] = ()
    #: Whether `fit` needs `start`, a model whose weights it learns a task with.
    needs_start: ClassVar[bool] = False
    #: Whether processes that torchrun starts share the work of `fit`.
    in_processes: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "fit" in vars(cls):
            cls.fit = checked_fit(cls.fit)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def method_name(cls) -> str:
        """The name that commands and saved folders have for it."""
        from firth.core.registry import name_of

        return name_of(cls)

    def options(self) -> dict[str, Any]:
        """Option values by name, as they are saved: functions by their names."""
        return {item.name: plain(getattr(self, item.name)) for item in options_of(self)}

    def check_run(self, run: Run) -> None:
        """Refuses what cannot be done on this machine: `fit` calls it before it reads any data. A method that runs on a
        GPU says here what it needs."""
        if run.device == "cuda":
            raise FirthError(
                "unsupported_device",
                "{method} runs on the CPU; device must be auto or cpu, got cuda.",
                method=type(self).__name__,
            )

    def resolved(self: Self, **values: Any) -> Self:
        """This method with `values` for the options that were left out (None); options that were given stay.

        How `fit` chooses a default by the size of the data: the model's method has the values, and `training.json`
        lists them under "automatic".
        """
        return replace(self, **{name: value for name, value in values.items() if getattr(self, name) is None})

    @abstractmethod
    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Model:
        """Learns from `data`; `start` is a model to go on from."""


def checked_fit(fit: Callable[..., Model]) -> Callable[..., Model]:
    """`fit`, which checks the run first, and records which labelled rows a model has from its start and what was chosen
    by the size of the data.

    In other libraries labels come second, as fit(texts, labels); here the data is one thing and then comes a Run.
    """

    @functools.wraps(fit)
    def checked(self: Method, *data: Any, **settings: Any) -> Model:
        run = settings.get("run", data[1] if len(data) > 1 else Run())
        if not isinstance(run, Run):
            raise FirthError(
                "invalid_type",
                "fit takes the data and a Run, as in fit(data, Run(seed=2)); got {got}. Labels belong to the "
                "data: fit(zip(texts, labels)).",
                got=type(run).__name__,
            )
        self.check_run(run)
        model = fit(self, *data, **settings)
        start = settings.get("start", data[2] if len(data) > 2 else None)
        if isinstance(start, Model) and KEY in start.training:
            model.training = inherited(model.training, start.training)
        used = model.method.options() if type(model.method) is type(self) else {}
        automatic = {name: used[name] for name, value in self.options().items() if value is None and name in used}
        automatic = {name: value for name, value in automatic.items() if value is not None}
        if automatic:
            model.training = {**model.training, "automatic": automatic}
        return model

    return checked
