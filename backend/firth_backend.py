"""The build backend: scikit-build-core, after a check that what it needs is there.

Without a compiler CMake fails with a page of output in which the reason is hard to find. Here it is a few lines.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

COMPILERS = ("c++", "g++", "clang++", "icpx")  # as CMake looks for them
HELP = """\
Firth's kernels are written in C++ and cannot be built here: {missing}.

  Debian, Ubuntu   apt install g++ cmake python3-dev
  Fedora           dnf install gcc-c++ cmake python3-devel
  macOS            xcode-select --install

Then run the same command again. Another compiler can be named by the environment variable CXX."""


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> Any:
    check_tools(config_settings or {})
    return core().build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> Any:
    check_tools(config_settings or {})
    return core().build_editable(wheel_directory, config_settings, metadata_directory)


def __getattr__(name: str) -> Any:
    """All other hooks are scikit-build-core's own: metadata and sdists need no compiler."""
    return getattr(core(), name)


def core() -> Any:
    import scikit_build_core.build

    return scikit_build_core.build


def check_tools(config_settings: Mapping[str, Any]) -> None:
    """Ends the build with one message where a tool is missing."""
    missing = [] if told_otherwise(config_settings) else [*without_compiler(), *without_headers()]
    if shutil.which("cmake") is None and shutil.which("cmake3") is None and find_spec("cmake") is None:
        missing.append("CMake is not installed")
    if missing:
        sys.exit(HELP.format(missing=", and ".join(missing)))


def told_otherwise(config_settings: Mapping[str, Any]) -> bool:
    """Whether CMake is told where its compiler is: then it knows better."""
    told = " ".join([os.environ.get("CMAKE_ARGS", ""), *map(str, config_settings), *map(str, config_settings.values())])
    named = any(name in told for name in ("CMAKE_CXX_COMPILER", "CMAKE_TOOLCHAIN_FILE"))
    return named or "CMAKE_TOOLCHAIN_FILE" in os.environ


def without_compiler() -> list[str]:
    given = shlex.split(os.environ.get("CXX", ""))
    if given:
        return [] if shutil.which(given[0]) else [f"the compiler {given[0]!r}, named by CXX, does not exist"]
    found = next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is None or (sys.platform == "darwin" and is_empty_shim(found)):
        return [f"there is no C++ compiler ({', '.join(COMPILERS[:3])})"]
    return []


def is_empty_shim(compiler: str) -> bool:
    """macOS has a /usr/bin/c++ also where nothing is behind it."""
    if not compiler.startswith("/usr/bin/"):
        return False
    return subprocess.run(["/usr/bin/xcode-select", "-p"], capture_output=True, check=False).returncode != 0


def without_headers() -> list[str]:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return [] if header.is_file() else [f"Python's headers are not installed ({header} is missing)"]
