"""Settings of the server."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TRUNCATE

MIB = 1 << 20
LONGEST_HOST = 255  # as DNS has it


@dataclass(frozen=True)
class Settings:
    """Settings of the server. Paths are only set here, never in a request."""

    models: Mapping[str, Path] = field(default_factory=dict)  # model folders or vector files, by name
    indexes: Mapping[str, Path] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free port
    key: str | None = None  # API key, required for all requests except /health
    hosts: tuple[str, ...] = ()  # further allowed values of the Host header
    replicas: int = 1  # processes; with several, the workbench is left out, because its state is that of one process
    root: Path | None = None  # folder from which the workbench reads data and to which it writes models
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)  # of the workbench

    precision: str = "auto"  # of BERT models
    prompt: str | None = None  # name of the prompt for inputs that name none; None: each model's default prompt
    long: str = REFUSE  # inputs over the maximum length: refuse, or truncate and report it
    inputs: int = 2048  # per request
    batch_tokens: int = 16384
    queue_tokens: int = 524288  # tokens allowed to queue; beyond this, requests get 429
    answer_numbers: int = 4 << 20  # values of all vectors of a response
    body_bytes: int = 8 * MIB
    upload_bytes: int = 256 * MIB  # request bodies of the workbench
    held_bytes: int = 512 * MIB  # request bodies in memory, all together
    head_seconds: float = 10.0  # for receiving the headers
    body_seconds: float = 20.0  # for receiving the body
    answer_seconds: float = 60.0  # until the response begins; no limit for the workbench
    drain_seconds: float = 30.0  # for running requests when the server stops
    connections: int = 512

    def __post_init__(self) -> None:
        if not self.is_local and not self.key:
            raise FirthError(
                "weak_key",
                "{host} is reachable from other machines, so an API key is required. Set FIRTH_API_KEY, or pass "
                "--key-file FILE.",
                host=self.host,
            )
        if self.key is not None and (len(self.key) < 16 or not self.key.isascii() or not self.key.isprintable()):
            raise FirthError(
                "weak_key",
                "The API key must have at least {least} printable ASCII characters; got {got} characters. `openssl "
                "rand -hex 16` creates a key.",
                least=16,
                got=len(self.key),
            )
        if not 0 <= self.port <= 65535:
            raise FirthError(
                "invalid_value", "{option} must be from 0 to 65535; got {got}.", option="port", got=self.port
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def page(self, address: str) -> str:
        """Return the workbench's address with the token. If a key is required, the page itself contains the token."""
        return address if self.key else f"{address}/?token={self.token}"

    def on_long(self, truncate: bool | None) -> str:
        """Return `REFUSE` or `TRUNCATE` for long inputs: as the request says, or as set for the server."""
        return self.long if truncate is None else TRUNCATE if truncate else REFUSE

    def allows_host(self, name: str) -> bool:
        """Return whether the Host header of a request is allowed. An unknown name that resolves to this server may be a
        DNS rebinding attack. An IP address cannot be, so it is allowed if other machines can reach the server."""
        name = name.lower().rstrip(".")
        if len(name) > LONGEST_HOST:
            return False
        if is_loopback(name) or name == self.host.lower() or name in self.hosts:
            return True
        return not self.is_local and address(name) is not None


@lru_cache(1024)
def address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a name as an IP address; None if it is not one."""
    try:
        return ipaddress.ip_address(name[1:-1] if name.startswith("[") and name.endswith("]") else name)
    except ValueError:
        return None


def is_loopback(name: str) -> bool:
    """Return whether a name is localhost or a loopback address."""
    ip = address(name)
    return name == "localhost" if ip is None else ip.is_loopback
