"""HTTP requests and responses, as the servers and their handlers exchange them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `target` is the request target, percent-encoded; an oversized body is left out."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    too_large: bool = False
    protocol: str = "HTTP/1.1"
    source_ip: str = "127.0.0.1"

    def header(self, name: str) -> str | None:
        """The first value of the header, whatever the case of its name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; Content-Length and Date are the server's to add."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
