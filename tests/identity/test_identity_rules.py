from unittest.mock import patch

import httpx2
import pytest

from mcp_roundtrip_tools.client.http import Unreachable
from mcp_roundtrip_tools.deploy import checks
from mcp_roundtrip_tools.deploy.checks import refused_issuer
from support.token_issuer import ONE, RSA

ISSUER = "https://id.example"
JWT = {"AuthMode": "jwt", "TokenIssuer": ISSUER}
BEARER = {"AuthMode": "bearer", "TokenIssuer": ISSUER}
METADATA = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}


def published(metadata, *keys, values=JWT):
    documents = {f"{ISSUER}/.well-known/openid-configuration": metadata, f"{ISSUER}/keys": {"keys": keys}}
    answer = lambda method, url, timeout_s: httpx2.Response(200, json=documents[url])  # noqa: E731
    with patch.object(checks, "request", answer):
        return refused_issuer(values)


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
    with patch.object(checks, "request", side_effect=AssertionError):
        assert refused_issuer({"AuthMode": mode, "TokenIssuer": ISSUER}) is None


@pytest.mark.parametrize("metadata", [{}, [], "x", None])
def test_an_issuer_whose_metadata_cannot_be_read_here_is_not_refused(metadata):
    assert published(metadata) is None


def test_an_issuer_that_does_not_answer_here_is_not_refused():
    with patch.object(checks, "request", side_effect=Unreachable):
        assert refused_issuer(JWT) is None
