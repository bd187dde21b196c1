"""Bearer tokens: valid ones, and every known way to make an invalid one."""

import hmac
import json
import time
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import import_key
from msgspec import structs

from mcp_roundtrip.auth.bearer import LEEWAY_S, MAX_TOKEN, BearerAuthenticator, bearer_token, canonical_uri
from mcp_roundtrip.auth.callers import AuthMode, Caller, EventAuthenticator, Principal, Unauthorized
from mcp_roundtrip.auth.issuer_keys import SIGNATURE_ALGORITHMS
from mcp_roundtrip_testing.ports import AUDIENCE
from mcp_roundtrip_testing.task_table import FakeClock
from support.function_calls import count_function_calls
from support.interpreters import run_program
from support.token_issuer import ISSUER, ONE, RSA, TWO, Key, authenticator, claims

CLOCK = FakeClock()
NOW = CLOCK.now
ALICE = Principal("jwt", "alice", ISSUER, "app")


def caller(token: str, *keys: Key, **policy: Any) -> Caller:
    return authenticate(authenticator(CLOCK, *keys, **policy), token)


def authenticate(issuer: BearerAuthenticator, token: str) -> Caller:
    return issuer.authenticate({"authorization": f"Bearer {token}"}, {})


def refusal(authorization: str | None) -> Unauthorized:
    headers = {} if authorization is None else {"authorization": authorization}
    with pytest.raises(Unauthorized) as refused:
        authenticator(CLOCK).authenticate(headers, {})
    return refused.value


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
    headers = {"authorization": f"{scheme}{ONE.sign(claims(NOW))} "}
    assert authenticator(CLOCK).authenticate(headers, {}).principal == ALICE


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": "a b"}, {"a", "b"}),
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
    assert caller(ONE.sign(claims(NOW, **changes))).scopes == scopes


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
    assert caller(ONE.sign(claims(NOW, aud=audience))).principal == ALICE


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
    assert caller(ONE.sign(claims(NOW, **{name: NOW + LEEWAY_S}))).principal == ALICE


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
    return urlsafe_b64decode(token.rpartition(".")[2] + "==")


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


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def assembled(header: Any, payload: Any = None, signature: bytes = b"signed") -> str:
    return f"{encoded(header)}.{encoded(claims(NOW) if payload is None else payload)}.{encoded(signature)}"


def signed_with_rsa(header: Any, payload: Any = None) -> str:
    """Return a token signed with the issuer's RSA key, for any header."""
    signing_input = assembled(header, payload).rpartition(".")[0]
    rs256 = jwt.PyJWS().get_algorithm_by_name("RS256")
    return f"{signing_input}.{encoded(rs256.sign(signing_input.encode(), RSA.private))}"


def hs256_with_the_public_key(form: Encoding, **changes: Any) -> str:
    secret = RSA.private.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
    signing_input = assembled({"alg": "HS256", "kid": "rsa", **changes}).rpartition(".")[0]
    return f"{signing_input}.{encoded(hmac.new(secret, signing_input.encode(), sha256).digest())}"


def with_payload(payload: Any) -> str:
    header, _, signature = ONE.sign(claims(NOW)).split(".")
    return f"{header}.{encoded(payload)}.{signature}"


def token_with(**changes: Any) -> str:
    return ONE.sign(claims(NOW, **changes))


RS, NONE = {"alg": "RS256", "kid": "rsa"}, {"alg": "none", "kid": "one"}
UNENCODED = {"b64": False, "crit": ["b64"]}
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


def rsa_token_with(**changes: Any) -> str:
    """Return a token with claims of types that PyJWT does not sign."""
    return signed_with_rsa(RS, claims(NOW, **changes))


ATTACKS: dict[str, tuple[str, Callable[[], str]]] = {
    "alg none": ("algorithm", lambda: assembled(NONE)),
    "alg none without a signature": ("malformed", lambda: assembled(NONE, signature=b"")),
    "alg None": ("algorithm", lambda: assembled({"alg": "None", "kid": "one"})),
    "no alg": ("algorithm", lambda: assembled({"kid": "one"})),
    "alg is a list": ("algorithm", lambda: assembled({"alg": ["RS256"], "kid": "rsa"})),
    "HS256 with the public key, PEM": ("algorithm", lambda: hs256_with_the_public_key(Encoding.PEM)),
    "HS256 with the public key, DER": ("algorithm", lambda: hs256_with_the_public_key(Encoding.DER)),
    "HS256 named RS256": ("signature", lambda: hs256_with_the_public_key(Encoding.PEM, alg="RS256")),
    "an algorithm that is not allowed": ("algorithm", lambda: RSA.sign(claims(NOW), alg="RS384")),
    "the algorithm of another kind of key": ("unknown_key", lambda: assembled({**RS, "kid": "one"})),
    "another key under a known kid": ("signature", lambda: TWO.sign(claims(NOW), kid="one")),
    "an unknown kid": ("unknown_key", lambda: TWO.sign(claims(NOW))),
    "no kid": ("header", lambda: assembled({"alg": "ES256"})),
    "kid is a number": ("header", lambda: assembled({"alg": "ES256", "kid": 1})),
    "kid is a path": ("unknown_key", lambda: assembled({"alg": "ES256", "kid": "../../dev/null"})),
    "its own key in the header": (
        "signature",
        lambda: TWO.sign(claims(NOW), kid="one", jwk=TWO.jwk(), jku="https://evil.test/keys"),
    ),
    "a critical extension": ("header", lambda: signed_with_rsa({**RS, "crit": ["exp"]})),
    "crit that is empty": ("header", lambda: signed_with_rsa({**RS, "crit": []})),
    "a payload that is not encoded": ("header", lambda: signed_with_rsa({**RS, **UNENCODED})),
    "b64 without crit": ("header", lambda: signed_with_rsa({**RS, "b64": True})),
    "a token of another type": ("header", lambda: ONE.sign(claims(NOW), typ="logout+jwt")),
    "a state of this server": ("header", lambda: ONE.sign(claims(NOW), typ="mcp-rs+jwt")),
    "typ is a number": ("header", lambda: signed_with_rsa({**RS, "typ": 1})),
    "a header with a duplicate member": (
        "header",
        lambda: signed_with_rsa(b'{"alg":"none","alg":"RS256","kid":"rsa"}'),
    ),
    "a header that is a list": ("header", lambda: signed_with_rsa(["RS256"])),
    "a header that is no JSON": ("header", lambda: signed_with_rsa(b"alg=RS256")),
    "a header of one character": ("header", lambda: "e.e30.AA"),
    "claims with a duplicate member": (
        "claims",
        lambda: signed_with_rsa(RS, json.dumps(claims(NOW)).replace("{", '{"sub":"bob",', 1).encode()),
    ),
    "claims that are a list": ("claims", lambda: signed_with_rsa(RS, [])),
    "claims that are no JSON": ("claims", lambda: signed_with_rsa(RS, b"\xff")),
    "changed claims": ("signature", lambda: with_payload(claims(NOW, sub="mallory"))),
    "no signature": ("malformed", lambda: ONE.sign(claims(NOW)).rpartition(".")[0] + "."),
    "a truncated signature": ("signature", lambda: ONE.sign(claims(NOW))[:-4]),
    "two parts": ("malformed", lambda: "e30.e30"),
    "five parts, as a JWE": ("malformed", lambda: "e30.e30.e30.e30.e30"),
    "not a JWT": ("malformed", lambda: "opaque-token"),
    "padding": ("malformed", lambda: ONE.sign(claims(NOW)) + "="),
    "another issuer": ("issuer", lambda: token_with(iss="https://evil.test/")),
    "another tenant of the issuer": ("issuer", lambda: token_with(iss="https://id.test/other")),
    "an issuer with an additional slash": ("issuer", lambda: token_with(iss=ISSUER + "/")),
    "several issuers": ("issuer", lambda: rsa_token_with(iss=[ISSUER])),
    "no issuer": ("issuer", lambda: token_with(iss=None)),
    "another audience": ("audience", lambda: token_with(aud="https://other.test/mcp")),
    "an audience with the same prefix": ("audience", lambda: token_with(aud=AUDIENCE + "/admin")),
    "an audience whose path differs in case": ("audience", lambda: token_with(aud="https://mcp.test/MCP")),
    "an audience with an additional slash": ("audience", lambda: token_with(aud=AUDIENCE + "/")),
    "an audience with a port": ("audience", lambda: token_with(aud="https://mcp.test:443/mcp")),
    "an audience without the path": ("audience", lambda: token_with(aud="https://mcp.test")),
    "an empty list of audiences": ("audience", lambda: rsa_token_with(aud=[])),
    "audiences that are not strings": ("audience", lambda: rsa_token_with(aud=[[AUDIENCE], 7])),
    "an audience that is a substring": ("audience", lambda: token_with(aud=AUDIENCE[:-1])),
    "the client as audience, as in an ID token": ("audience", lambda: token_with(aud="app")),
    "no audience": ("audience", lambda: token_with(aud=None)),
    "an audience that is an object": ("audience", lambda: rsa_token_with(aud={AUDIENCE: 1})),
    "expired": ("expired", lambda: token_with(exp=NOW - 1)),
    "expires now": ("expired", lambda: token_with(exp=NOW)),
    "no expiry": ("exp", lambda: token_with(exp=None)),
    "an expiry that is a string": ("exp", lambda: rsa_token_with(exp="9999999999")),
    "an expiry that is true": ("exp", lambda: rsa_token_with(exp=True)),
    "an infinite expiry": ("claims", lambda: signed_with_rsa(RS, b'{"exp":1e999}')),
    "not yet valid": ("not_yet_valid", lambda: token_with(nbf=NOW + LEEWAY_S + 1)),
    "from the future": ("not_yet_valid", lambda: token_with(iat=NOW + LEEWAY_S + 1)),
    "nbf that is a string": ("nbf", lambda: rsa_token_with(nbf="0")),
    "a token bound to a DPoP key": ("bound", lambda: token_with(cnf={"jkt": "0ZcOCORZNYy-DWpqq30"})),
    "a token bound to a client certificate": ("bound", lambda: token_with(cnf={"x5t#S256": "bwcK0esc"})),
    "a confirmation that is empty": ("bound", lambda: token_with(cnf={})),
    "a confirmation that is null": ("bound", lambda: signed_with_rsa(RS, {**claims(NOW), "cnf": None})),
    "a logout token without a type": ("event", lambda: token_with(events={LOGOUT: {}})),
    "an ID token with the hash of an access token": ("id_token", lambda: token_with(at_hash="77QmUPtjPf")),
    "an ID token with the hash of a code": ("id_token", lambda: token_with(c_hash="LDktKdoQak")),
    "an ID token of Amazon Cognito": ("id_token", lambda: token_with(token_use="id")),
    "an ID token of Keycloak": ("id_token", lambda: token_with(typ="ID")),
    "no subject": ("subject", lambda: token_with(sub=None)),
    "an empty subject": ("subject", lambda: token_with(sub="")),
    "a subject that is a number": ("subject", lambda: rsa_token_with(sub=7)),
}


def test_an_invalid_token_is_refused_as_invalid_token():
    refused = {attack: refusal(f"Bearer {made()}") for attack, (_, made) in ATTACKS.items()}
    assert {attack: each.reason for attack, each in refused.items()} == {
        attack: f"token_{reason}" for attack, (reason, _) in ATTACKS.items()
    }
    assert {each.error for each in refused.values()} == {"invalid_token"}


@pytest.mark.parametrize(
    "header", [None, "", "Basic YTpi", "Basic YTpi, Bearer e30.e30.e30", "Bear er", "DPoP x"]
)
def test_a_request_without_a_token_gets_a_challenge_without_an_error(header):
    refused = refusal(header)
    assert (refused.reason, refused.error) == ("no_token", None)


@pytest.mark.parametrize(
    "form",
    [
        "Bearer {token}, Bearer {token}",
        "Bearer {token},{token}",
        "Bearer {token} {token}",
        "Bearer",
        "Bearer  ",
        "Bearer\x00{token}",
        "Bearer {token}\n",
        "Bearer é",
        "Bearer token={token};",
        LONGEST + "a",
    ],
)
def test_a_header_without_exactly_one_token_is_malformed(form):
    refused = refusal(form.format(token=ONE.sign(claims(NOW))))
    expected = (
        ("no_token", None) if form.startswith("Bearer\x00") else ("authorization_header", "invalid_request")
    )
    assert (refused.reason, refused.error) == expected


def test_a_token_is_read_only_from_the_authorization_header():
    token = ONE.sign(claims(NOW))
    headers = {"x-authorization": f"Bearer {token}", "cookie": f"access_token={token}"}
    with pytest.raises(Unauthorized):
        authenticator(CLOCK).authenticate(headers, {"jwt": {"claims": claims(NOW)}})


def test_a_refusal_contains_nothing_of_the_token():
    refused = refusal(f"Bearer {token_with(aud='secret-audience', sub='secret-subject')}")
    assert "secret" not in f"{refused} {refused.args} {refused.__cause__}"


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
