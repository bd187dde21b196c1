"""A key for the epoch keys of states, in memory."""

from __future__ import annotations

import hmac

from mcp_roundtrip.state.jwe import short_key_id


class LocalMacKey:
    """A `MacKey` whose secret is in memory."""

    def __init__(self, key_id: str, secret: bytes) -> None:
        self.short_key_id = short_key_id(key_id)
        self._secret = secret

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self._secret, message, "sha256")
