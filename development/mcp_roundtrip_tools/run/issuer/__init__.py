"""An OAuth 2.1 authorization server for `make run`: users without passwords, keys of this run.

It is written here because no library fits: the one of the official MCP SDK needs `mcp` with starlette and
uvicorn, Authlib's is for Flask and Django, and oidc-provider needs Node.js. PyJWT signs the tokens.
"""
