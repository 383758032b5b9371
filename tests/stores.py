"""Object stores for tests: a real S3 server (moto) in this process, and the memory of fsspec.

Requests pass a gate, which writes them down and refuses some, as the policies of buckets do.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DENIED = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'


class Request(NamedTuple):
    """A request of a client."""

    verb: str
    path: str
    signed: bool
    range: str | None

    @property
    def bytes(self) -> int:
        """How many bytes of a range were asked for."""
        first, last = (self.range or "bytes=0-").removeprefix("bytes=").split("-")
        return int(last) - int(first) + 1 if last else 1 << 62


class Server:
    """An S3 server at `address`."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.inner = DomainDispatcherApplication(create_backend_app)
        self.requests: list[Request] = []
        self.denies: Callable[[Request], bool] = lambda request: False
        self.before: Callable[[Request], None] = lambda request: None
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, environment: Any, start: Any) -> Iterable[bytes]:
        signed = "HTTP_AUTHORIZATION" in environment
        verb, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        request = Request(verb, path, signed, environment.get("HTTP_RANGE"))
        self.requests.append(request)
        if self.denies(request):
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(DENIED)))])
            return [DENIED] if request.verb != "HEAD" else []
        self.before(request)
        answer: Iterable[bytes] = self.inner(environment, start)
        return answer

    @contextmanager
    def denying(self, denies: Callable[[Request], bool]) -> Iterator[None]:
        """Refuse some requests in the block."""
        self.denies = denies
        try:
            yield
        finally:
            self.denies = lambda request: False


class Store(NamedTuple):
    """A bucket of a store: `url` is its address."""

    url: str
    server: Server | None = None

    def put(self, name: str, content: bytes | str) -> str:
        """Write an object and return its URL."""
        from firth.core.remote_stores import filesystem_of

        filesystem, path = filesystem_of(f"{self.url}/{name}")
        if self.server is None:
            filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(path, compression=None) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return f"{self.url}/{name}"

    def put_folder(self, folder: Path, name: str) -> str:
        """Write the files of a folder and return its URL."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return f"{self.url}/{name}"

    def names(self) -> list[str]:
        """The names of all objects."""
        from firth.core.remote import RemotePath

        root = RemotePath(self.url)
        return sorted(str(path)[len(self.url) + 1 :] for path in root.rglob("*") if path.is_file())

    def get(self, name: str) -> bytes:
        from firth.core.remote import RemotePath

        return RemotePath(f"{self.url}/{name}").read_bytes()


def use_server(patch: pytest.MonkeyPatch, server: Server) -> None:
    """Set what a user sets to use a server."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"):
        patch.delenv(name, raising=False)
    patch.setenv("AWS_ENDPOINT_URL", server.address)
    patch.setenv("AWS_ACCESS_KEY_ID", "testing")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    patch.setenv("AWS_REGION", "us-east-1")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def new_bucket(server: Server) -> Store:
    """Create a bucket, as its owner does."""
    from pyarrow.fs import S3FileSystem

    name = f"bucket-{uuid.uuid4().hex[:12]}"
    address = server.address.removeprefix("http://")
    owner = S3FileSystem(
        endpoint_override=address, scheme="http", access_key="a", secret_key="b", allow_bucket_creation=True
    )
    owner.create_dir(name)
    return Store(f"s3://{name}", server)
