"""Identify the caller of a request, and check the scopes that the caller was granted.

`callers` has the shared types, reads the claims of tokens, and identifies callers by the event; `bearer`
identifies them by a token. The other modules find an issuer's keys, parse scopes and describe the protected
resource (RFC 9728).
"""
