"""What a server is told when it starts."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from firth.core.errors import FirthError

MIB = 1 << 20
LONGEST_HOST = 255  # as DNS has it


@dataclass(frozen=True)
class Settings:
    """Places are given here and never in a request."""

    models: Mapping[str, Path] = field(
        default_factory=dict
    )  # folders, or files of vectors, by the names they are called
    indexes: Mapping[str, Path] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8000  # 0: any that is free
    key: str | None = None  # what every request must bring, but for /health
    hosts: tuple[str, ...] = ()  # further names that the server is called by
    root: Path | None = None  # the folder that the workbench may read data from and write models to
    token: str = field(
        default_factory=lambda: secrets.token_urlsafe(32), repr=False
    )  # of the workbench, for this start

    precision: str = "auto"  # of a BERT
    long: str = "refuse"  # texts longer than the model reads: refuse, or truncate and say so
    inputs: int = 2048  # most of a request
    batch_tokens: int = 16384  # that are computed at once
    queue_tokens: int = 524288  # that wait; who comes when there are more is asked to come again
    answer_numbers: int = 4 << 20  # of all vectors of an answer
    body_bytes: int = 8 * MIB
    upload_bytes: int = 256 * MIB  # of the workbench
    held_bytes: int = 512 * MIB  # bodies of all requests together
    head_seconds: float = 10.0  # until a request's head is there
    body_seconds: float = 20.0  # until its body is there
    answer_seconds: float = 60.0  # until the answer begins; the workbench may take longer
    drain_seconds: float = 30.0  # for what was begun, when the server is told to stop
    connections: int = 512

    def __post_init__(self) -> None:
        if not self.is_local and not self.key:
            raise FirthError(
                "weak_key",
                "{host} can be reached by others, so a key is needed: set FIRTH_API_KEY, or give --key-file FILE.",
                host=self.host,
            )
        if self.key is not None and (len(self.key) < 16 or not self.key.isascii() or not self.key.isprintable()):
            raise FirthError(
                "weak_key",
                "The key must have at least 16 printable ASCII characters; it has {n_key}. `openssl rand -hex 16` "
                "makes one.",
                n_key=len(self.key),
            )
        if not 0 <= self.port <= 65535:
            raise FirthError("invalid_value", "The port must be from 0 to 65535; got {got}.", got=self.port)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def page(self, address: str) -> str:
        """The workbench's address, with the token in it; where a key is needed, who has that gets it with the page."""
        return address if self.key else f"{address}/?token={self.token}"

    def on_long(self, truncate: bool | None) -> str:
        """What becomes of longer texts: as a request wishes, where it says so."""
        return self.long if truncate is None else "truncate" if truncate else "refuse"

    def allows_host(self, name: str) -> bool:
        """Whether a request may call the server so. A foreign name that leads here is a page's trick to be taken for
        this one (DNS rebinding); a bare address can't be, and is taken where the server is open to others."""
        name = name.lower().rstrip(".")
        if len(name) > LONGEST_HOST:
            return False
        if is_loopback(name) or name == self.host.lower() or name in self.hosts:
            return True
        return not self.is_local and address(name) is not None


@lru_cache(1024)
def address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        return None


def is_loopback(name: str) -> bool:
    ip = address(name)
    return name == "localhost" if ip is None else ip.is_loopback
