"""Signed and encrypted tokens: the requestState of a call, and links for URL mode elicitation.

===================  =====================================================================================
`claims`             the claims of a token: what it is bound to
`jws`                signing and verification, the keys for them, and when keys are requested
`certificates`       signing with a key in memory that the root key has certified
`jwe`                encryption, and the keys for it
`codec`              all of these, for `requestState`
`elicitation_links`  signed links for the URLs of URL mode elicitation
===================  =====================================================================================
"""
