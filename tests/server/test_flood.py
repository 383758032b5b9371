"""A request without end is cut off early, whichever part of it has no end, and the server's memory does not grow."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
from serving import serving
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from firth.server.running import MAX_PIPELINED

MIB = 1 << 20
MOST = 64 * MIB  # that a test sends at most
ROOM = 24 * MIB  # that the buffers of two sockets and the server's own may take up
LINE = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def server(places: dict[str, Path]) -> Iterator[tuple[int, int]]:
    """The port and the process id of `firth serve`."""
    command = [sys.executable, "-m", "firth", "serve", f"words={places['words']}", "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(process.stdout.readline().strip().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:  # it answers, so it is all there
        line.sendall(b"GET /health HTTP/1.1\r\n" + LINE + b"Connection: close\r\n\r\n")
        while line.recv(65536):
            pass
    yield port, process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def resident(process: int) -> int:
    """Return the peak memory of the process in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def sent_until_closed(port: int, head: bytes, piece: bytes) -> int:
    """Send `piece` repeatedly and return the bytes that the server accepted before it closed the connection."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        try:
            line.sendall(head)
            for _ in repeat(None, MOST // len(piece)):
                line.sendall(piece)
                sent += len(piece)
        except OSError:
            return sent
    pytest.fail(f"the server took all {sent:,} bytes")


CHUNKED = b"HTTP/1.1\r\n" + LINE + b"Transfer-Encoding: chunked\r\n\r\n"
WAYS = {
    "trailers": (b"POST /health " + CHUNKED + b"0\r\n", b"t: " + b"x" * 1021 + b"\r\n"),
    "one trailer": (b"POST /health " + CHUNKED + b"0\r\nt: ", b"x" * 65536),
    "trailers of a route": (b"POST /embed " + CHUNKED + b"1\r\n{\r\n0\r\n", b"t: " + b"x" * 1021 + b"\r\n"),
    "an extension of a chunk": (b"POST /embed " + CHUNKED + b"1;name=", b"x" * 65536),
    "tiny chunks with extensions": (b"POST /embed " + CHUNKED, (b"1;" + b"x" * 1000 + b"\r\n \r\n") * 50),
    "tiny chunks": (b"POST /embed " + CHUNKED, b"1\r\n \r\n" * 10_000),
    "a body": (b"POST /embed " + CHUNKED, b"ffff\r\n" + b" " * 65535 + b"\r\n"),
    "a body for health": (b"POST /health HTTP/1.1\r\n" + LINE + b"Content-Length: 900000000\r\n\r\n", b" " * 65536),
    "header lines": (b"GET /health HTTP/1.1\r\n" + LINE, b"x: " + b"y" * 1021 + b"\r\n"),
    "an address": (b"GET /health?", b"x" * 65536),
    "requests in one line": (b"", (b"GET /health HTTP/1.1\r\n" + LINE + b"\r\n") * 2000),
    "after an upgrade": (
        b"GET /health HTTP/1.1\r\n" + LINE + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"x" * 65536,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_endless_request_is_aborted(server: tuple[int, int], way: str) -> None:
    port, process = server
    before = resident(process)
    sent = sent_until_closed(port, *WAYS[way])
    assert sent < ROOM and resident(process) - before < ROOM, (sent, resident(process) - before)


def test_health_answers_without_reading_a_body(server: tuple[int, int]) -> None:
    head = b"POST /health HTTP/1.1\r\n" + LINE + b"Content-Length: 1000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server[0]), timeout=60) as line:
        line.sendall(head)  # and nothing else
        answer = b""
        while part := line.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 405") and b"connection: close" in answer.lower()


def test_trailers_are_not_headers(places: dict[str, Path]) -> None:
    """Trailers cannot change the headers that the guard has checked, and short trailers are accepted."""
    with serving(models={"words": places["words"]}) as own:
        seen = []

        async def headers(request: Request) -> JSONResponse:
            seen.append(dict(request.headers))
            return JSONResponse({})

        own.app.router.routes.insert(0, Route("/echo", headers, methods=["POST"]))
        address = own.base_url.host, own.base_url.port
        with socket.create_connection(address, timeout=30) as line:
            line.sendall(b"POST /echo " + CHUNKED + b"1\r\n{\r\n0\r\nX-Firth-Token: a\r\n\r\n")
            assert line.recv(65536).startswith(b"HTTP/1.1 200")
    assert seen and "x-firth-token" not in seen[0] and seen[0]["host"] == "localhost"


def test_pipelined_requests_are_answered_up_to_the_limit(places: dict[str, Path]) -> None:
    request = b"GET /health HTTP/1.1\r\n" + LINE + b"\r\n"
    with serving(models={"words": places["words"]}) as own:
        address = own.base_url.host, own.base_url.port
        for n_requests in (1, 20, MAX_PIPELINED + 1, MAX_PIPELINED + 2, 300):  # the first is not waiting
            with socket.create_connection(address, timeout=30) as line:
                line.sendall(request * (n_requests - 1) + request.replace(LINE, LINE + b"Connection: close\r\n"))
                response = b""
                while part := line.recv(65536):
                    response += part
            assert response.count(b"HTTP/1.1 200") == min(n_requests, MAX_PIPELINED + 1), n_requests
