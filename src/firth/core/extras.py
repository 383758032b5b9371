"""How to install what is optional. Said here only, so that it can change in one place when Firth is published."""

from __future__ import annotations

from firth.core.errors import FirthError


def install_command(*extras: str) -> str:
    """The command that installs optional packages (`project.optional-dependencies`), to be run in a checkout."""
    return f'pip install ".[{",".join(extras)}]"'


def how_to_install(*extras: str) -> str:
    return f"run `{install_command(*extras)}` in a checkout of Firth"


def missing_package(what: str, package: str, extra: str | None = None) -> FirthError:
    """The error where an optional package is missing: `what` is as in "Networks need"; without an extra the package is
    installed by its own name."""
    return FirthError(
        "missing_package",
        "{what} the package {package}, which is not installed; {how}.",
        what=what,
        package=package,
        how=how_to_install(extra) if extra else f"run `pip install {package}`",
    )
