"""Deployments with which no token of the identity provider could ever be accepted are refused."""

import json

import pytest

from mcp_roundtrip_tools.deploy.identity import refused_identity, refused_issuer
from support.token_issuer import ONE, RSA

TENANT, API = "4f6ac4b6-5a5b-4c0a-9c1b-1d1f0a6b2a11", "b0a3fd5e-1f61-4a65-8d6e-0d5b0f6c9e21"
ENTRA = f"https://login.microsoftonline.com/{TENANT}/v2.0"


def sentences(**values):
    return [*refused_identity(values)]


@pytest.mark.parametrize(
    "values",
    [
        {"AuthMode": "bearer", "TokenIssuer": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEf"},
        {"AuthMode": "jwt", "TokenIssuer": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEf"},
        {"AuthMode": "bearer", "TokenIssuer": ENTRA, "TokenAudience": f"api://mcp,{API}"},
        {"AuthMode": "jwt", "TokenIssuer": ENTRA, "TokenAudience": API},
        {"AuthMode": "bearer", "TokenIssuer": f"https://sts.windows.net/{TENANT}/"},
        {"AuthMode": "bearer", "TokenIssuer": "https://shop.eu.auth0.com/"},
        {"AuthMode": "bearer", "TokenIssuer": "https://keycloak.example/realms/tools"},
        {"AuthMode": "bearer", "TokenIssuer": "https://keycloak.internal/realms/tools"},
        {"AuthMode": "none", "TokenIssuer": "http://localhost:9000"},
        {"AuthMode": "lambda", "TokenIssuer": "https://shop.eu.auth0.com"},
    ],
)
def test_usable_issuers_and_those_of_other_modes_are_not_refused(values):
    assert sentences(**values) == []


@pytest.mark.parametrize(
    ("issuer", "required"),
    [
        ("https://shop.eu.auth0.com", "https://shop.eu.auth0.com/,"),
        ("https://keycloak.example/realms/tools/", "https://keycloak.example/realms/tools,"),
        ("https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A/", "eu-west-1_A,"),
        ("https://shop.auth.eu-west-1.amazoncognito.com", "cognito-idp.<Region>"),
        ("https://id.example/.well-known/openid-configuration", "https://id.example,"),
        (f"https://sts.windows.net/{TENANT}", "<tenant id>/"),
        (f"https://login.microsoftonline.com/{TENANT}", "<tenant id>/v2.0"),
        ("https://login.microsoftonline.com/common/v2.0", "id of one tenant"),
    ],
)
@pytest.mark.parametrize("mode", ["bearer", "jwt"])
def test_an_issuer_that_no_token_has_is_refused(mode, issuer, required):
    found = sentences(AuthMode=mode, TokenAudience=API, TokenIssuer=issuer)
    assert [required in each and each.startswith("TokenIssuer") for each in found] == [True]


@pytest.mark.parametrize("audience", ["", "https://tools.example/mcp", "api://mcp"])
@pytest.mark.parametrize("mode", ["bearer", "jwt"])
def test_entra_id_cannot_write_another_audience_than_a_client_id(mode, audience):
    [found] = sentences(AuthMode=mode, TokenIssuer=ENTRA, TokenAudience=audience)
    assert found.startswith("TokenAudience")


@pytest.mark.parametrize(
    ("mode", "issuer"),
    [
        ("bearer", "http://localhost:9000"),
        *(
            ("jwt", f"https://{host}")
            for host in ("localhost", "10.0.0.7/realms/a", "keycloak.internal/realms/a")
        ),
        ("jwt", "http://id.example"),
    ],
)
def test_a_jwt_authorizer_needs_a_public_issuer_and_a_function_one_on_another_computer(mode, issuer):
    [found] = sentences(AuthMode=mode, TokenIssuer=issuer)
    assert found.startswith("TokenIssuer")
    assert mode == "bearer" or "bearer" in found


ISSUER = "https://id.example"
JWT = {"AuthMode": "jwt", "TokenIssuer": ISSUER}
METADATA = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}


def published(metadata, *keys, values=JWT):
    documents = {f"{ISSUER}/.well-known/openid-configuration": metadata, f"{ISSUER}/keys": {"keys": keys}}
    return refused_issuer(values, lambda url: json.dumps(documents[url]).encode())


def test_an_issuer_without_an_rsa_key_or_with_another_name_is_refused_in_the_mode_jwt():
    """API Gateway's documentation: "Currently, only RSA-based algorithms are supported."."""
    assert published(METADATA, ONE.jwk(), RSA.jwk()) is None
    for keys in ([], [ONE.jwk()], [{**RSA.jwk(), "use": "enc"}], ["x"]):
        assert "RSA" in str(published(METADATA, *keys))
    assert f"{ISSUER}/," in str(published({**METADATA, "issuer": f"{ISSUER}/"}, RSA.jwk()))
    assert published(METADATA, values={"AuthMode": "bearer", "TokenIssuer": ISSUER}) is None


@pytest.mark.parametrize("metadata", [{}, [], "x", None])
def test_an_issuer_whose_metadata_cannot_be_read_here_is_not_refused(metadata):
    def unreachable(url: str) -> bytes:
        raise TimeoutError

    assert published(metadata) is None
    assert refused_issuer(JWT, unreachable) is None
