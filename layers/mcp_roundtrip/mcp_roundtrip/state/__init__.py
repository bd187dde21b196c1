"""What lets a client carry a call's state: tokens that only this server can have made, for one request alone.

================================  ========================================================================
`claims`                          what a token is bound to
`compact`                         how a token is spelt
`jws`, `keys`                     how it is signed and checked, and by which keys
`certificates`, `delegation`      signing with a key in memory that the root key has certified
`jwe`, `epochs`                   how it is encrypted, and under which keys
`renewal`                         when keys are asked for
`codec`                           all of these put together for `requestState`
`links`                           signed links for the URLs of URL mode elicitation
================================  ========================================================================
"""
