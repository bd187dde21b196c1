"""The errors of OAuth 2.0 requests."""

from __future__ import annotations


class OAuthError(Exception):
    """A request is refused. `code` is of RFC 6749 §4.1.2.1 and §5.2, RFC 7591 §3.2.2 or RFC 8707 §2."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
