"""Results that are too large for a response: store them in an S3 bucket, and return a link.

::

    exports = Bucket("example-exports")

    @server.tool
    def export(ctx: Context) -> ResourceLink:
        stored = ctx.step("export", put_export)  # uploaded once; the journal keeps what `put` returns
        return exports.link(stored)              # signed in every round, without a request

    def put_export() -> Stored:
        return exports.put(make_csv(), "orders.csv", "text/csv")

This module needs boto3 (extra `mcp-roundtrip[s3]`; Lambda's runtimes include it). The function's role needs
s3:PutObject and s3:GetObject on the objects: a presigned URL has the permissions of its signer, and expires
with the signer's credentials.
"""

from __future__ import annotations

import io
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import quote

from mcp_roundtrip.content.blocks import ResourceLink
from mcp_roundtrip.errors import UsageError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_BYTES: Final = 5 * 1024**3
"""Limit of an object that is uploaded in one request (Amazon S3 API Reference, PutObject)."""

MAX_TTL_MS: Final = 604_800_000
"""Seven days, the maximum for signature version 4."""

_MIME_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w-]+=[\w.:+-]+)*", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Stored:
    """An object in a bucket, as the result of a step. `size` is in bytes, `name` a file name."""

    key: str
    name: str
    mime_type: str
    size: int


class Bucket:
    """A private bucket for large results. Each object has a random key that begins with `prefix`.

    `client` is an S3 client in the bucket's Region that signs with version 4. The default is created at the
    first use, for the function's Region. Objects stay until a lifecycle rule of the bucket removes them.
    """

    def __init__(
        self,
        name: str,
        *,
        prefix: str = "",
        client: S3Client | None = None,
        clock: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.name = name
        self.prefix = prefix
        self._given_client = client
        self._clock = clock
        self._random_bytes = random_bytes

    def put(self, data: bytes | BinaryIO, name: str, mime_type: str = "application/octet-stream") -> Stored:
        """Upload bytes or a whole binary file. Call it in a step, which can retry errors of S3.

        Raises UsageError for data that cannot be stored, and the exceptions of boto3, with a note that names
        the operation and the permission it needs.
        """
        if not _is_name(name):
            raise UsageError(
                f"{name!r:.300} is not a file name; use 1 to 255 characters without control characters"
            )
        if not isinstance(mime_type, str) or not _MIME_TYPE.fullmatch(mime_type):
            raise UsageError(f"{name}: {mime_type!r:.100} is not a MIME type; use one such as 'text/csv'")
        size = _size_of(data, name)
        if size > MAX_BYTES:
            raise UsageError(
                f"{name} has {size} bytes, and one upload takes {MAX_BYTES}; split it into several objects"
            )
        key = self.prefix + urlsafe_b64encode(self._random_bytes(24)).decode()
        with self._annotate_errors("PutObject"):
            self._client.put_object(
                Bucket=self.name,
                Key=key,
                Body=data,
                ContentType=mime_type,
                # A browser must not display it: the data may be a page with scripts.
                ContentDisposition=f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            )
        return Stored(key, name, mime_type, size)

    def link(
        self,
        stored: Stored,
        *,
        ttl_ms: int = 3_600_000,
        description: str = "",
        annotations: Mapping[str, Any] | None = None,
    ) -> ResourceLink:
        """Return a link to the object that is valid for `ttl_ms` milliseconds, one second to seven days.

        Anyone with the link can download the object. The link also expires with the credentials that sign it;
        those of a role last for hours at most. Its description has the expiry. No request is sent. Raises
        UsageError.
        """
        if type(ttl_ms) is not int or not 1_000 <= ttl_ms <= MAX_TTL_MS:
            raise UsageError(
                f"ttl_ms={ttl_ms!r:.100} is not a lifetime of a link; use 1000 to {MAX_TTL_MS} milliseconds"
            )
        until = datetime.fromtimestamp(self._clock() + ttl_ms // 1000, UTC)
        available = f"Available until {until:%Y-%m-%dT%H:%M:%SZ}."
        return ResourceLink(
            self._presigned(stored.key, ttl_ms // 1000),
            stored.name,
            f"{description} {available}".lstrip(),
            stored.mime_type,
            annotations,
            size=stored.size,
        )

    def _presigned(self, key: str, seconds: int) -> str:
        with self._annotate_errors("GetObject"):
            url = self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self.name, "Key": key}, ExpiresIn=seconds
            )
        if "X-Amz-Algorithm=AWS4-HMAC-SHA256" not in url:
            raise UsageError(
                "the S3 client does not sign with version 4; "
                "make it with mcp_roundtrip.aws.boto3_client.s3_client(), "
                "or with Config(signature_version='s3v4')"
            )
        return url

    @cached_property
    def _client(self) -> S3Client:
        if self._given_client is not None:
            return self._given_client
        from mcp_roundtrip.aws.boto3_client import s3_client  # imports boto3, which costs 130 ms

        return s3_client()

    @contextmanager
    def _annotate_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # the note is for the log; clients do not see it
            error.add_note(
                f"mcp_roundtrip.s3: {operation} in the bucket {self.name!r}, which must be in the client's "
                f"Region. The function's role needs s3:{operation} on {self.name}/{self.prefix}*."
            )
            raise


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 255 and not _CONTROL.search(name)


def _size_of(data: bytes | BinaryIO, name: str) -> int:
    """Return the size in bytes, and leave a file at its beginning."""
    if isinstance(data, (bytes, bytearray)):
        return len(data)
    if isinstance(data, (str, io.TextIOBase)):
        raise UsageError(f"{name} is text; encode it, or open the file in binary mode")
    if not (hasattr(data, "seekable") and data.seekable()):
        raise UsageError(
            f"{name} is {type(data).__name__}, which cannot be read twice; pass bytes or an open binary file"
        )
    size = data.seek(0, io.SEEK_END)
    data.seek(0)
    return size
