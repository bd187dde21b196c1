import json
import time
from typing import Any

import jwt
import pytest
from msgspec import structs

from mcp_roundtrip.auth import issuer_keys
from mcp_roundtrip.auth.callers import AuthMode, Caller, Unauthorized
from mcp_roundtrip.deployment.wiring import make_ports
from mcp_roundtrip.protocol.http import HttpRequest
from mcp_roundtrip.server.admission import identify
from mcp_roundtrip.server.public_documents import ProtectedResource
from mcp_roundtrip_tools.deploy.checks import stack_of
from mcp_roundtrip_tools.template.template_files import read_tree
from support.identity_pages import PROVIDERS, Token, first_settings, page, settings
from support.project import ROOT
from support.recorded_tokens import ACCEPTED, JWKS_PATHS, REFUSED, key_set
from support.token_issuer import RSA

every_provider = pytest.mark.parametrize("provider", PROVIDERS)


def encoded(token):
    """Return the token signed with RS256, or, if its header says so, with a shared secret."""
    is_rsa = token.header["alg"] == "RS256"
    key = RSA.private if is_rsa else "a secret of 32 bytes and some more"
    header = {"typ": None, **token.header}
    return jwt.encode(token.issued_at(time.time()), key, token.header["alg"], headers=header)


class Deployment:
    """The callers of a page's first deployment: as it is, and with `jwt` instead of `bearer`."""

    def __init__(self, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page = page(provider)
        self.settings = first_settings(provider)
        issuer = str(self.settings.token_issuer)
        jwks_uri = issuer.removesuffix("/") + JWKS_PATHS[provider]
        keys = key_set(provider, {**RSA.jwk(), "kid": self.page.token.header["kid"]})
        documents = {
            f"{issuer.removesuffix('/')}/.well-known/openid-configuration": {
                "issuer": issuer,
                "jwks_uri": jwks_uri,
            },
            jwks_uri: keys,
        }
        monkeypatch.setattr(issuer_keys, "fetch", lambda url, _: json.dumps(documents.get(url)).encode())

    def bearer(self, token: Token) -> Caller:
        return self.by_token(encoded(token))

    def by_token(self, token: str) -> Caller:
        request = HttpRequest("POST", {"authorization": f"Bearer {token}"}, None)
        return identify(request, make_ports(self.settings))

    def jwt(self, token: Token) -> Caller:
        """Return the caller from the context that API Gateway's authorizer passes on."""
        by_api = structs.replace(self.settings, auth_mode=AuthMode.JWT, token_audience=(), token_type="any")
        claims = {name: flattened(value) for name, value in token.issued_at(time.time()).items()}
        request = HttpRequest("POST", {}, None, {"jwt": {"claims": claims, "scopes": None}})
        return identify(request, make_ports(by_api))


def flattened(value: Any) -> str:
    """Return a claim as an HTTP API passes it to a function: as text, a list as `[a b]`."""
    if isinstance(value, list):
        return f"[{' '.join(map(flattened, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


@every_provider
def test_the_first_token_is_accepted_by_the_function_and_behind_api_gateway(provider, monkeypatch):
    deployment = Deployment(provider, monkeypatch)
    token = deployment.page.token
    caller = deployment.bearer(token)
    assert caller.principal is not None
    assert caller.principal.subject == token.claims["sub"]
    assert caller.principal.client_id in (token.claims.get("client_id"), token.claims.get("azp"))
    assert "orders.read" in caller.scopes
    for scope in caller.scopes:
        assert f"`{scope}`" in deployment.page.text
    assert deployment.jwt(token) == caller


@pytest.mark.parametrize(
    ("provider", "token", "scopes"),
    [
        pytest.param(provider, token, scopes, id=f"{provider}: {what}")
        for provider, tokens in ACCEPTED.items()
        for what, token, scopes in tokens
    ],
)
def test_other_access_tokens_are_accepted_with_their_scopes(provider, token, scopes, monkeypatch):
    deployment = Deployment(provider, monkeypatch)
    assert deployment.bearer(token).scopes == scopes
    assert deployment.jwt(token) == deployment.bearer(token)


@pytest.mark.parametrize(
    ("provider", "token", "reason"),
    [
        pytest.param(provider, token, reason, id=f"{provider}: {what}")
        for provider, tokens in REFUSED.items()
        for what, token, reason in tokens
    ],
)
def test_other_tokens_are_refused(provider, token, reason, monkeypatch):
    with pytest.raises(Unauthorized, match=f"^{reason}$"):
        Deployment(provider, monkeypatch).bearer(token)


@every_provider
def test_the_errors_on_a_page_are_those_that_its_tokens_cause(provider):
    caused = {reason for _, _, reason in REFUSED[provider]}
    assert page(provider).reasons <= caused | {"token_malformed"}
    assert len(page(provider).text.partition("\n## Errors\n")[2].split("\n|")) == 2 + 3 + 1


def test_an_encrypted_token_of_auth0_is_malformed(monkeypatch):
    """Auth0 encrypts the token if the request named no API: five parts instead of three."""
    deployment = Deployment("auth0", monkeypatch)
    with pytest.raises(Unauthorized, match="token_malformed"):
        deployment.by_token("eyJhbGciOiJkaXIifQ..aaaa.bbbb.cccc")


def test_an_id_token_of_cognito_is_refused_behind_api_gateway_too(monkeypatch):
    """Its audience is a client id, and a client id of a machine may be in TokenAudience."""
    deployment = Deployment("cognito", monkeypatch)
    [id_token] = [token for what, token, _ in REFUSED["cognito"] if what == "ID token"]
    with pytest.raises(Unauthorized, match="token_id_token"):
        deployment.jwt(id_token)
    [machine] = [token for what, token, _ in REFUSED["cognito"] if what == "machine"]
    assert deployment.jwt(machine).scopes == {"orders.read"}


@every_provider
def test_every_deployment_of_a_page_passes_the_checks_before_a_build_and_clients_see_its_scopes(provider):
    """API Gateway's address exists after the first deployment; the recommended one must not contain it."""
    found = page(provider)
    for parameters in found.deployments:
        assert settings(parameters, found.endpoint).token_issuer == found.token.claims["iss"]
    assert not any("execute-api" in value for value in found.deployments[0].values())
    prefix = first_settings(provider).scope_prefix
    metadata = ProtectedResource(found.endpoint, "", ["orders.read"], None, prefix)
    requested = {"cognito": f"{found.endpoint}/orders.read", "entra": f"{found.endpoint}/orders.read"}
    assert metadata.document()["scopes_supported"] == [requested.get(provider, "orders.read")]


def authorizer(parameters):
    """Return what API Gateway's authorizer compares with tokens."""
    stack = stack_of(read_tree(ROOT / "platform/template.yaml"), parameters, "tools")
    return dict(stack.resources["JwtAuthorizer"].get("JwtConfiguration"))


def test_api_gateway_compares_each_audience_of_the_page_of_cognito():
    """It compares `client_id` if a token has no `aud`."""
    found = page("cognito")
    compared = authorizer(found.deployments[1])
    [machine] = [token for what, token, _ in REFUSED["cognito"] if what == "machine"]
    assert compared["Issuer"] == found.token.claims["iss"]
    assert found.token.claims["aud"] in compared["Audience"]
    assert "aud" not in machine.claims
    assert len(compared["Audience"]) == 2


@every_provider
def test_api_gateway_accepts_the_first_token_with_the_values_of_bearer(provider):
    found = page(provider)
    bearer, audience = found.deployments[0], found.token.claims["aud"]
    compared = authorizer({**bearer, "AuthMode": "jwt", "EndpointUri": found.endpoint})
    assert compared["Issuer"] == found.token.claims["iss"]
    assert set(compared["Audience"]) & set(audience if isinstance(audience, list) else [audience])
    assert found.token.header["alg"].startswith("RS")
