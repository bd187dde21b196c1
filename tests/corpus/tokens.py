"""Open the tokens of the corpus with its keys, without the layer: what is in a state stays readable."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from corpus.aws_account import MAC_SECRET

_KINDS = {"mcp-rs+jwt": "state", "mcp-rs-crt+jwt": "certificate", "mcp-link+jwt": "link"}


def open_token(token: str) -> dict[str, Any] | None:
    """Return the kind, the header and the claims of a token; None for one that is not the corpus's."""
    try:
        if "." not in token:
            return {"kind": "session", **json.loads(_decode(token))}
        return _opened(token)
    except (ValueError, KeyError, InvalidTag):
        return None


def type_of(text: str) -> str | None:
    """Return the `typ` of the header with which a token begins; None for another text."""
    try:
        return str(json.loads(_decode(text.partition(".")[0]))["typ"])
    except (ValueError, TypeError, KeyError):
        return None


def _opened(token: str) -> dict[str, Any]:
    first, *parts = token.split(".")
    header = json.loads(_decode(first))
    if len(parts) == 4:
        key = AESGCM(_epoch_key(header["kid"]))
        content = key.decrypt(_decode(parts[1]), _decode(parts[2]) + _decode(parts[3]), first.encode())
        return {**_opened(content.decode()), "encrypted": header}
    return {
        "kind": _KINDS.get(header["typ"], "token"),
        "header": header,
        "claims": json.loads(_decode(parts[0])),
    }


def _epoch_key(kid: str, issuer: str = "corpus") -> bytes:
    return hmac.digest(MAC_SECRET, f"mcp-rs/v2/epoch:{kid.partition('.')[2]}:{issuer}".encode(), "sha256")


def _decode(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
