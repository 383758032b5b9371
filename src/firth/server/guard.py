"""ASGI middleware in front of the application: access checks, size limits, timeouts, and headers of all responses.

A website must not be able to use a person's browser to reach a server on that person's machine. Hence the checks of
Host and Origin, the token of the workbench, and the content security policy.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firth.server import logs
from firth.server.errors import RequestError, error_body
from firth.server.settings import Settings

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
PUBLIC_PATH = "/health"  # needs no key


OnResponse = Callable[[Scope, int, float, int], None]


def ignore(scope: Scope, status: int, seconds: float, size: int) -> None:
    """Do nothing: the default callback."""


class Guard:
    """The middleware. `on_response` gets the scope, status, seconds and request body size of every response."""

    def __init__(
        self, app: ASGIApp, settings: Settings, on_response: OnResponse = ignore, stopping: Callable[[], bool] = bool
    ) -> None:
        self.app, self.settings, self.on_response, self.stopping = app, settings, on_response, stopping
        self.buffered_bytes = 0  # of the request bodies that are in memory
        self.abandoned: set[asyncio.Task[None]] = set()  # tasks whose client has disconnected or timed out

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self.socket(scope, receive, send)
        else:
            await self.request(scope, receive, send)

    async def request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and answer one HTTP request."""
        started, response = time.monotonic(), GuardedSend(self, send)
        try:
            self.check(scope)
            body = await self.body(scope, receive, response)
            await self.respond(scope, body, receive, response)
        except RequestError as error:
            await response.refuse(scope["path"], error)
        except Exception as error:
            logs.fault(error)
            await response.refuse(
                scope["path"], RequestError(500, "Internal error; see the server's log.", kind="fault")
            )
        finally:
            self.buffered_bytes -= response.size
            self.on_response(scope, response.status, time.monotonic() - started, response.size)

    # ---- access ----

    def check(self, scope: Scope) -> None:
        """Check the host, the origin, the API key and the workbench's token."""
        headers = dict(scope["headers"])  # the last of several with the same name
        if sum(name == b"host" for name, _ in scope["headers"]) != 1:
            raise RequestError(400, "A request must have exactly one Host header.")
        if not self.settings.allows_host(host_name(headers[b"host"])):
            raise RequestError(
                403, "This Host is not allowed; start the server with --allow-host NAME to add it.", kind="forbidden"
            )
        if scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS:
            self.check_origin(scope, headers)
        path = scope["path"]
        if self.settings.key is not None and path != PUBLIC_PATH and not has_key(headers, self.settings.key):
            raise RequestError(
                401,
                "The API key is wrong."
                if b"authorization" in headers
                else "An API key is required: Authorization: Bearer KEY (in a browser, KEY as the password).",
                kind="authentication_error",
                code="invalid_api_key",
                headers={"www-authenticate": 'Bearer realm="firth", Basic realm="firth"'},
            )
        if path == "/api" or path.startswith("/api/"):
            token = workbench_token(scope, headers)
            if not hmac.compare_digest(token, self.settings.token.encode()):
                raise RequestError(
                    403,
                    "The workbench's token is missing or from an earlier server process. Open the address that the "
                    "server printed.",
                    kind="forbidden",
                    code="invalid_token",
                )

    def check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse requests from pages of other sites. Browsers send Origin with such requests; programs do not."""
        origin = headers.get(b"origin")
        fetch_site = headers.get(b"sec-fetch-site", b"none")
        scheme = scope["scheme"].replace("ws", "http").encode()
        expected = scheme + b"://" + headers[b"host"]
        if (origin is not None and origin.lower() != expected.lower()) or fetch_site not in (b"none", b"same-origin"):
            raise RequestError(403, "Requests from pages of other sites are not allowed.", kind="forbidden")
        if scope["type"] == "websocket" and origin is None:
            raise RequestError(403, "A WebSocket request must have an Origin header.", kind="forbidden")

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a WebSocket request before it is accepted."""
        try:
            self.check(scope)
        except RequestError:
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # closing before accepting responds with 403
            return
        await self.app(scope, receive, send)

    # ---- sizes ----

    async def body(self, scope: Scope, receive: Receive, response: GuardedSend) -> bytes:
        """Receive the complete body. Received bytes count as buffered until the response is sent."""
        settings = self.settings
        max_bytes = settings.upload_bytes if scope["path"].startswith("/api/") else settings.body_bytes
        headers = dict(scope["headers"])
        content_length = headers.get(b"content-length", b"0")
        if not content_length.isdigit() or len(content_length) > 18:
            raise RequestError(400, "Content-Length must be an integer.")
        self.check_size(int(content_length), int(content_length), max_bytes)
        if scope["path"] == PUBLIC_PATH:  # it needs no key, so its body is not read
            response.close_connection = content_length != b"0" or b"transfer-encoding" in headers
            return b""
        collected = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                ended = scope.get("state", {}).get("ended", 499)  # set by `Connection.end`
                raise RequestError(ended, "The body did not arrive.", kind="timeout")
            chunk = message.get("body", b"")
            self.check_size(response.size + len(chunk), len(chunk), max_bytes)
            response.size += len(chunk)
            self.buffered_bytes += len(chunk)
            if not message.get("more_body", False):
                return bytes(collected + chunk) if collected else chunk
            collected += chunk

    def check_size(self, size: int, new_bytes: int, max_bytes: int) -> None:
        """Check the size of a body, and of all buffered bodies together."""
        if size > max_bytes:
            raise RequestError(413, f"The body must have at most {max_bytes:,} bytes.", kind="too_large")
        if self.buffered_bytes + new_bytes > self.settings.held_bytes:
            text = "Too many request bodies are in memory; try again later."
            raise RequestError(429, text, kind="overloaded", headers={"retry-after": "1"})

    # ---- timeouts ----

    async def respond(self, scope: Scope, body: bytes, receive: Receive, response: GuardedSend) -> None:
        """Run the application until it has responded, the client has disconnected or the time limit is reached."""
        body_sent = False
        disconnect = asyncio.ensure_future(disconnected(receive))

        async def replay_body() -> Message:
            nonlocal body_sent
            if not body_sent:
                body_sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.shield(disconnect)
            return {"type": "http.disconnect"}

        task: asyncio.Task[None] = asyncio.ensure_future(self.app(scope, replay_body, response))
        try:
            limit = None if scope["path"].startswith("/api/") else self.settings.answer_seconds
            await asyncio.wait({task, disconnect}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not disconnect.done() and response.status:
                await asyncio.wait(
                    {task, disconnect}, return_when=asyncio.FIRST_COMPLETED
                )  # a streaming response has begun
            if task.done():
                task.result()
                return
            response.closed = True
            if not disconnect.done():
                raise RequestError(504, f"No response within {limit:g} s.", kind="timeout")
            response.status = response.status or 499
        finally:
            disconnect.cancel()
            if not task.done():
                task.cancel()
                self.abandoned.add(task)
                task.add_done_callback(self.forget)

    def forget(self, task: asyncio.Task[None]) -> None:
        """Drop an abandoned task that has ended, and log its error."""
        self.abandoned.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, RequestError):
            logs.fault(error)  # otherwise asyncio would log it with its message


class GuardedSend:
    """`send` with the headers of all responses; it sends nothing once closed. `size` is that of the request body."""

    def __init__(self, guard: Guard, send: Send) -> None:
        self.guard, self.send, self.status, self.size, self.closed = guard, send, 0, 0, False
        self.close_connection = False

    async def __call__(self, message: Message) -> None:
        if self.closed:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            extra = [(b"connection", b"close")] if self.close_connection or self.guard.stopping() else []
            message = {**message, "headers": [*message.get("headers", []), *HEADERS, *extra]}
        await self.send(message)

    async def refuse(self, path: str, error: RequestError) -> None:
        """Send an error response and close the connection, because the rest of the body is not read."""
        if self.status and self.status != 499:
            return
        self.status = error.status
        if error.status == 499:
            return
        content = json.dumps(error_body(path, error)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(content)), "connection": "close"}
        pairs = [(name.encode(), value.encode()) for name, value in (headers | error.headers).items()]
        await self.send(
            {"type": "http.response.start", "status": HTTPStatus(error.status), "headers": [*pairs, *HEADERS]}
        )
        await self.send({"type": "http.response.body", "body": content})


async def disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def host_name(host: bytes) -> str:
    """Return the name in `name:port`."""
    text = host.decode("latin-1")
    if text.startswith("["):
        return "".join(text.partition("]")[:2])
    return text.partition(":")[0]


def has_key(headers: dict[bytes, bytes], key: str) -> bool:
    """Return whether the request has the API key, compared in constant time."""
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"basic":
        try:
            value = base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            value = b""
    elif scheme.lower() != b"bearer":
        value = b""
    return hmac.compare_digest(value.strip(), key.encode())


def workbench_token(scope: Scope, headers: dict[bytes, bytes]) -> bytes:
    """Return the workbench's token. A WebSocket cannot set headers, so it sends the token as protocol firth.TOKEN."""
    if scope["type"] != "websocket":
        return headers.get(b"x-firth-token", b"")
    offered: list[Any] = headers.get(b"sec-websocket-protocol", b"").split(b",")
    return next((each.strip()[6:] for each in offered if each.strip().startswith(b"firth.")), b"")
