"""How to install optional packages. Defined in one place, because it changes when Firth is published."""

from __future__ import annotations

from firth.core.errors import FirthError


def install_command(*extras: str) -> str:
    """The command that installs extras (`project.optional-dependencies`) in a checkout."""
    return f'pip install ".[{",".join(extras)}]"'


def how_to_install(*extras: str) -> str:
    """Return the sentence part that tells how to install extras."""
    return f"run `{install_command(*extras)}` in a checkout of Firth"


def missing_package(what: str, package: str, extra: str | None = None) -> FirthError:
    """The error for a missing optional package. `what` is a phrase such as "Networks need"; without `extra`, the
    package is installed by its own name."""
    return FirthError(
        "missing_package",
        "{what} the package {package}, which is not installed; {how}.",
        what=what,
        package=package,
        how=how_to_install(extra) if extra else f"run `pip install {package}`",
    )
