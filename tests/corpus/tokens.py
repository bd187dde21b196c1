"""Open the tokens of the corpus with its keys: what is in a state stays readable."""

import hmac
import json
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidTag

from corpus.aws_account import MAC_SECRET, private_key
from mcp_roundtrip.state.jws import LocalKey
from support.tokens import claims_of, decrypted, encrypted, header_of, signed, unb64

_KINDS = {"mcp-rs+jwt": "state", "mcp-rs-crt+jwt": "certificate", "mcp-link+jwt": "link"}


def open_token(token: str) -> dict[str, Any] | None:
    """Return the kind, the header and the claims of a token; None for one that is not the corpus's."""
    try:
        if "." not in token:
            return {"kind": "session", **json.loads(unb64(token))}
        return _opened(token)
    except (ValueError, KeyError, InvalidTag):
        return None


def changed_state(state: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """Return a state with claims that `change` has changed, signed and encrypted as by the deployment."""
    secret = _epoch_key(state)
    content = decrypted(state, secret)
    claims = claims_of(content)
    change(claims)
    return encrypted(header_of(state), signed(header_of(content), claims, LocalKey(private_key(1))), secret)


def type_of(text: str) -> str | None:
    """Return the `typ` of the header with which a token begins; None for another text."""
    try:
        return str(header_of(text)["typ"])
    except (ValueError, TypeError, KeyError):
        return None


def _opened(token: str) -> dict[str, Any]:
    header = header_of(token)
    if token.count(".") == 4:
        return {**_opened(decrypted(token, _epoch_key(token))), "encrypted": header}
    return {"kind": _KINDS.get(header["typ"], "token"), "header": header, "claims": claims_of(token)}


def _epoch_key(state: str) -> bytes:
    epoch = header_of(state)["kid"].partition(".")[2]
    return hmac.digest(MAC_SECRET, f"mcp-rs/v2/epoch:{epoch}:corpus".encode(), "sha256")
