"""The files of skills as resources: their MIME types and contents."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final
from urllib.parse import unquote

DIRECTORY_MIME_TYPE: Final = "inode/directory"
"""The MIME type of a directory resource (SEP-2640)."""

# A table of our own, because that of the standard library depends on the computer's /etc/mime.types.
_MIME_TYPES: Final = {
    "css": "text/css",
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "py": "text/x-python",
    "sh": "application/x-sh",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "txt": "text/plain",
    "webp": "image/webp",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}


def file_resource(uri: str) -> dict[str, Any]:
    """Return the Resource object of a file."""
    kind = _mime_type(uri)
    return {"uri": uri, "name": _name(uri), **({} if kind is None else {"mimeType": kind})}


def subdirectory(uri: str) -> dict[str, Any]:
    """Return the Resource object of a directory."""
    return {"uri": uri, "name": _name(uri), "mimeType": DIRECTORY_MIME_TYPE}


def file_contents(uri: str, content: bytes) -> dict[str, Any]:
    """Return a file as an item of `contents`: as text if it is UTF-8, otherwise as a blob.

    The client gets the same bytes from both forms, and compares them with the digest.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        mime_type = _mime_type(uri) or "application/octet-stream"
        return {"uri": uri, "mimeType": mime_type, "blob": b64encode(content).decode("ascii")}
    return {"uri": uri, "mimeType": _mime_type(uri) or "text/plain", "text": text}


def _mime_type(uri: str) -> str | None:
    return _MIME_TYPES.get(_name(uri).rpartition(".")[2].lower())


def _name(uri: str) -> str:
    return unquote(uri.rpartition("/")[2])
