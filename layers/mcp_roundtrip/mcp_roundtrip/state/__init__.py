"""Signed and encrypted tokens: the requestState of a call, and links for URL mode elicitation.

`claims` is what a token is bound to, `jws` signs it with the root key or with a key that the root key has
certified (`signing_key_certificates`), and `jwe` encrypts it. `codec` does all of this for a requestState,
`url_elicitation_links` signs links.
"""
