"""`firth serve` and `firth studio`: start, stop and errors. tests/server has the rest."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from serving import until

import firth
from firth.core.extras import how_to_install


def test_missing_models(refused, tmp_path, model):
    refused("not_found", "serve", tmp_path / "none")
    (tmp_path / "reviews.csv").write_text("text,stars\nfine,5\n")
    refused("unknown_format", "serve", tmp_path / "reviews.csv")
    refused("not_found", "serve", tmp_path, path=tmp_path)
    refused("duplicate_name", "serve", model, model)


def test_invalid_addresses_and_keys(refused, model, tmp_path, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    message = refused("weak_key", "serve", model, "--host", "0.0.0.0")
    assert "FIRTH_API_KEY" in message and "--key-file" in message
    refused("unreadable_file", "serve", model, "--key-file", tmp_path / "none", file=tmp_path / "none")
    (tmp_path / "key").write_text("short\n")
    refused("weak_key", "serve", model, "--key-file", tmp_path / "key")
    refused("invalid_value", "serve", model, "--port", "70000", got=70000)
    refused("address_in_use", "serve", model, "--host", "203.0.113.1", "--port", "0", "--key-file", key(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused("address_in_use", "serve", model, "--port", other.getsockname()[1])
    refused("invalid_value", "studio", "--root", tmp_path / "none", option="--root", got=tmp_path / "none")


def key(folder: Path) -> Path:
    (folder / "long-key").write_text("0123456789abcdef\n")
    return folder / "long-key"


@pytest.mark.parametrize("verb", ["serve", "studio"])
def test_both_print_their_address_and_stop(start, verb, model, tmp_path):
    process = start(verb, model, "--port", "0", "--key-file", key(tmp_path))
    address = process.stdout.readline().strip()
    headers = {"Authorization": "Bearer 0123456789abcdef"}
    assert httpx.get(f"{address}/health").status_code == 200
    assert httpx.get(f"{address}/v1/models").status_code == 401
    assert httpx.get(f"{address}/v1/models", headers=headers).json()["data"][0]["id"] == "model"
    assert "Firth" in httpx.get(address, headers=headers).text
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, ""), errors


def served_with(page: str) -> httpx.URL:
    """The address of a page, whose token opens the routes of the workbench."""
    url = httpx.URL(page)
    assert len(url.params["token"]) >= 32
    plain = url.copy_with(query=None)
    assert httpx.get(plain.join("/api/models")).status_code == 403
    response = httpx.get(plain.join("/api/models"), headers={"X-Firth-Token": url.params["token"]})
    assert response.status_code == 200
    return plain


@contextlib.contextmanager
def ending(process):
    yield process
    process.terminate()
    process.communicate(timeout=30)


def test_the_studio_prints_the_address_with_its_token(start, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    with ending(start("studio", "--port", "0", "--json")) as process:
        printed = json.loads(process.stdout.readline())
        assert served_with(printed["page"]) == httpx.URL(printed["address"]).join("/")
    with ending(start("studio", "--port", "0")) as process:
        served_with(process.stdout.readline().strip())


def test_serve_prints_the_plain_address_first_and_then_the_page(start, model, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    with ending(start("serve", model, "--port", "0")) as process:
        address = process.stdout.readline().strip()
        name, _, page = process.stdout.readline().strip().partition(" ")
        assert name == "Workbench:" and str(served_with(page)) == f"{address}/"


def test_the_token_is_not_an_argument_of_the_browser(start, tmp_path, monkeypatch):
    """All users of the machine can see the arguments of a program."""
    opener = tmp_path / "xdg-open"
    opener.write_text(
        f'#!/bin/sh\nstat -c %a "$1" > {tmp_path}/mode\ncat "$1" > {tmp_path}/page\necho "$1" > {tmp_path}/given\n'
    )
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    process = start("studio", "--port", "0", "--open")
    page = process.stdout.readline().strip()
    assert until((tmp_path / "given").exists) and until(lambda: (tmp_path / "given").read_text().endswith("\n"))
    given = (tmp_path / "given").read_text().strip()
    token = httpx.URL(page).params["token"]
    assert token not in given and (tmp_path / "mode").read_text() == "600\n"
    assert f"url={page}" in (tmp_path / "page").read_text()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert not Path(given).exists()


def test_the_studio_opens_without_a_model(start):
    process = start("studio", "--port", "0", "--json")
    address = json.loads(process.stdout.readline())["address"]
    assert httpx.get(f"{address}/v1/models").json()["data"] == []
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_missing_packages_are_named(model):
    command = ["serve", str(model)]
    code = f"import sys; sys.modules['fastapi'] = None\nfrom firth.cli.main import cli\ncli({command!r}, 'firth')"
    path = str(Path(firth.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert (
        done.stderr.startswith("firth: The server needs the package fastapi")
        and how_to_install("server") in done.stderr
    )
