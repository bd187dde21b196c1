"""An OAuth 2.1 authorization server for `make run`: users without passwords, keys of this run.

It is written here because no library fits. `mcp.server.auth` needs starlette, takes two seconds to import,
and does not accept every port of a redirect URI. PyJWT signs the tokens.
"""
