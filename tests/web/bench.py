"""`firth studio` as a process, and what tests of pages share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

Open = Callable[..., Page]
TOKENS: dict[str, str] = {}  # of servers, by their addresses


def with_token(address: str) -> str:
    """The address of a view as `firth studio` would print it; the page keeps the token for its later addresses."""
    parts = urlsplit(address)
    token = TOKENS[f"{parts.scheme}://{parts.netloc}"]
    return parts._replace(path=parts.path or "/", query=f"token={token}").geturl()


def settled(page: Page) -> None:
    expect(page.locator('[aria-busy="true"]')).to_have_count(0)


def kept(page: Page, button: str) -> bytes:
    """What a button that keeps a picture or a table gives."""
    with page.expect_download() as found:
        page.get_by_role("button", name=button, exact=True).first.click()
    return Path(found.value.path()).read_bytes()


def firth_command(*arguments: Any) -> None:
    subprocess.run([sys.executable, "-m", "firth", *map(str, arguments)], check=True, capture_output=True)


class running:  # noqa: N801
    """`firth studio ARGUMENTS` on a free port, and its address without the token, which `with_token` adds."""

    def __init__(self, *arguments: Any) -> None:
        command = [sys.executable, "-m", "firth", "studio", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> str:
        assert self.process.stdout is not None
        address, _, token = self.process.stdout.readline().strip().partition("/?token=")
        assert address.startswith("http://") and token, address
        TOKENS[address] = token
        return address

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)
