"""`firth serve` and `firth studio`: that they start, and what they say when they can't. tests/server has the rest."""

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


def refused(result, *parts):
    assert result.exit_code == 1, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("firth: "), result.stderr
    for part in parts:
        assert part in lines[0]


def test_models_that_are_not_there_are_refused(call, tmp_path, model):
    refused(call("serve", tmp_path / "none"), "There is no model at")
    (tmp_path / "reviews.csv").write_text("text,stars\nfine,5\n")
    refused(call("serve", tmp_path / "reviews.csv"), "not in a format that Firth reads")
    refused(call("serve", tmp_path), "neither a model nor an index")
    refused(call("serve", model, model), "Two are called 'model'", "other=")


def test_addresses_that_can_not_be_are_refused(call, model, tmp_path, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    refused(call("serve", model, "--host", "0.0.0.0"), "a key is needed", "FIRTH_API_KEY", "--key-file")
    refused(call("serve", model, "--key-file", tmp_path / "none"), "Cannot read the key")
    (tmp_path / "key").write_text("short\n")
    refused(call("serve", model, "--key-file", tmp_path / "key"), "at least 16")
    refused(call("serve", model, "--port", "70000"), "from 0 to 65535")
    refused(call("serve", model, "--host", "203.0.113.1", "--port", "0", "--key-file", key(tmp_path)), "Cannot listen")
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused(call("serve", model, "--port", other.getsockname()[1]), "Cannot listen", "in use")
    refused(call("studio", "--root", tmp_path / "none"), "--root must be a folder")


def key(folder: Path) -> Path:
    (folder / "long-key").write_text("0123456789abcdef\n")
    return folder / "long-key"


@pytest.mark.parametrize("verb", ["serve", "studio"])
def test_both_print_their_address_and_end_when_told(start, verb, model, tmp_path):
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
    """The address of a page, whose token opens the workbench's routes."""
    url = httpx.URL(page)
    assert len(url.params["token"]) >= 32
    plain = url.copy_with(query=None)
    assert httpx.get(plain.join("/api/models")).status_code == 403
    found = httpx.get(plain.join("/api/models"), headers={"X-Firth-Token": url.params["token"]})
    assert found.status_code == 200
    return plain


@contextlib.contextmanager
def ending(process):
    yield process
    process.terminate()
    process.communicate(timeout=30)


def test_the_studio_prints_the_address_with_its_token(start, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    with ending(start("studio", "--port", "0", "--json")) as process:
        told = json.loads(process.stdout.readline())
        assert served_with(told["page"]) == httpx.URL(told["address"]).join("/")
    with ending(start("studio", "--port", "0")) as process:
        served_with(process.stdout.readline().strip())


def test_serve_prints_the_plain_address_first_and_then_the_page(start, model, monkeypatch):
    monkeypatch.delenv("FIRTH_API_KEY", raising=False)
    with ending(start("serve", model, "--port", "0")) as process:
        address = process.stdout.readline().strip()
        name, _, page = process.stdout.readline().strip().partition(" ")
        assert name == "Workbench:" and str(served_with(page)) == f"{address}/"


def test_the_browser_is_opened_without_the_token_among_its_arguments(start, tmp_path, monkeypatch):
    """Every user of the machine sees the arguments of a program."""
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


def test_without_its_packages_the_server_says_what_it_needs(model):
    command = ["serve", str(model)]
    code = f"import sys; sys.modules['fastapi'] = None\nfrom firth.cli.main import cli\ncli({command!r}, 'firth')"
    path = str(Path(firth.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert (
        done.stderr.startswith("firth: The server needs the package fastapi")
        and how_to_install("server") in done.stderr
    )
