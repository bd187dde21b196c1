"""Identify the caller of a request, and check the scopes that the caller was granted.

`callers` has the shared types, reads the claims of tokens, and identifies callers by the event; `bearer`
identifies callers by a token.
"""
