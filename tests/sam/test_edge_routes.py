"""platform/edge/routes.yaml: routes of the API that lead to the functions themselves."""

import json
from typing import Any

import pytest

from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.template.yaml_reader import load
from support import cloudformation
from support.project import ROOT
from support.transformed_template import AUTH_MODES, routes_of, stack
from support.transformed_template import of_type as transformed_type

CATALOG = ROOT / "functions/front_door/catalog.json"
ROUTES = ROOT / "platform/edge/routes.yaml"


def routes(mode: str) -> dict[str, Any]:
    template = load(ROUTES)
    authorizer = {"AuthorizerId": "a1b2c3"} if mode in ("jwt", "lambda") else {}
    given = {"EndpointStack": "tools", "ApiId": "api1", "AuthMode": mode, **authorizer}
    assert cloudformation.broken_rules(template, cloudformation.parameters_of(template, **given)) == []
    return cloudformation.resources(template, cloudformation.parameters_of(template, **given))


def of_type(kind: str, mode: str = "none") -> list[dict[str, Any]]:
    return [each["Properties"] for each in routes(mode).values() if each["Type"] == kind]


@pytest.mark.parametrize("mode", AUTH_MODES)
def test_a_route_has_the_authorization_of_the_endpoint(mode):
    endpoint = routes_of(mode)["ANY /tools/{tool}"]
    for route in of_type("AWS::ApiGatewayV2::Route", mode):
        assert route["AuthorizationType"] == endpoint["AuthorizationType"]
        assert ("AuthorizerId" in route) == ("AuthorizerId" in endpoint)


def test_a_mode_with_an_authorizer_needs_its_id():
    template = load(ROUTES)
    given = {"EndpointStack": "tools", "ApiId": "api1", "AuthMode": "jwt"}
    [rule] = cloudformation.broken_rules(template, cloudformation.parameters_of(template, **given))
    assert "AuthorizerId" in rule


def test_a_route_leads_to_the_function_that_the_endpoint_names_after_its_folder():
    names = {
        function["FunctionName"].replace("${AWS::StackName}", "tools")
        for function in transformed_type("AWS::Lambda::Function").values()
    }
    folders = edge_routes.owners(json.loads(CATALOG.read_text("utf-8")))
    keys = [route["RouteKey"] for route in of_type("AWS::ApiGatewayV2::Route")]
    assert keys == [f"ANY /tools/{folder}" for folder in folders]
    function = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:"
    targets = [f"{function}tools_{folder}:live" for folder in folders]
    assert {target.split(":")[-2] for target in targets} <= names
    integrations = of_type("AWS::ApiGatewayV2::Integration")
    assert [each["IntegrationUri"] for each in integrations] == targets
    permissions = of_type("AWS::Lambda::Permission")
    assert [each["FunctionName"] for each in permissions] == targets
    assert [each["SourceArn"].partition("api1")[2] for each in permissions] == [
        f"/*/*/tools/{folder}" for folder in folders
    ]


def test_the_endpoint_has_an_output_for_each_parameter_that_it_chooses():
    assert stack().outputs.keys() >= {"ApiHost", "ApiId", "AuthorizerId"}
    assert stack().outputs["AuthorizerId"] == "none"
    assert stack(AuthMode="jwt", **AUTH_MODES["jwt"]).outputs["AuthorizerId"] == "${JwtAuthorizer}"


def test_the_challenge_of_a_function_is_mapped_as_at_the_front_door():
    front_door = transformed_type("AWS::ApiGatewayV2::Integration")["EndpointIntegration"]

    def mapping(integration: dict[str, Any]) -> set[tuple[str, str, str]]:
        return {
            (status, each["Source"], each["Destination"])
            for status, mapped in integration["ResponseParameters"].items()
            for each in mapped["ResponseParameters"]
        }

    for integration in of_type("AWS::ApiGatewayV2::Integration"):
        assert mapping(integration) == mapping(front_door)
