"""What lets a client carry a call's state: tokens that only this server can have made, for one request alone.

`claims` says what a token is bound to, `jws` how it is signed and checked, `keys` by which keys, `codec` puts
the three together for `requestState`, and `links` uses them for the URLs of URL mode elicitation.
"""
