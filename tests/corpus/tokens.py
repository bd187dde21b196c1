"""Open the tokens of the corpus with its keys, without the layer: what is in a state stays readable."""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from corpus.aws_account import MAC_SECRET, private_key

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256 (SEC 2)."""

_KINDS = {"mcp-rs+jwt": "state", "mcp-rs-crt+jwt": "certificate", "mcp-link+jwt": "link"}


def open_token(token: str) -> dict[str, Any] | None:
    """Return the kind, the header and the claims of a token; None for one that is not the corpus's."""
    try:
        if "." not in token:
            return {"kind": "session", **json.loads(_decode(token))}
        return _opened(token)
    except (ValueError, KeyError, InvalidTag):
        return None


def changed_state(state: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """Return a state with claims that `change` has changed, signed and encrypted as by the deployment."""
    header, _, iv, ciphertext, tag = state.split(".")
    key = AESGCM(_epoch_key(json.loads(_decode(header))["kid"]))
    content = key.decrypt(_decode(iv), _decode(ciphertext) + _decode(tag), header.encode()).decode()
    first, payload, _ = content.split(".")
    claims = json.loads(_decode(payload))
    change(claims)
    signed = f"{first}.{_encode(json.dumps(claims, separators=(',', ':')).encode())}"
    r, s = decode_dss_signature(private_key(1).sign(signed.encode(), ECDSA(SHA256())))
    s = min(s, _ORDER - s)  # the form of the two that counts
    content = f"{signed}.{_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
    sealed = key.encrypt(_decode(iv), content.encode(), header.encode())
    return ".".join((header, "", iv, _encode(sealed[:-16]), _encode(sealed[-16:])))


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


def _epoch_key(kid: str) -> bytes:
    return hmac.digest(MAC_SECRET, f"mcp-rs/v2/epoch:{kid.partition('.')[2]}:corpus".encode(), "sha256")


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
