"""The build: what it says without a compiler, and what a source distribution holds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VARIABLES = ("CXX", "CMAKE_ARGS", "CMAKE_TOOLCHAIN_FILE")


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The backend that pyproject.toml names, in an environment without settings."""
    text = (ROOT / "pyproject.toml").read_text()
    assert 'build-backend = "firth_backend"' in text and 'backend-path = ["backend"]' in text
    spec = importlib.util.spec_from_file_location("firth_backend", ROOT / "backend" / "firth_backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.fixture
def core(backend: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What scikit-build-core would be asked for: this environment need not have it."""
    asked: list[str] = []

    class Core:
        def __getattr__(self, name: str):
            def ask(*_: object) -> str:
                asked.append(name)
                return name

            return ask

    monkeypatch.setattr(backend, "core", Core)
    return asked


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_without_a_compiler_it_ends_before_cmake(backend, core, monkeypatch, tmp_path, hook):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        getattr(backend, hook)("out")
    said = str(ended.value)
    assert core == [] and "no C++ compiler (c++, g++, clang++)" in said and len(said.splitlines()) < 10
    for way_out in ("apt install g++", "dnf install gcc-c++", "xcode-select --install"):
        assert way_out in said


def test_a_compiler_that_is_named_must_exist(backend, core, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    with pytest.raises(SystemExit, match="'no-such-compiler', named by CXX"):
        backend.build_wheel("out")
    monkeypatch.setenv("CXX", f"{sys.executable} -O3")  # anything that can be run
    assert backend.build_wheel("out") == "build_wheel" and core == ["build_wheel"]


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"cmake.define.CMAKE_CXX_COMPILER": "/opt/c++"}, {}),
        ({"cmake.args": "-DCMAKE_TOOLCHAIN_FILE=cross.cmake"}, {}),
        ({}, {"CMAKE_ARGS": "-DCMAKE_CXX_COMPILER=/opt/c++"}),
        ({}, {"CMAKE_TOOLCHAIN_FILE": "cross.cmake"}),
    ],
)
def test_who_tells_cmake_where_the_compiler_is_need_not_have_it_on_the_path(
    backend, core, monkeypatch, tmp_path, settings, variables
):
    (tmp_path / "cmake").write_text("#!/bin/sh\n")
    (tmp_path / "cmake").chmod(0o755)
    for name, value in {"PATH": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    assert backend.build_editable("out", settings) == "build_editable"


def test_missing_headers_are_named(backend, core, monkeypatch, tmp_path):
    monkeypatch.setattr(backend.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match="Python's headers are not installed") as ended:
        backend.build_wheel("out")
    assert "python3-dev" in str(ended.value)


def test_metadata_and_source_distributions_need_no_compiler(backend, core, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for hook in ("build_sdist", "prepare_metadata_for_build_wheel", "get_requires_for_build_wheel"):
        assert getattr(backend, hook)("out") == hook


def test_it_needs_nothing_but_python():
    """pip loads it before anything else of Firth is there."""
    code = "import sys; sys.path.insert(0, 'backend'); import firth_backend; print('scikit_build_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
