"""Identify the caller of a request, and check the scopes that the caller was granted.

`callers` has the shared types and reads the claims of tokens; `event_authenticator` and `bearer` are the two
ways to identify a caller. The other modules find an issuer's keys, parse scopes and describe the protected
resource (RFC 9728).
"""
