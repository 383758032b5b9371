"""From settings to a listening server, and to its orderly end.

uvicorn takes any number of connections, waits for ever for the rest of a request and keeps whatever is sent behind its
body; `Connection` bounds all of these. uvicorn also closes at once what seems idle when it is told to stop; `Orderly`
first lets everyone finish who may be about to ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from firth.core.errors import FirthError
from firth.server import logs
from firth.server.app import application
from firth.server.settings import Settings

HEAD_BYTES = 64 << 10
FRAMING_BYTES = 64 << 10  # of chunk sizes, chunk extensions and trailers, beyond as many as the body has
MAX_PIPELINED = 32  # requests that wait for the answers to earlier ones on the same connection
IDLE_SECONDS = 30  # that a connection is kept between requests
GRACE_SECONDS = 0.5  # in which who is about to ask still is heard when the server stops


def run(settings: Settings, ready: Callable[[str, str], None], requests: bool = True) -> None:
    """Serves until it is told to stop. `ready` is given the address, which port 0 leaves open, and the workbench's;
    `requests` says whether each one is logged."""
    logs.begin(requests)
    server, listening, address = prepare_server(settings)
    ready(address, settings.page(address))
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn's last word, when all is done
        server.run([listening])


def prepare_server(settings: Settings) -> tuple[uvicorn.Server, socket.socket, str]:
    """A server that `run([socket])` starts, and its address."""
    listening = listen(settings.host, settings.port)
    app = application(settings)
    config = uvicorn.Config(
        app,
        http=type("Bounded", (Connection,), {"settings": settings}),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(settings.drain_seconds),
    )
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return GracefulServer(config, app), listening, f"http://{host}:{listening.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """Bound here and not by uvicorn: what is wrong becomes one line, and the port is known before the start."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)  # whoever reads the address can connect
    except OSError as error:
        listening.close()
        raise FirthError(
            "address_in_use",
            "Cannot listen on {host}, port {port}: {reason}.",
            host=host,
            port=port,
            reason=error.strerror or error,
        ) from None
    return listening


class Connection(HttpToolsProtocol):
    """One of a bounded number, that must bring each request in time and without endless parts."""

    settings: Settings
    timer: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None  # while the client does not read what it asked for
    head = 0  # bytes of the head that have come
    in_head = True
    body = 0  # bytes of the body that have come
    framing = 0  # other bytes behind the head
    crowded = False  # whether more requests were pipelined than are taken in; the later ones are not read

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.settings.connections:
            self.end(503, "Too many connections.", retry=True)
        else:
            self.within(self.settings.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self.within(None)
        if self.unread is not None:
            self.unread.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.loop.call_later(self.settings.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.crowded:
            self.flow.pause_reading()
            return
        if self.in_head:
            if self.timer is None:  # the first bytes of a further request
                self.within(self.settings.head_seconds)
            self.head += len(data)
        else:
            self.framing += len(data)  # less what turns out to be the body
        super().data_received(data)
        if self.transport.is_closing() or self.crowded:
            return
        if self.in_head and self.head > HEAD_BYTES:
            self.end(431, "The head is too large.")
        elif not self.in_head and self.framing > FRAMING_BYTES + self.body:
            self.end(413, "The chunk sizes, chunk extensions and trailers are larger than the body.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # trailers are dropped: nothing reads them, and headers were checked before the body
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.crowded:
            return
        self.in_head, self.head, self.body, self.framing = False, 0, 0, 0
        super().on_headers_complete()
        seconds = self.settings.body_seconds
        self.within(10 * seconds if self.scope.get("path", "").startswith("/api/") else seconds)
        if len(self.pipeline) > MAX_PIPELINED:
            self.crowded = True
            self.within(None)
            self.pipeline.popleft()  # this one is not answered; the connection ends after the one before it
            self.cycle = self.pipeline[0][0]
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if not self.crowded:
            self.body += len(body)
            self.framing -= len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.crowded:
            return
        self.in_head = True
        self.within(None)
        super().on_message_complete()

    def within(self, seconds: float | None) -> None:
        """What is awaited must come in this time; None: nothing is awaited."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else self.loop.call_later(seconds, self.overdue)

    def overdue(self) -> None:
        self.end(408, "The request took too long to arrive.")

    def end(self, status: int, message: str, retry: bool = False) -> None:
        """The last answer of a connection, where none has begun; without the application."""
        if self.scope is not None:
            self.scope["state"]["ended"] = status
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            content = f'{{"error": "{message}"}}'.encode()
            lines = [f"HTTP/1.1 {status} Refused", "content-type: application/json", f"content-length: {len(content)}"]
            lines += ["retry-after: 1"] * retry + ["connection: close", "", ""]
            self.transport.write("\r\n".join(lines).encode() + content)
        self.transport.close()


class GracefulServer(uvicorn.Server):
    """Answers everyone who has begun to ask."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.stopping = True  # from now on every answer is the last of its connection
        logs.event("stopping")
        await asyncio.sleep(GRACE_SECONDS)  # so that who asks /health can send others elsewhere
        listeners = [each.dup() for each in sockets or ()]  # closing drops connections that nobody has taken yet
        for server in self.servers:
            server.close()
        await self.take_rest(listeners)
        await asyncio.sleep(GRACE_SECONDS)  # who has connected has asked by now
        await super().shutdown(sockets)
        logs.event("stopped")

    async def take_rest(self, listeners: list[socket.socket]) -> None:
        """Takes the connections that wait at closed doors."""
        accepted = list[socket.socket]()
        for listening in listeners:
            listening.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    accepted.append(listening.accept()[0])
            listening.close()
        loop = asyncio.get_running_loop()
        protocol_class: Any = self.config.http_protocol_class
        arguments: dict[str, Any] = {"server_state": self.server_state, "app_state": self.lifespan.state, "_loop": loop}
        for connection in accepted:
            await loop.connect_accepted_socket(lambda: protocol_class(config=self.config, **arguments), connection)
