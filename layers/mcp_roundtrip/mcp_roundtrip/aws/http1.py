"""HTTP/1.1 as AWS services speak it, without I/O: format a request, and read a response within limits.

`http.client` would import the e-mail parser, which takes longer than a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

MAX_HEAD: Final = 64 * 1024
"""The limit in bytes of a status line with its headers, and of each line of a chunked body."""

MAX_BODY: Final = 32 * 1024 * 1024
"""The limit in bytes of a body. The largest are pages of Query: 1 MB of items in JSON and Base64."""

_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)", re.DOTALL)
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f]")


class InvalidHttp(Exception):
    """A response is no HTTP, or ends too early."""


class ResponseTooLarge(Exception):
    """A response exceeds a limit."""


class ServiceResponse(NamedTuple):
    """A response. The names of `headers` are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_reusable: bool
    """Whether the connection can be used again."""


def format_request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """Return the bytes of a request. Raises ValueError for a control character in a header."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any(map(_FORBIDDEN.search, lines)):
        raise ValueError("a header contains a control character")
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    return head.encode("latin-1") + body


def read_response(receive: Callable[[], bytes]) -> ServiceResponse:
    """Read a response from `receive`, which returns the next bytes, and none at the end of the stream.

    Raises InvalidHttp, ResponseTooLarge, and what `receive` raises.
    """
    stream = _Stream(receive)
    minor, status, headers = _parse_head(stream.read_until(b"\r\n\r\n"))
    while status < 200:  # 100 Continue, 103 Early Hints
        minor, status, headers = _parse_head(stream.read_until(b"\r\n\r\n"))
    has_end = True
    if status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = _read_chunks(stream)
    elif "transfer-encoding" in headers:
        raise InvalidHttp("another transfer coding")
    elif "content-length" in headers:
        body = stream.read(_parse_length(headers["content-length"], 10))
    else:
        has_end, body = False, stream.read_rest()
    closes = "close" in headers.get("connection", "").lower() or minor == b"0"
    return ServiceResponse(status, headers, body, has_end and not closes and stream.is_empty)


def _parse_head(head: bytes) -> tuple[bytes, int, dict[str, str]]:
    status_line, *lines = head.split(b"\r\n")
    status = _STATUS.fullmatch(status_line)
    if status is None:
        raise InvalidHttp("no status line")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise InvalidHttp("no header")
        name, value = header[1].decode().lower(), header[2].strip(b" \t").decode("latin-1")
        if headers.setdefault(name, value) != value:
            if name in ("content-length", "transfer-encoding"):
                raise InvalidHttp("contradictory lengths")
            headers[name] += f", {value}"
    return status[1], int(status[2]), headers


def _parse_length(text: str, base: int) -> int:
    if not re.fullmatch("[0-9]{1,15}" if base == 10 else "[0-9A-Fa-f]{1,12}", text):
        raise InvalidHttp("no length")
    length = int(text, base)
    if length > MAX_BODY:
        raise ResponseTooLarge
    return length


def _read_chunks(stream: _Stream) -> bytes:
    body = bytearray()
    while length := _parse_length(_line(stream).partition(";")[0].strip(), 16):
        if len(body) + length > MAX_BODY:
            raise ResponseTooLarge
        body += stream.read(length)
        if _line(stream):
            raise InvalidHttp("a chunk is longer than its length")
    trailers = 0
    while line := _line(stream):
        trailers += len(line)
        if trailers > MAX_HEAD:
            raise ResponseTooLarge
    return bytes(body)


def _line(stream: _Stream) -> str:
    return stream.read_until(b"\r\n").decode("latin-1")


class _Stream:
    """Reads parts of a stream of bytes."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        return not self._buffer

    def read_until(self, end: bytes) -> bytes:
        """Return the bytes before `end`, and skip `end`."""
        searched = 0
        while (found := self._buffer.find(end, searched)) < 0:
            if len(self._buffer) > MAX_HEAD:
                raise ResponseTooLarge
            searched = max(0, len(self._buffer) - len(end) + 1)
            self._receive_more()
        if found > MAX_HEAD:
            raise ResponseTooLarge
        return self._take(found, skip=len(end))

    def read(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._receive_more()
        return self._take(length)

    def read_rest(self) -> bytes:
        while received := self._receive():
            self._buffer += received
            if len(self._buffer) > MAX_BODY:
                raise ResponseTooLarge
        return self._take(len(self._buffer))

    def _receive_more(self) -> None:
        received = self._receive()
        if not received:
            raise InvalidHttp("the connection was closed")
        self._buffer += received

    def _take(self, length: int, skip: int = 0) -> bytes:
        taken = bytes(self._buffer[:length])
        del self._buffer[: length + skip]
        return taken
