"""What stands before the application: who may ask, how much, how long; and the headers of every answer.

A page of another site must not use a person's browser to reach a server on that person's machine: hence the names the
server answers to (Host), the check of Origin, the token of the workbench and the policy of what pages may load.
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
from firth.server.errors import RequestError, shaped
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
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
OPEN = "/health"  # what needs no key


Seen = Callable[[Scope, int, float, int], None]


def nothing(scope: Scope, status: int, seconds: float, size: int) -> None:
    pass


class Guard:
    """ASGI. `seen` is told of every answer: scope, status, seconds, bytes of the body."""

    def __init__(
        self, app: ASGIApp, settings: Settings, seen: Seen = nothing, stopping: Callable[[], bool] = bool
    ) -> None:
        self.app, self.settings, self.seen, self.stopping = app, settings, seen, stopping
        self.held = 0  # bytes of bodies
        self.late: set[asyncio.Task[None]] = set()  # nobody waits for these any more

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self.socket(scope, receive, send)
        else:
            await self.request(scope, receive, send)

    async def request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, answer = time.monotonic(), Answer(self, send)
        try:
            self.check(scope)
            body = await self.body(scope, receive, answer)
            await self.answered(scope, body, receive, answer)
        except RequestError as error:
            await answer.refuse(scope["path"], error)
        except Exception as error:
            logs.fault(error)
            await answer.refuse(
                scope["path"], RequestError(500, "A fault in the server; its log says where.", kind="fault")
            )
        finally:
            self.held -= answer.size
            self.seen(scope, answer.status, time.monotonic() - begun, answer.size)

    # ---- who ----

    def check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])  # of several with one name, the last
        if sum(name == b"host" for name, _ in scope["headers"]) != 1:
            raise RequestError(400, "A request needs one Host header.")
        if not self.settings.knows_host(host_name(headers[b"host"])):
            raise RequestError(
                403, "This server does not answer to that Host; --allow-host NAME adds one.", kind="forbidden"
            )
        if scope["type"] == "websocket" or scope["method"] not in SAFE:
            self.check_origin(scope, headers)
        path = scope["path"]
        if self.settings.key is not None and path != OPEN and not has_key(headers, self.settings.key):
            raise RequestError(
                401,
                "This is not the server's key."
                if b"authorization" in headers
                else "A key is needed: Authorization: Bearer KEY (or, in a browser, KEY as the password).",
                kind="authentication_error",
                code="invalid_api_key",
                headers={"www-authenticate": 'Bearer realm="firth", Basic realm="firth"'},
            )
        if path == "/api" or path.startswith("/api/"):
            given = token_of(scope, headers)
            if not hmac.compare_digest(given, self.settings.token.encode()):
                raise RequestError(
                    403,
                    "The workbench's token is missing or of an earlier start: open the address that was printed.",
                    kind="forbidden",
                    code="invalid_token",
                )

    def check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Programs send no Origin; browsers always do, where it matters."""
        origin = headers.get(b"origin")
        site = headers.get(b"sec-fetch-site", b"none")
        scheme = scope["scheme"].replace("ws", "http").encode()
        own = scheme + b"://" + headers[b"host"]
        if (origin is not None and origin.lower() != own.lower()) or site not in (b"none", b"same-origin"):
            raise RequestError(403, "A page of another site may not ask this.", kind="forbidden")
        if scope["type"] == "websocket" and origin is None:
            raise RequestError(403, "A WebSocket needs an Origin.", kind="forbidden")

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.check(scope)
        except RequestError:
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
            return
        await self.app(scope, receive, send)

    # ---- how much ----

    async def body(self, scope: Scope, receive: Receive, answer: Answer) -> bytes:
        """The whole body, before anything looks into it; what has come of it is held from then on."""
        settings = self.settings
        most = settings.upload_bytes if scope["path"].startswith("/api/") else settings.body_bytes
        headers = dict(scope["headers"])
        told = headers.get(b"content-length", b"0")
        if not told.isdigit() or len(told) > 18:
            raise RequestError(400, "Content-Length must be a whole number.")
        self.check_size(int(told), int(told), most)
        if scope["path"] == OPEN:  # it takes none, and needs no key to be asked
            answer.last = told != b"0" or b"transfer-encoding" in headers
            return b""
        collected = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                ended = scope.get("state", {}).get("ended", 499)  # the connection says why, where it ended it
                raise RequestError(ended, "The body did not arrive.", kind="timeout")
            chunk = message.get("body", b"")
            self.check_size(answer.size + len(chunk), len(chunk), most)
            answer.size += len(chunk)
            self.held += len(chunk)
            if not message.get("more_body", False):
                return bytes(collected + chunk) if collected else chunk
            collected += chunk

    def check_size(self, size: int, more: int, most: int) -> None:
        """Of a body, and what comes to all that is held."""
        if size > most:
            raise RequestError(413, f"The body may have {most:,} bytes at most.", kind="too_large")
        if self.held + more > self.settings.held_bytes:
            raise RequestError(429, "Too much is being sent at once.", kind="overloaded", headers={"retry-after": "1"})

    # ---- how long ----

    async def answered(self, scope: Scope, body: bytes, receive: Receive, answer: Answer) -> None:
        """Runs the application until it has answered, the client is gone or the time is over."""
        given = False
        gone = asyncio.ensure_future(left(receive))

        async def again() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.shield(gone)
            return {"type": "http.disconnect"}

        task: asyncio.Task[None] = asyncio.ensure_future(self.app(scope, again, answer))
        try:
            limit = None if scope["path"].startswith("/api/") else self.settings.answer_seconds
            await asyncio.wait({task, gone}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not gone.done() and answer.status:
                await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)  # it streams
            if task.done():
                task.result()
                return
            answer.closed = True
            if not gone.done():
                raise RequestError(504, f"No answer within {limit:g} s.", kind="timeout")
            answer.status = answer.status or 499
        finally:
            gone.cancel()
            if not task.done():
                task.cancel()
                self.late.add(task)
                task.add_done_callback(self.forget)

    def forget(self, task: asyncio.Task[None]) -> None:
        self.late.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, RequestError):
            logs.fault(error)  # else asyncio would tell it, with its message


class Answer:
    """`send`, with the headers that every answer has; nothing after it was closed. `size`: bytes of the request."""

    def __init__(self, guard: Guard, send: Send) -> None:
        self.guard, self.send, self.status, self.size, self.closed = guard, send, 0, 0, False
        self.last = False  # whether the connection ends with it

    async def __call__(self, message: Message) -> None:
        if self.closed:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            more = [(b"connection", b"close")] if self.last or self.guard.stopping() else []
            message = {**message, "headers": [*message.get("headers", []), *HEADERS, *more]}
        await self.send(message)

    async def refuse(self, path: str, error: RequestError) -> None:
        """An answer of the guard itself. What is left of the body is not read: the connection ends."""
        if self.status and self.status != 499:
            return
        self.status = error.status
        if error.status == 499:
            return
        content = json.dumps(shaped(path, error)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(content)), "connection": "close"}
        pairs = [(name.encode(), value.encode()) for name, value in (headers | error.headers).items()]
        await self.send(
            {"type": "http.response.start", "status": HTTPStatus(error.status), "headers": [*pairs, *HEADERS]}
        )
        await self.send({"type": "http.response.body", "body": content})


async def left(receive: Receive) -> None:
    """Ends when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def host_name(host: bytes) -> str:
    """Of `name:port`, the name."""
    text = host.decode("latin-1")
    if text.startswith("["):
        return "".join(text.partition("]")[:2])
    return text.partition(":")[0]


def has_key(headers: dict[bytes, bytes], key: str) -> bool:
    """Compared in the same time whatever it is."""
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"basic":
        try:
            value = base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            value = b""
    elif scheme.lower() != b"bearer":
        value = b""
    return hmac.compare_digest(value.strip(), key.encode())


def token_of(scope: Scope, headers: dict[bytes, bytes]) -> bytes:
    """A WebSocket's headers are the browser's: it brings the token as the protocol firth.TOKEN."""
    if scope["type"] != "websocket":
        return headers.get(b"x-firth-token", b"")
    offered: list[Any] = headers.get(b"sec-websocket-protocol", b"").split(b",")
    return next((each.strip()[6:] for each in offered if each.strip().startswith(b"firth.")), b"")
