"""The costs of verifying tokens: function calls compared with PyJWT, and imports before the first token."""

import json
import time

import jwt
import pytest

from mcp_roundtrip_testing.ports import AUDIENCE
from mcp_roundtrip_testing.task_table import FakeClock
from support.function_calls import count_function_calls
from support.interpreters import run_program
from support.token_issuer import ISSUER, ONE, RSA, authenticator, claims


@pytest.mark.parametrize("key", [ONE, RSA], ids=lambda key: key.algorithm)
def test_verifying_a_token_of_a_cached_key_calls_at_most_half_as_many_functions_again_as_pyjwt(key):
    now = time.time()
    ours, token, public = authenticator(FakeClock(now)), key.sign(claims(now)), key.private.public_key()
    headers = {"authorization": f"Bearer {token}"}

    def verify_with_pyjwt() -> None:
        jwt.decode(token, public, algorithms=[key.algorithm], audience=AUDIENCE, issuer=ISSUER)

    calls = count_function_calls(lambda: ours.authenticate(headers, {}))
    assert calls <= 1.5 * count_function_calls(verify_with_pyjwt)


CHALLENGED = """
import json, os, sys
os.environ |= {
    "MCP_AUTH_MODE": "bearer",
    "MCP_AUDIENCE": "https://mcp.test/mcp",
    "MCP_TOKEN_ISSUER": "https://id.test",
    "POWERTOOLS_SERVICE_NAME": "test",
}
from mcp_roundtrip import Server
server = Server("x")
def ask(method, path):
    context = {"http": {"method": method, "path": path}, "stage": "$default"}
    event = {"version": "2.0", "rawPath": path, "headers": {}, "requestContext": context, "body": "{}"}
    return server.lambda_handler(event, None)["statusCode"]
assert ask("GET", "/.well-known/oauth-protected-resource/mcp") == 200
assert ask("POST", "/mcp") == 401
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def test_a_request_without_a_token_imports_neither_cryptography_nor_http():
    done = run_program(CHALLENGED)
    loaded = set(json.loads(done.stderr))
    assert loaded.isdisjoint({"jwt", "cryptography", "ssl", "http.client", "boto3", "asyncio"})
