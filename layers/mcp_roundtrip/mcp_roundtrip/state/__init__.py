"""Signed and encrypted tokens: the requestState of a call, and links for URL mode elicitation.

==============================  ==========================================================================
`claims`                        the claims of a token: what it is bound to
`serialization`                 the compact serialization of JWS and JWE
`jws`, `keys`                   signing and verification, and the keys for them
`certificates`, `delegation`    signing with a key in memory that the root key has certified
`jwe`, `epochs`                 encryption, and the keys for it
`renewal`                       when keys are requested from the key service
`codec`                         all of these, for `requestState`
`links`                         signed links for the URLs of URL mode elicitation
==============================  ==========================================================================
"""
