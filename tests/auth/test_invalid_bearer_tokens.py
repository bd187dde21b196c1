"""Every known way to make an invalid bearer token, and a request without one."""

import hmac
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcp_roundtrip.auth.bearer import LEEWAY_S, MAX_TOKEN
from mcp_roundtrip.auth.callers import Unauthorized
from mcp_roundtrip_testing.ports import AUDIENCE
from mcp_roundtrip_testing.task_table import FakeClock
from support.token_issuer import ISSUER, ONE, RSA, TWO, authenticator, claims
from support.tokens import encoded

CLOCK = FakeClock()
NOW = CLOCK.now


def token_with(**changes: Any) -> str:
    return ONE.sign(claims(NOW, **changes))


def refusal(authorization: str | None) -> Unauthorized:
    headers = {} if authorization is None else {"authorization": authorization}
    with pytest.raises(Unauthorized) as refused:
        authenticator(CLOCK).authenticate(headers, {})
    return refused.value


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
    header, _, signature = token_with().split(".")
    return f"{header}.{encoded(payload)}.{signature}"


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
    "no signature": ("malformed", lambda: token_with().rpartition(".")[0] + "."),
    "a truncated signature": ("signature", lambda: token_with()[:-4]),
    "two parts": ("malformed", lambda: "e30.e30"),
    "five parts, as a JWE": ("malformed", lambda: "e30.e30.e30.e30.e30"),
    "not a JWT": ("malformed", lambda: "opaque-token"),
    "padding": ("malformed", lambda: token_with() + "="),
    "another issuer": ("issuer", lambda: token_with(iss="https://evil.test/")),
    "another tenant of the issuer": ("issuer", lambda: token_with(iss="https://id.test/other")),
    "an issuer with an additional slash": ("issuer", lambda: token_with(iss=ISSUER + "/")),
    "the issuer in another case": ("issuer", lambda: token_with(iss=ISSUER.upper())),
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
        "Bearer ".ljust(MAX_TOKEN + 1, "a"),
    ],
)
def test_a_header_without_exactly_one_token_is_malformed(form):
    refused = refusal(form.format(token=token_with()))
    expected = (
        ("no_token", None) if form.startswith("Bearer\x00") else ("authorization_header", "invalid_request")
    )
    assert (refused.reason, refused.error) == expected


def test_a_token_is_read_only_from_the_authorization_header():
    token = token_with()
    headers = {"x-authorization": f"Bearer {token}", "cookie": f"access_token={token}"}
    with pytest.raises(Unauthorized):
        authenticator(CLOCK).authenticate(headers, {"jwt": {"claims": claims(NOW)}})


def test_a_refusal_contains_nothing_of_the_token():
    refused = refusal(f"Bearer {token_with(aud='secret-audience', sub='secret-subject')}")
    assert "secret" not in f"{refused} {refused.args} {refused.__cause__}"
