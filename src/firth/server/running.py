"""Starting and graceful shutdown of the server.

uvicorn accepts any number of connections, waits without limit for the rest of a request and buffers pipelined requests;
`Connection` limits all of these. When uvicorn stops, it closes idle connections at once; `GracefulServer` first answers
requests that may already be on their way.
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
FRAMING_BYTES = 64 << 10  # chunk sizes, chunk extensions and trailers, in excess of the size of the body
MAX_PIPELINED = 32  # requests that wait for earlier responses on the same connection
IDLE_SECONDS = 30  # keep-alive timeout between requests
GRACE_SECONDS = 0.5  # in which a stopping server still accepts requests


def run(settings: Settings, ready: Callable[[str, str], None], requests: bool = True) -> None:
    """Serve until a signal stops the server. `ready` is called with the server's address, which has the actual port,
    and that of the workbench; `requests` enables the log of requests."""
    logs.begin(requests)
    server, listening, address = prepare_server(settings)
    ready(address, settings.page(address))
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after the shutdown
        server.run([listening])


def prepare_server(settings: Settings) -> tuple[GracefulServer, socket.socket, str]:
    """Return a server that `run([socket])` starts, its socket and its address."""
    listening = listen(settings.host, settings.port)
    return new_server(settings), listening, address_of(settings, listening)


def new_server(settings: Settings) -> GracefulServer:
    """Return a server that `run([socket])` starts."""
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
    return GracefulServer(config, app)


def address_of(settings: Settings, listening: socket.socket) -> str:
    """Return the address of a server with its actual port."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """Bind a socket. uvicorn does not do it, so that errors are reported in one line and the port is known early."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)  # clients can connect as soon as the address is printed
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
    """A connection with limits on time, header size, framing and pipelining; their number is limited too."""

    settings: Settings
    timer: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None  # runs while the client does not read the response
    head = 0  # bytes received of the headers
    in_head = True
    body = 0  # bytes received of the body
    framing = 0  # other bytes after the headers
    crowded = False  # whether too many requests were pipelined; further ones are not read

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
            if self.timer is None:  # the first bytes of another request
                self.within(self.settings.head_seconds)
            self.head += len(data)
        else:
            self.framing += len(data)  # `on_body` subtracts the body
        super().data_received(data)
        if self.transport.is_closing() or self.crowded:
            return
        if self.in_head and self.head > HEAD_BYTES:
            self.end(431, "The headers are too large.")
        elif not self.in_head and self.framing > FRAMING_BYTES + self.body:
            self.end(413, "The chunk sizes, chunk extensions and trailers are larger than the body.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check a header; trailers are dropped."""
        if self.in_head:  # trailers are dropped: the headers were checked before the body
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the head, and limit the time of the body."""
        if self.crowded:
            return
        self.in_head, self.head, self.body, self.framing = False, 0, 0, 0
        super().on_headers_complete()
        seconds = self.settings.body_seconds
        self.within(10 * seconds if self.scope.get("path", "").startswith("/api/") else seconds)
        if len(self.pipeline) > MAX_PIPELINED:
            self.crowded = True
            self.within(None)
            self.pipeline.popleft()  # this request is not answered; the connection ends after the one before it
            self.cycle = self.pipeline[0][0]
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Count the bytes of the body."""
        if not self.crowded:
            self.body += len(body)
            self.framing -= len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        if self.crowded:
            return
        self.in_head = True
        self.within(None)
        super().on_message_complete()

    def within(self, seconds: float | None) -> None:
        """Set the time limit for the next data; None for no limit."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else self.loop.call_later(seconds, self.overdue)

    def overdue(self) -> None:
        """Refuse a request that arrives too slowly."""
        self.end(408, "The request took too long to arrive.")

    def end(self, status: int, message: str, retry: bool = False) -> None:
        """Send a last response, unless one has begun, and close the connection, without the application."""
        if self.scope is not None:
            self.scope["state"]["ended"] = status
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            content = f'{{"error": "{message}"}}'.encode()
            lines = [f"HTTP/1.1 {status} Refused", "content-type: application/json", f"content-length: {len(content)}"]
            lines += ["retry-after: 1"] * retry + ["connection: close", "", ""]
            self.transport.write("\r\n".join(lines).encode() + content)
        self.transport.close()


class GracefulServer(uvicorn.Server):
    """A server that answers all requests that have begun before it stops."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self.app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and answer what was accepted."""
        self.app.state.stopping = True  # from now on every response closes its connection
        logs.event("stopping")
        await asyncio.sleep(GRACE_SECONDS)  # so that load balancers can see /health fail
        listeners = [each.dup() for each in sockets or ()]  # closing would drop connections that are not accepted yet
        for server in self.servers:
            server.close()
        await self.take_rest(listeners)
        await asyncio.sleep(GRACE_SECONDS)  # time for clients that have connected to send their request
        await super().shutdown(sockets)
        logs.event("stopped")

    async def take_rest(self, listeners: list[socket.socket]) -> None:
        """Accept the connections that are still in the backlog."""
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
