import json
from http.client import BadStatusLine, IncompleteRead

import pytest

from mcp_roundtrip_tools.deploy.checks import refused_issuer
from support.token_issuer import ONE, RSA

ISSUER = "https://id.example"
JWT = {"AuthMode": "jwt", "TokenIssuer": ISSUER}
BEARER = {"AuthMode": "bearer", "TokenIssuer": ISSUER}
METADATA = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}


def published(metadata, *keys, values=JWT):
    documents = {f"{ISSUER}/.well-known/openid-configuration": metadata, f"{ISSUER}/keys": {"keys": keys}}
    return refused_issuer(values, lambda url: json.dumps(documents[url]).encode())


@pytest.mark.parametrize("values", [JWT, BEARER])
def test_an_issuer_with_another_name_is_refused(values):
    """Such as one without the slash at the end, or of all tenants."""
    assert f"{ISSUER}/," in str(published({**METADATA, "issuer": f"{ISSUER}/"}, RSA.jwk(), values=values))
    assert published(METADATA, RSA.jwk(), values=values) is None


def test_an_issuer_without_an_rsa_key_is_refused_in_the_mode_jwt():
    """API Gateway's documentation: "Currently, only RSA-based algorithms are supported."."""
    assert published(METADATA, ONE.jwk(), RSA.jwk()) is None
    for keys in ([], [ONE.jwk()], [{**RSA.jwk(), "use": "enc"}], ["x"]):
        assert "RSA" in str(published(METADATA, *keys))
        assert published(METADATA, *keys, values=BEARER) is None


@pytest.mark.parametrize("mode", ["none", "lambda", "iam"])
def test_the_issuer_of_another_mode_is_not_asked(mode):
    assert refused_issuer({"AuthMode": mode, "TokenIssuer": ISSUER}, lambda url: b"{") is None


@pytest.mark.parametrize("metadata", [{}, [], "x", None])
def test_an_issuer_whose_metadata_cannot_be_read_here_is_not_refused(metadata):
    assert published(metadata) is None


@pytest.mark.parametrize("error", [TimeoutError(), IncompleteRead(b""), BadStatusLine("x")])
def test_an_issuer_that_does_not_answer_here_is_not_refused(error):
    def unreachable(url: str) -> bytes:
        raise error

    assert refused_issuer(JWT, unreachable) is None
