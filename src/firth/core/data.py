"""`Data`: the base class of training data. A class declares once how its files are read, and commands, the workbench
and tests are derived from that."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from firth.core.errors import FirthError
from firth.core.notebook import ShowsRows

AnyData = TypeVar("AnyData", bound="Data")
ROLES = ("column", "columns", "choice", "flag", "source")


@dataclass(frozen=True)
class FileOption:
    """An option for reading files: a keyword of the constructor, a flag of commands, a field of the workbench's form.

    The default is that of the constructor. `columns` are a list of names, separated by commas in commands. A `flag`
    stands for the opposite of the default. A `source` is another file or, with `several`, a list of files.
    """

    name: str
    help: str
    role: str = "column"
    choices: tuple[str, ...] = ()
    flag: str = ""  # its name in commands, if it differs
    several: bool = False
    empty: str = "none"  # what the form shows where nothing is entered and there is no default
    default: Any = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise TypeError(f"role must be one of {', '.join(ROLES)}; got {self.role!r}.")
        if not self.flag:
            object.__setattr__(self, "flag", self.name.replace("_", "-"))
        if self.choices and self.default is None:
            object.__setattr__(self, "default", self.choices[0])

    @property
    def key(self) -> str:
        """The name of its value among the values of a command."""
        return self.flag.replace("-", "_")

    @property
    def needed(self) -> bool:
        """Whether records must have this column: other columns are optional or recognized."""
        return self.role == "column" and self.default is not None

    def keywords(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword for the constructor; none if a command's `values` do not have the option."""
        value = values.get(self.key)
        if value is None or value == "":
            return {}
        if self.role == "flag":
            return {self.name: not self.default} if value else {}
        if self.role == "columns" or self.several:
            return {self.name: split_names(value)}
        return {self.name: value}


class Data(ShowsRows, ABC):
    """Training data. `Method.data` is the class that a method reads."""

    #: What a file contains, for messages.
    noun: ClassVar[str] = "data set"
    #: How files are read.
    file_options: ClassVar[tuple[FileOption, ...]] = ()
    #: Whether models are given texts: they embed them, and their vectors are of words or texts.
    has_texts: ClassVar[bool] = False
    #: Whether there are labels that a model learns to predict.
    has_labels: ClassVar[bool] = False
    #: Whether methods also take vectors, those of a model or of a vector file, in place of this data.
    or_vectors: ClassVar[bool] = False
    #: Whether it is read from any number of files; derived from the constructor.
    several_files: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        parameters = inspect.signature(cls).parameters.values()
        cls.several_files = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
        defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
        missing = [option.name for option in cls.file_options if option.name not in defaults]
        if missing:
            raise TypeError(f"The constructor of {cls.__name__} must have the keyword {missing[0]}, with a default.")
        wrong = [option.name for option in cls.file_options if option.default not in (None, defaults[option.name])]
        if wrong:
            raise TypeError(f"{wrong[0]} of {cls.__name__} has another default than its constructor.")
        cls.file_options = tuple(replace(option, default=defaults[option.name]) for option in cls.file_options)

    @classmethod
    def from_files(cls: type[AnyData], files: Sequence[str], values: Mapping[str, Any]) -> AnyData:
        """Open files with the values of a command's flags."""
        if inspect.isabstract(cls):
            raise FirthError(
                "wrong_input",
                "{detail} does not say how files are read. Train the method in Python, or declare the class of its "
                "data (Method.data).",
                detail=cls.__name__,
            )
        if not cls.several_files:
            single_file(files, cls.noun)
        keywords = [option.keywords(values) for option in cls.file_options]
        return cls(*files, **{name: value for each in keywords for name, value in each.items()})

    def _rows_shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return (), ()  # only the repr; classes that can show rows override it

    @abstractmethod
    def fingerprint(self) -> str | None:
        """Return a hash of the content, by which runs are resumed; None if it cannot be read again."""


def single_file(files: Sequence[str], noun: str) -> str:
    """Return the only file; several are an error."""
    if len(files) > 1:
        raise FirthError(
            "wrong_input", "A {detail} is read from one file; got {got} files.", detail=noun, got=len(files)
        )
    return files[0]


def split_names(names: str | None) -> list[str]:
    """Return the names of a list such as age,zip."""
    return names.split(",") if names else []
