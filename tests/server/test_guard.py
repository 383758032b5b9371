"""Who is refused: foreign hosts, foreign pages, those without key or token, too much, too slow, too many."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import logging
import socket
import time
from typing import Any

import pytest
from refusing import refuses
from serving import run_alone, serving, until

from firth.server.guard import Guard
from firth.server.logs import Lines
from firth.server.settings import Settings

KEY = "a-key-of-twenty-signs"


def raw(client, data, wait=30.0):
    """Send raw bytes and return the response."""
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=wait) as line:
        line.sendall(data)
        return heard(line)


def heard(line):
    found = b""
    with contextlib.suppress(OSError):
        while part := line.recv(65536):
            found += part
            head, _, body = found.partition(b"\r\n\r\n")
            size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if size and len(body) >= int(size):
                break
    return found


def status(answer):
    return int(answer[9:12]) if answer else 0


# ---- hosts and origins ----


@pytest.mark.parametrize(
    ("host", "right"),
    [
        ("127.0.0.1", 200),
        ("localhost:8000", 200),
        ("LOCALHOST", 200),
        ("[::1]:80", 200),
        ("127.0.0.1.evil.example", 403),
        ("evil.example", 403),
        ("evil.example:8000", 403),
        ("localhost.evil.example", 403),
        ("192.168.1.5", 403),
        ("", 403),
        ("[::1", 403),
        ("@localhost", 403),
    ],
)
def test_only_allowed_hosts_are_answered(client, host, right):
    answer = raw(client, f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert status(answer) == right, answer


def test_a_request_must_have_one_host(client):
    assert status(raw(client, b"GET /v1/models HTTP/1.0\r\n\r\n")) == 400
    assert status(raw(client, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")) == 400


def test_further_hosts_can_be_allowed(places):
    with serving(models={"words": places["words"]}, hosts=("box.home",)) as own:
        assert own.get("/health", headers={"Host": "box.home:8000"}).status_code == 200
        assert own.get("/health", headers={"Host": "other.home"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        ({}, 200),
        ({"Origin": "SAME"}, 200),
        ({"Origin": "SAME", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "https://SAME"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_pages_of_other_sites_cannot_post(client, headers, right):
    own = f"http://{client.base_url.host}:{client.base_url.port}"
    given = {name: own if value == "SAME" else value.replace("SAME", own[7:]) for name, value in headers.items()}
    answer = client.post("/embed", json={"inputs": "a"}, headers=given)
    assert answer.status_code == right
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_cross_origin_requests_are_not_allowed(client):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options("/embed", headers=headers)
    assert answer.status_code == 405 and not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"origin": "http://localhost:8000", "sec-websocket-protocol": "firth.TOKEN"}, True),
        ({"origin": "http://localhost:8000"}, False),
        ({"origin": "http://localhost:8000", "sec-websocket-protocol": "firth.wrong"}, False),
        ({"origin": "http://evil.example", "sec-websocket-protocol": "firth.TOKEN"}, False),
        ({"sec-websocket-protocol": "firth.TOKEN"}, False),
    ],
)
def test_websockets_need_the_origin_and_the_token(headers, taken):
    settings, reached, sent = Settings(), [], []

    async def app(scope, receive, send):
        reached.append(scope)

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    pairs = [(b"host", b"localhost:8000")]
    pairs += [(name.encode(), value.replace("TOKEN", settings.token).encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "path": "/api/live", "scheme": "ws", "headers": pairs}
    run_alone(Guard(app, settings)(scope, receive, send))
    assert bool(reached) == taken and [message["type"] for message in sent] == ([] if taken else ["websocket.close"])


# ---- key ----


def test_a_server_for_other_machines_needs_a_key():
    with refuses("weak_key", host="0.0.0.0"):
        Settings(host="0.0.0.0")
    with refuses("weak_key", least=16, got=5):
        Settings(host="0.0.0.0", key="short")
    assert Settings(host="::1").is_local and not Settings(host="10.1.2.3", key=KEY).is_local


def test_all_routes_but_health_need_the_key(places, monkeypatch):
    compared = []
    original = hmac.compare_digest

    def compare(a: Any, b: Any) -> bool:
        compared.append(a)
        return original(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    with serving(models={"words": places["words"]}, host="0.0.0.0", key=KEY) as own:
        own.base_url = f"http://127.0.0.1:{own.base_url.port}"
        assert own.get("/health").status_code == 200
        for path in ("/", "/docs", "/v1/models", "/metrics", "/info", "/openapi.json", "/api/models"):
            answer = own.get(path)
            assert answer.status_code == 401 and "Basic" in answer.headers["www-authenticate"], path
        for wrong in ("", "Bearer", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Token {KEY}", "Basic !", KEY):
            assert own.get("/v1/models", headers={"Authorization": wrong}).status_code == 401, wrong
        assert f"{KEY}x".encode() in compared  # in constant time
        assert own.get("/v1/models", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
        basic = base64.b64encode(f"me:{KEY}".encode()).decode()
        page = own.get("/", headers={"Authorization": f"Basic {basic}"})
        assert page.status_code == 200
        both = {"Authorization": f"Bearer {KEY}", "X-Firth-Token": own.settings.token}
        assert own.get("/api/models", headers=both).status_code == 200
        assert own.get("/api/models", headers={**both, "X-Firth-Token": ""}).status_code == 403
        assert own.get("/v1/models", headers={"Host": "10.0.0.7", **both}).status_code == 200  # a bare address


# ---- paths ----


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/assets/../../app.py",
        "/assets/%2e%2e/%2e%2e/app.py",
        "/assets/..%5c..%5capp.py",
        "/docs/../settings.py",
        "/docs/%2e%2e/settings.py",
        "//etc/passwd",
        "/etc/passwd",
        "/%00",
        "/.gitkeep",
        "http://localhost/../settings.py",
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/%ff%fe",
    ],
)
def test_no_path_reads_other_files(client, path):
    answer = raw(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert status(answer) in (400, 404), answer
    assert b"root:" not in answer and b"import " not in answer


# ---- how much, how fast, how many ----


def test_a_body_of_a_gigabyte_is_refused_before_it_is_sent(client):
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
    answer = raw(client, head)
    assert status(answer) == 413 and b"connection: close" in answer.lower()


@pytest.fixture(scope="module")
def small(places):
    """A server with small limits."""
    with serving(
        models={"words": places["words"]},
        body_bytes=2000,
        upload_bytes=4000,
        head_seconds=1.0,
        body_seconds=1.0,
    ) as found:
        yield found


def test_a_body_without_a_length_is_counted(small):
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert status(raw(small, head + 3 * chunk)) == 413
    assert small.post("/embed", content=b" " * 2001).status_code == 413
    assert small.post("/embed", content=b" " * 1900 + b'{"inputs": "a"}').status_code == 200


@pytest.mark.parametrize("length", ["x", "-5", "1e3", "9" * 30])
def test_invalid_content_lengths_are_refused(small, length):
    answer = raw(small, f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    assert status(answer) in (400, 413)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"POST /embed HT",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{",
        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
)
def test_slow_requests_time_out(small, data):
    assert status(raw(small, data)) == 408


def test_a_trickle_of_bytes_times_out(small):
    with socket.create_connection((small.base_url.host, small.base_url.port), timeout=30) as line:
        line.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n")
        for _ in range(400):
            try:
                line.sendall(b" ")
            except OSError:
                return
            time.sleep(0.05)
    pytest.fail("the connection was kept")


def test_endless_headers_are_refused(small):
    many = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 200) for number in range(1000))
    assert status(raw(small, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + many)) in (0, 431)
    assert small.get("/health").status_code == 200


def test_a_client_that_does_not_read_is_disconnected(places):
    body = json.dumps({"inputs": ["the king was old"] * 2048}).encode()
    with serving(models={"counts": places["counts"]}, answer_seconds=2.0) as own, socket.socket() as line:
        own.post("/embed", json={"inputs": "king"})
        others = own.connections()
        line.settimeout(30)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect((own.base_url.host, own.base_url.port))
        line.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert until(lambda: own.connections() == others + 1) and until(lambda: own.connections() == others)
        answer = heard(line)
    size = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert answer.startswith(b"HTTP/1.1 200") and len(answer) < size


def test_the_total_size_of_bodies_is_limited(places):
    with serving(models={"words": places["words"]}, held_bytes=100) as own:
        assert own.post("/embed", json={"inputs": "king"}).status_code == 200
        answer = own.post("/embed", json={"inputs": "king " * 50})
        assert answer.status_code == 429 and answer.headers["retry-after"] == "1"


def test_the_number_of_connections_is_limited(places):
    with serving(models={"words": places["words"]}, connections=20, head_seconds=100.0) as own:
        address = own.base_url.host, own.base_url.port
        lines = [socket.create_connection(address, timeout=30) for _ in range(100)]
        assert all(heard(line).startswith(b"HTTP/1.1 503") for line in lines[20:])
        assert own.get("/health").status_code == 503
        for line in lines:
            line.close()
        assert until(lambda: own.get("/health").status_code == 200)


# ---- answers ----


def test_every_response_has_the_security_headers(client):
    for answer in (client.get("/"), client.get("/nope"), client.post("/embed"), client.get("/api/models")):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff" and "server" not in answer.headers


def test_the_api_reference_loads_nothing_from_other_sites(client):
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css"):
        answer = client.get(path)
        assert answer.status_code == 200 and "https://" not in answer.text and "<script>" not in answer.text
        assert " style=" not in answer.text and "onclick" not in answer.text


def test_logs_are_json_without_texts(client, caplog):
    caplog.set_level(logging.INFO, "firth.server")
    client.post("/embed?secret=1", json={"inputs": "a secret text"}, headers={"X-Secret": "s"})
    client.get("/secret/path?token=secret")
    client.post("/embed", content=b'{"inputs": secret}')
    client.put("/embed", content=b"secret")
    assert until(lambda: '"PUT"' in "".join(Lines({}).format(record) for record in caplog.records))
    # Before them there may be a late line of a request that another test made.
    lines = [Lines({}).format(record) for record in caplog.records if record.name == "firth.server"][-4:]
    assert len(lines) == 4 and "secret" not in "".join(lines).lower()
    found = [json.loads(line) for line in lines]
    assert [each["status"] for each in found] == [200, 404, 422, 405]
    assert found[0]["route"] == "/embed" and found[1]["route"] == "other" and found[0]["ms"] > 0
