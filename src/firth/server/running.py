"""From settings to a listening server, and to its orderly end."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from firth.core.errors import FirthError
from firth.server.app import application
from firth.server.settings import Settings


def run(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serves until it is told to stop. `ready` is given the address, which port 0 leaves open."""
    server, listening, address = prepared(settings)
    ready(address)
    server.run([listening])


def prepared(settings: Settings) -> tuple[uvicorn.Server, socket.socket, str]:
    """A server that `run([socket])` starts, and its address."""
    listening = listen(settings.host, settings.port)
    config = uvicorn.Config(application(settings), log_config=None, access_log=False, server_header=False)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return uvicorn.Server(config), listening, f"http://{host}:{listening.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """Bound here and not by uvicorn: what is wrong becomes one line, and the port is known before the start."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise FirthError(f"Cannot listen on {host}, port {port}: {error.strerror or error}.") from None
    listening.set_inheritable(True)
    return listening
