"""Signed and encrypted tokens: the requestState of a call, and links for URL mode elicitation.

`claims` is what a token is bound to, `jws` signs it with the root key or with a key that the root key has
certified (`delegated_signing`), and `jwe` encrypts it. `codec` does all of this for a requestState, and signs
links.
"""
