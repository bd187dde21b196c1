"""What `make call` and the local issuer of `make run` agree on."""

from __future__ import annotations

from typing import Final

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
CALL_CLIENT: Final = "mcp-roundtrip-call"
"""The client id of `make call`, and its name in requests."""

LOCAL_USER: Final = "urn:mcp-roundtrip:grant-type:local-user"
"""The grant type of `make call`: an access token for `user` and `scope`, or for the first user."""
