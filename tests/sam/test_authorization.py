"""The authorization of routes for every AuthMode, and the settings of functions that follow from it."""

import pytest

from support.transformed_template import (
    AUTH_MODES,
    FRONT_DOOR,
    declared_parameters,
    of_type,
    properties,
    routes_of,
    stack,
    variables,
)

QUESTIONS = "/mcp/questions"
ROUTES = {"POST /mcp", "GET /mcp", "DELETE /mcp", "ANY /tools/{tool}"}
PAGE_ROUTES = {"ANY /approvals/{reference}", f"GET {QUESTIONS}", f"POST {QUESTIONS}"}
METADATA_ROUTES = {f"{verb} /.well-known/{{proxy+}}" for verb in ("GET", "HEAD")}
CARD_ROUTES = {f"{verb} /mcp/server-card" for verb in ("GET", "HEAD", "OPTIONS")}
PUBLIC_ROUTES = PAGE_ROUTES | METADATA_ROUTES | CARD_ROUTES

every_auth_mode = pytest.mark.parametrize("auth_mode", AUTH_MODES)


def test_the_authorization_mode_has_no_default():
    parameter = declared_parameters()["AuthMode"]
    assert "Default" not in parameter
    assert sorted(parameter["AllowedValues"]) == sorted(AUTH_MODES)


AUTHORIZATION = {
    "none": ("NONE", None),
    "bearer": ("NONE", None),
    "jwt": ("JWT", "${JwtAuthorizer}"),
    "lambda": ("CUSTOM", "${LambdaAuthorizer}"),
    "iam": ("AWS_IAM", None),
}


@every_auth_mode
def test_every_route_is_authorized_according_to_the_mode_except_pages_cards_and_metadata(auth_mode):
    """Links of pages have a token. Without a name or an issuer, the function answers 404."""
    found = {
        key: (route["AuthorizationType"], route.get("AuthorizerId"))
        for key, route in routes_of(auth_mode).items()
    }
    expected = dict.fromkeys(ROUTES, AUTHORIZATION[auth_mode])
    assert found == {**expected, **dict.fromkeys(PUBLIC_ROUTES, ("NONE", None))}
    # The settings of the stage apply to each route, and no route has settings of its own.
    stage = properties("ApiStage", AuthMode=auth_mode, **AUTH_MODES[auth_mode])
    assert stage["DefaultRouteSettings"].keys() == {"ThrottlingRateLimit", "ThrottlingBurstLimit"}
    assert "RouteSettings" not in stage
    assert variables(FRONT_DOOR)["MCP_AUDIENCE"].endswith(QUESTIONS.removesuffix("/questions"))


SETTING_OF = {
    "TokenJwksUri": ("MCP_TOKEN_JWKS_URI", "https://issuer.example/keys", {"bearer"}),
    "TokenAlgorithms": ("MCP_TOKEN_ALGORITHMS", "ES256", {"bearer"}),
    "TokenType": ("MCP_TOKEN_TYPE", "at+jwt", {"bearer"}),
    "TokenAudience": ("MCP_TOKEN_AUDIENCE", "client-id", {"bearer"}),
    "ScopePrefix": ("MCP_SCOPE_PREFIX", "api://app/", {"bearer", "jwt", "lambda"}),
    "IamPrincipal": ("MCP_IAM_PRINCIPAL", "session", {"iam"}),
    "PrincipalContextKey": ("MCP_PRINCIPAL_CONTEXT_KEY", "user", {"lambda"}),
    "ScopeContextKey": ("MCP_SCOPE_CONTEXT_KEY", "scopes", {"lambda"}),
}
"""The parameters of some modes: their environment variable, a value and the modes."""


@every_auth_mode
def test_settings_of_another_mode_have_no_effect(auth_mode):
    everything = {name: value for mode in AUTH_MODES.values() for name, value in mode.items()}
    given = {**everything, **{name: value for name, (_, value, _) in SETTING_OF.items()}}
    assert stack(AuthMode=auth_mode, **given).broken_rules == []
    environment = variables(FRONT_DOOR, AuthMode=auth_mode, **given)
    for setting, value, modes in SETTING_OF.values():
        assert environment.get(setting) == (value if auth_mode in modes else None), setting
    if auth_mode in ("none", "iam"):
        assert "MCP_TOKEN_ISSUER" not in environment


@every_auth_mode
def test_a_mode_has_its_authorizer_and_functions_know_the_issuer(auth_mode):
    given = {"AuthMode": auth_mode, **AUTH_MODES[auth_mode]}
    authorizers = {"jwt": {"JwtAuthorizer"}, "lambda": {"LambdaAuthorizer"}}
    assert set(of_type("AWS::ApiGatewayV2::Authorizer", **given)) == authorizers.get(auth_mode, set())
    environment, issuer = variables(FRONT_DOOR, **given), "https://issuer.example"
    assert environment["MCP_AUTH_MODE"] == auth_mode
    issuers = {"bearer": issuer, "jwt": issuer, "lambda": ""}
    assert environment.get("MCP_TOKEN_ISSUER") == issuers.get(auth_mode)
    if auth_mode == "lambda":  # clients are sent to an issuer that is given
        assert variables(FRONT_DOOR, **given, TokenIssuer=issuer)["MCP_TOKEN_ISSUER"] == issuer


@every_auth_mode
def test_the_parameters_of_a_mode_are_required(auth_mode):
    needed = AUTH_MODES[auth_mode]
    assert stack(AuthMode=auth_mode, **needed).broken_rules == []
    for left_out in needed:
        given = {name: value for name, value in needed.items() if name != left_out}
        [broken] = stack(AuthMode=auth_mode, **given).broken_rules
        assert left_out in broken


def test_the_result_of_a_lambda_authorizer_is_cached_per_route():
    authorizer = properties("LambdaAuthorizer", AuthMode="lambda", **AUTH_MODES["lambda"])
    assert authorizer["IdentitySource"] == ["$request.header.Authorization", "$context.routeKey"]
