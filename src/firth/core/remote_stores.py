"""Object stores: pyarrow's S3 client, fsspec for other schemes, and their errors as a FirthError."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firth.core.errors import FirthError
from firth.core.extras import missing_package

if TYPE_CHECKING:
    from firth.core.remote import RemotePath

# ---- file systems ----


def filesystem_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    scheme, _, path = url.partition("://")
    if scheme.lower() == "s3":
        bucket = path.partition("/")[0]
        if not bucket:
            raise FirthError("wrong_input", "{url} names no bucket. Expected s3://BUCKET/NAME.", url=url)
        return s3_filesystem(*s3_settings(), bucket if s3_endpoint() is None else ""), path
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise missing_package(f"{url} needs", "fsspec") from None
    try:
        store, path = url_to_fs(url)
    except ImportError as error:
        named = re.search(r"(?i)install ([\w.-]+)", str(error))
        extra = scheme.lower().replace("https", "http")
        raise missing_package(f"{url} needs", named[1] if named else f"fsspec[{extra}]") from None
    except ValueError as error:
        raise FirthError(
            "wrong_input",
            "{url} cannot be opened: {reason}. Expected s3:// or a scheme that fsspec knows, such as gs://, az:// or "
            "https://.",
            url=url,
            reason=str(error).rstrip("."),
        ) from None
    return PyFileSystem(FSSpecHandler(store)), path


SETTINGS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


def s3_endpoint() -> str | None:
    """The address of an S3 server other than that of AWS."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def s3_settings() -> tuple[str | None, ...]:
    """The S3 settings of the environment; a change of them needs a new client."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return (s3_endpoint(), region, str(os.getpid()), *map(os.environ.get, SETTINGS))


@functools.lru_cache(maxsize=16)
def s3_filesystem(endpoint: str | None, region: str | None, *others: str | None) -> Any:
    """Return a client of S3. The last argument is a bucket, whose region is asked for if none is set."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    options: dict[str, Any] = {"retry_strategy": AwsStandardS3RetryStrategy(max_attempts=3), "connect_timeout": 10}
    if endpoint:
        scheme, _, address = endpoint.rpartition("://")
        options |= {"endpoint_override": address.rstrip("/"), "scheme": scheme or "https"}
        region = region or "us-east-1"
    bucket = others[-1]
    if region is None and bucket:
        with contextlib.suppress(OSError, ValueError):  # the request itself says what is wrong
            region = resolve_s3_region(bucket)
    return S3FileSystem(region=region, **options)


def without_credentials() -> bool:
    """Whether no credentials for S3 are set in the environment or in the files of the AWS tools."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
    files = [os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), "~/.aws/config"]
    return not any(map(os.environ.get, names)) and not any(Path(file).expanduser().is_file() for file in files)


# ---- errors ----


@contextlib.contextmanager
def explained(path: RemotePath, writing: bool = False) -> Iterator[None]:
    """Raise the errors of a store as a FirthError with the URL."""
    try:
        yield
    except FirthError:
        raise
    except FileNotFoundError:
        raise FirthError("not_found", "There is no file {path}.", path=path.url) from None
    except Exception as error:  # of any package that fsspec uses
        reason = reason_of(error, path)
        if writing:
            raise FirthError(
                "unwritable_file", "Cannot write {path}: {reason}.", path=path.url, reason=reason
            ) from error
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path.url, reason=reason) from error


REASONS: dict[str, Callable[[RemotePath], str]] = {
    "NO_SUCH_BUCKET": lambda path: f"there is no bucket {path.pure.parts[1]}; create it first, or correct the name",
    "ACCESS_DENIED": lambda path: "access denied" + credentials_hint(path),
    "INVALID_ACCESS_KEY_ID": lambda path: "the server does not know this access key; check AWS_ACCESS_KEY_ID",
    "SIGNATURE_DOES_NOT_MATCH": lambda path: "the secret key is wrong; check AWS_SECRET_ACCESS_KEY",
    "NETWORK_CONNECTION": lambda path: (
        f"no connection to {s3_endpoint() or 'Amazon S3'}; check AWS_ENDPOINT_URL and the network"
    ),
}


def credentials_hint(path: RemotePath) -> str:
    """What to do where the server denies access."""
    if path.scheme == "s3" and without_credentials():
        return ", and no credentials are set. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    return "; check the credentials and the permissions on this path"


def reason_of(error: Exception, path: RemotePath) -> str:
    """Return what is wrong and what to do."""
    text = str(error)
    known = re.search(r"AWS Error ([A-Z_]+) during", text)
    if known and known[1] in REASONS:
        return REASONS[known[1]](path)
    if re.search(r"HTTP status 403|AccessDenied|Forbidden", text) or isinstance(error, PermissionError):
        return REASONS["ACCESS_DENIED"](path)
    first = getattr(error, "strerror", None) or text.partition("\n")[0] or type(error).__name__
    return str(first).rstrip(".")
