"""Bearer tokens that are valid, and signatures that are not."""

import json
import time
import warnings
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import import_key
from msgspec import structs

from mcp_roundtrip.auth.bearer import LEEWAY_S, MAX_TOKEN, BearerAuthenticator, bearer_token, canonical_uri
from mcp_roundtrip.auth.callers import AuthMode, Caller, EventAuthenticator, Principal, Unauthorized
from mcp_roundtrip_testing.ports import AUDIENCE
from mcp_roundtrip_testing.task_table import FakeClock
from support.function_calls import count_function_calls
from support.interpreters import run_program
from support.token_issuer import ISSUER, ONE, RSA, SIGNATURE_ALGORITHMS, Key, authenticator, claims
from support.tokens import encoded, unb64

CLOCK = FakeClock()
NOW = CLOCK.now
ALICE = Principal("jwt", "alice", ISSUER, "app")


def token_with(**changes: Any) -> str:
    return ONE.sign(claims(NOW, **changes))


def caller(token: str, *keys: Key, **policy: Any) -> Caller:
    return authenticate(authenticator(CLOCK, *keys, **policy), token)


def authenticate(issuer: BearerAuthenticator, token: str) -> Caller:
    return issuer.authenticate({"authorization": f"Bearer {token}"}, {})


@pytest.mark.parametrize("algorithm", ["RS512", "PS256", "ES384", "ES512", "EdDSA"])
def test_an_algorithm_is_accepted_only_if_it_is_allowed(algorithm):
    key = Key("other", algorithm)
    token = key.sign(claims(NOW))
    assert caller(token, key, algorithms=frozenset({algorithm})).principal == ALICE
    with pytest.raises(Unauthorized) as refused:
        caller(token, key)
    assert refused.value.reason == "token_algorithm"


def test_the_principal_equals_the_one_of_a_jwt_authorizer_for_the_same_token():
    """A state stays valid when a deployment changes who verifies tokens."""
    named: list[dict[str, Any]] = [{"client_id": None, name: "app"} for name in ("azp", "appid", "cid")]
    for changes in ({}, {"client_id": None}, *named, {"client_id": 7}):
        given = claims(NOW, **changes)
        rendered = {name: str(value) if name != "client_id" else value for name, value in given.items()}
        by_api = EventAuthenticator(AuthMode.JWT).authenticate(
            {}, {"jwt": {"claims": rendered, "scopes": None}}
        )
        assert caller(ONE.sign(given)) == by_api
    assert by_api.principal == Principal("jwt", ALICE.subject, ISSUER)


AT_JWT = ("at+jwt", "AT+JWT", "application/at+jwt")


@pytest.mark.parametrize("typ", [None, "JWT", "jwt", *AT_JWT])
def test_tokens_without_a_type_are_accepted_unless_the_deployment_requires_access_tokens(typ):
    """RFC 9068 §2.1: an ID token has another type."""
    token = ONE.sign(claims(NOW), typ=typ)
    assert caller(token).principal == ALICE
    if typ in AT_JWT:
        assert caller(token, requires_at_jwt=True).principal == ALICE
    else:
        for other in (typ, "at+jwt2", "logout+jwt"):
            with pytest.raises(Unauthorized, match="token_header"):
                caller(ONE.sign(claims(NOW), typ=other), requires_at_jwt=True)


LONGEST = "Bearer " + "a" * (MAX_TOKEN - len("Bearer "))


def test_a_header_may_be_as_long_as_the_limit():
    assert bearer_token(LONGEST) == LONGEST.removeprefix("Bearer ")


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", " Bearer   ", "\tBearer "])
def test_the_scheme_is_case_insensitive_and_may_have_space_around_it(scheme):
    headers = {"authorization": f"{scheme}{token_with()} "}
    assert authenticator(CLOCK).authenticate(headers, {}).principal == ALICE


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": "a B"}, {"a", "B"}),  # case-sensitive (RFC 6749 §3.3)
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": None, "scp": ["a", "b"]}, {"a", "b"}),
        ({"scope": None, "scopes": ["a"]}, {"a"}),
        ({"scope": "a", "scp": ["b"], "scopes": "c"}, {"a"}),
        ({"scope": ""}, set()),
        ({"scope": None}, set()),
        ({"scope": 7}, set()),
        ({"scope": {"a": 1}}, set()),
        ({"scope": ["a", 7]}, {"a"}),
        ({"scope": "[a b]"}, {"[a", "b]"}),
        ({"scope": " a  b\u00a0c d\ne "}, {"a", "b\u00a0c", "d\ne"}),
    ],
)
def test_scopes_are_read_from_all_claims_that_issuers_use(changes, scopes):
    assert caller(token_with(**changes)).scopes == scopes


@pytest.mark.parametrize(
    "audience",
    [
        AUDIENCE,
        [AUDIENCE],
        ["https://other.test", AUDIENCE],
        "HTTPS://MCP.test/mcp",
        ["x", "https://mcp.TEST/mcp"],
    ],
)
def test_the_audience_may_be_one_of_several_with_scheme_and_host_in_any_case(audience):
    assert caller(token_with(aud=audience)).principal == ALICE


def test_the_audience_of_a_host_matches_with_and_without_a_slash():
    assert canonical_uri("https://MCP.test") == canonical_uri("https://mcp.test/") == "https://mcp.test/"
    assert canonical_uri("https://mcp.test/mcp/") != canonical_uri("https://mcp.test/mcp")


# Of an issuer that cannot write the endpoint's URI.
APPLICATION = structs.replace(authenticator(CLOCK), audiences=("api://orders", "8a7f"), requires_client=True)


def test_a_deployment_can_name_the_audiences_of_its_tokens_which_then_name_their_client():
    """An ID token of Entra ID may have the API's client id as its audience; it names no other client."""
    for audience in ("api://orders", ["8a7f"], ["x", "8a7f"]):
        assert authenticate(APPLICATION, token_with(aud=audience)).principal == ALICE
    for other in (AUDIENCE, "api://order", "8A7F", "8a7f ", "api://orders,8a7f", None):
        with pytest.raises(Unauthorized, match="token_audience"):
            authenticate(APPLICATION, token_with(aud=other))
    with pytest.raises(Unauthorized, match="token_id_token"):
        authenticate(APPLICATION, token_with(aud="8a7f", client_id=None))


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_the_clock_of_the_issuer_may_be_ahead_by_the_skew(name):
    assert caller(token_with(**{name: NOW + LEEWAY_S})).principal == ALICE


every_algorithm = pytest.mark.parametrize("algorithm", sorted(SIGNATURE_ALGORITHMS))


@cache
def issuer_of(algorithm: str) -> tuple[BearerAuthenticator, str]:
    """Return an authenticator for one algorithm, and a valid token, which joserfc signed."""
    key = Key("k", algorithm)
    header = {"alg": algorithm, "kid": key.kid}
    private = import_key({**key.jwk(private=True), "use": "sig"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # RFC 9864 has new names for EdDSA
        token = jws.serialize_compact(header, json.dumps(claims(NOW)), private, algorithms=[algorithm])
    return authenticator(CLOCK, key, algorithms=frozenset({algorithm})), token


def assert_refused(issuer: BearerAuthenticator, token: str, signature: bytes) -> None:
    """Check that the token is refused with this signature."""
    with pytest.raises(Unauthorized, match="token_signature"):
        authenticate(issuer, f"{token.rpartition('.')[0]}.{encoded(signature)}")


def signature_of(token: str) -> bytes:
    return unb64(token.rpartition(".")[2])


@every_algorithm
def test_a_signature_of_every_algorithm_is_accepted_and_of_another_length_or_zeros_refused(algorithm):
    """Some verifiers accepted r = s = 0 for every message (CVE-2022-21449)."""
    issuer, token = issuer_of(algorithm)
    assert authenticate(issuer, token).principal == ALICE
    signature = signature_of(token)
    for other in (signature[:-1], signature + b"\0", b"\0" + signature, bytes(len(signature))):
        assert_refused(issuer, token, other)


@every_algorithm
@settings(max_examples=20)
@given(position=st.integers(0), mask=st.integers(1, 255))
def test_a_changed_signature_is_refused(algorithm, position, mask):
    issuer, token = issuer_of(algorithm)
    signature = bytearray(signature_of(token))
    signature[position % len(signature)] ^= mask
    assert_refused(issuer, token, bytes(signature))


def test_a_pss_salt_that_is_not_as_long_as_the_hash_is_refused():
    """RFC 7518 §3.5."""
    issuer, token = issuer_of("PS256")
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 20)
    private = Key("k", "PS256").private
    signature = private.sign(token.rpartition(".")[0].encode(), pss, hashes.SHA256())
    assert_refused(issuer, token, signature)


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
