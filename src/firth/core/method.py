"""`Method`: hyperparameters and how to train with them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from firth.core.data import Data
from firth.core.errors import FirthError
from firth.core.functions import plain
from firth.core.model import Model
from firth.core.options import check_options, options_of, unknown_option
from firth.core.run import Run
from firth.core.sketch import KEY, inherited

Self = TypeVar("Self", bound="Method")


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A frozen dataclass of options. `fit` returns a trained `Model` and does not change the method."""

    #: The class of the model that `fit` returns and `firth.load` opens; `model_class` returns it.
    model: ClassVar[type[Model]]
    #: One line for `firth methods`.
    summary: ClassVar[str]
    #: The class of its training data, which says how files are read. `Data` itself: only Python can train the method.
    data: ClassVar[type[Data]] = Data  # type: ignore[type-abstract]
    #: Limitations of its models for the model card, one sentence each.
    limits: ClassVar[tuple[str, ...]] = ()
    #: Whether `fit` requires `start`, a pre-trained model.
    needs_start: ClassVar[bool] = False
    #: Whether `fit` requires data; a model can be distilled without any.
    needs_data: ClassVar[bool] = True
    #: The fewest rows of a table that `fit` accepts.
    min_rows: ClassVar[int] = 1
    #: Whether tables may have missing cells and categories that were not seen in training.
    accepts_missing: ClassVar[bool] = False
    #: Whether `fit` supports data-parallel training with torchrun.
    in_processes: ClassVar[bool] = False
    #: What `fit` computes on the workers of `Run.cluster`, as the help shows it. Empty: it refuses a cluster.
    distributed: ClassVar[str] = ""
    #: Whether those workers train copies of its tables, so that the model depends on their number.
    trains_copies: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "fit" in vars(cls):
            cls.fit = checked_fit(cls.fit)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **options: Any) -> Method:
        """Refuses unknown options before the dataclass does, with the name that was probably meant."""
        known = {item.name for item in options_of(cls)} if options else set()
        for name in options:
            if name not in known:
                raise unknown_option(cls, name)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the method's models. Methods override it if importing the class needs torch."""
        return cls.model

    @classmethod
    def method_name(cls) -> str:
        """The name of the method in commands and saved folders."""
        from firth.core.registry import name_of

        return name_of(cls)

    def options(self) -> dict[str, Any]:
        """Option values by name, as they are saved; functions are replaced by their names."""
        return {item.name: plain(getattr(self, item.name)) for item in options_of(self)}

    def check_run(self, run: Run) -> None:
        """Check that this machine can run the method; `fit` calls it before it reads any data. Methods that support
        GPUs override it."""
        if run.device == "cuda":
            raise FirthError(
                "unsupported_device",
                "{method} runs on the CPU only; device must be auto or cpu, got cuda.",
                method=type(self).__name__,
            )

    def resolved(self: Self, **values: Any) -> Self:
        """Return a copy with `values` for the options that are None.

        This is how `fit` chooses defaults by the size of the data. The method of the trained model holds the values,
        and `training.json` lists them under "automatic".
        """
        return replace(self, **{name: value for name, value in values.items() if getattr(self, name) is None})

    @abstractmethod
    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Model:
        """Train on `data` and return a model; `start` is a model to continue from."""


def check_cluster(method: Method, run: Run) -> None:
    """Check that a method uses the cluster and processes of a run; `fit` calls it before it reads any data."""
    if method.in_processes:  # the commands start its processes
        return
    networks = {"gpus": run.gpus > 0, "accumulation": run.accumulation > 1, "shard_weights": run.shard_weights}
    given = [name for name, is_given in networks.items() if is_given]
    if given:
        raise FirthError(
            "conflicting_options",
            "{method} has no {options}, which are for networks. Omit them.",
            method=type(method).__name__,
            options=", ".join(given),
        )
    if run.cluster and not method.distributed:
        raise FirthError(
            "unsupported_cluster",
            "{method} has nothing to compute on a cluster; got cluster={cluster}. Omit it, to train in this process.",
            method=type(method).__name__,
            cluster=run.cluster,
        )
    if run.workers and not run.cluster and not method.trains_copies:
        raise FirthError(
            "missing_option",
            "{option} needs {missing} too, which says where the workers run: processes or ray.",
            option="workers",
            missing="cluster",
        )


def checked_fit(fit: Callable[..., Model]) -> Callable[..., Model]:
    """Wrap `fit`: check the run first, and record which labeled rows the model inherits from `start` and which
    options were chosen by the size of the data.

    Other libraries pass labels as the second argument, fit(texts, labels); here the second argument is a Run.
    """

    @functools.wraps(fit)
    def checked(self: Method, *data: Any, **settings: Any) -> Model:
        run = settings.get("run", data[1] if len(data) > 1 else Run())
        if not isinstance(run, Run):
            raise FirthError(
                "invalid_type",
                "The second argument of fit must be a Run, as in fit(data, Run(seed=2)); got {got}. Pass labels with "
                "the data: fit(zip(texts, labels)).",
                got=type(run).__name__,
            )
        check_cluster(self, run)
        if self.in_processes and run.cluster:
            raise FirthError(
                "unsupported_cluster",
                "{method}.fit trains in this process; only firth train and firth finetune use cluster={cluster}. In "
                "Python, start the processes with torchrun or Ray Train; each calls fit.",
                method=type(self).__name__,
                cluster=run.cluster,
            )
        if self.in_processes and (run.workers or run.gpus):
            raise FirthError(
                "conflicting_options",
                "fit trains in this process; only firth train and firth finetune use {option}={workers}. In Python, "
                "start the processes with torchrun or Ray Train; each calls fit.",
                option="workers" if run.workers else "gpus",
                workers=run.workers or run.gpus,
            )
        if self.trains_copies and run.workers > 1 and not run.cluster:
            run = replace(run, cluster="processes")
            data, settings = (*data[:1], *data[2:]), {**settings, "run": run}
            if len(data) > 1:  # start
                data, settings = data[:1], {**settings, "start": data[1]}
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
