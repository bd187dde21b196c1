import json
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.template.model import Route
from mcp_roundtrip_tools.template.reader import Template
from mcp_roundtrip_tools.template.yaml_reader import parse
from support import cloudformation
from support.project import edit
from support.sam_applications import http, write_application
from support.served_application import TEMPLATE, serve, with_options
from support.transformed_template import of_type, transformed_file

NOT_FOUND = (404, {"message": "Not Found"})


@pytest.mark.parametrize(
    "parameters",
    [
        {"AuthMode": "none"},
        {
            "AuthMode": "bearer",
            "TokenIssuer": "https://issuer.example",
            "EndpointUri": "https://tools.example/mcp",
        },
        {"AuthMode": "none", "ServerCard": "com.example/weather"},
    ],
    ids=lambda parameters: ",".join(parameters),
)
def test_the_routes_of_the_example_are_those_of_its_deployment(parameters):
    local = Template(TEMPLATE, with_options(parameters)).application()
    deployed = of_type("AWS::ApiGatewayV2::Route", **parameters).values()
    assert sorted(route.key for route in local.routes) == sorted(route["RouteKey"] for route in deployed)
    assert not local.left_out


def test_the_endpoint_answers_other_methods_as_the_deployed_api_does():
    with serve(TEMPLATE, parameters={"AuthMode": "none"}, log=None) as app:
        for method in ("HEAD", "OPTIONS", "PUT", "PATCH"):
            answer = http(app.url(), method=method)
            assert (answer.status, json.loads(answer.body or json.dumps(NOT_FOUND[1]))) == NOT_FOUND
        assert [http(app.url(), method=method).status for method in ("GET", "DELETE")] == [405, 405]
        assert http(app.url("/nowhere"), method="POST", body=b"{}").json() == NOT_FOUND[1]
        assert sum(each.is_new_environment for each in app.recorder.invocations()) == 1


FUNCTION = """
      {name}:
        Type: AWS::Serverless::Function
        Properties:
          Handler: app.handler
          Runtime: python3.13
          CodeUri: f
          AutoPublishAlias: live
          Events: {{{events}}}
    """

URI = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${F.Arn}/invocations"


def read(folder: Path, resources: str, events: str = "") -> Any:
    text = "\n    Resources:" + FUNCTION.format(name="F", events=events) + resources
    path = write_application(folder, text, {"f/app.py": ""})
    return Template(path, {}).application()


EVENTS = """
            A: {Type: HttpApi, Properties: {Path: /a, Method: post}},
            B: {Type: HttpApi, Properties: {Path: "/b/{id}", Method: any, ApiId: !Ref Own}},
            C: {Type: HttpApi},
            D: {Type: HttpApi, Properties: {Path: /d, Method: GET, ApiId: !Ref Raw}},
            E: {Type: HttpApi, Properties: {Path: /e, Method: GET, ApiId: !Ref Defined}},
            G: {Type: HttpApi, Properties: {Path: /g, Method: GET, ApiId: !Ref ServerlessHttpApi}}"""
APIS = """
      Own: {Type: AWS::Serverless::HttpApi}
      Raw: {Type: AWS::ApiGatewayV2::Api, Properties: {Name: raw, ProtocolType: HTTP}}
      Defined: {Type: AWS::Serverless::HttpApi, Properties: {DefinitionBody: {openapi: 3.0.1, paths: {}}}}
"""


def test_an_event_is_a_route_if_sam_writes_the_definition_of_its_api(tmp_path):
    found = read(tmp_path, APIS, EVENTS)
    keys = sorted(route.key for route in found.routes)
    stack = parse(transformed_file(tmp_path / "template.yaml"))
    deployed = [
        _key(path, method)
        for each in cloudformation.resources(stack, {}).values()
        if each["Type"] == "AWS::ApiGatewayV2::Api"
        for path, methods in each["Properties"].get("Body", {}).get("paths", {}).items()
        for method in methods
        if method != "parameters"
    ]
    assert keys == sorted(deployed) == ["$default", "ANY /b/{id}", "GET /e", "GET /g", "POST /a"]
    assert not found.left_out
    [note] = found.notes
    assert note.startswith("Defined.DefinitionBody")


def _key(path: str, method: str) -> str:
    verb = "ANY" if method == "x-amazon-apigateway-any-method" else method.upper()
    return path if path == "$default" else f"{verb} {path}"


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("!GetAtt F.Arn", "!Sub 'integrations/${I}'"),
        ("!Ref F.Alias", '!Join ["/", [integrations, !Ref I]]'),
        ("!Sub 'arn:aws:lambda:us-east-1:0:function:${F}:live'", "!Sub 'integrations/${I}'"),
        (f'!Sub "{URI}"', "!Sub 'integrations/${I}'"),
    ],
)
def test_a_route_leads_to_the_function_of_its_integration(uri, target, tmp_path):
    resources = f"""
      R: {{Type: AWS::ApiGatewayV2::Route, Properties: {{ApiId: a, RouteKey: GET /r, Target: {target}}}}}
      D: {{Type: AWS::ApiGatewayV2::Route, Properties: {{ApiId: a, RouteKey: $default, Target: {target}}}}}
      I:
        Type: AWS::ApiGatewayV2::Integration
        Properties: {{IntegrationType: AWS_PROXY, PayloadFormatVersion: "2.0", IntegrationUri: {uri}}}
    """
    assert read(tmp_path, resources).routes == (Route("GET", "/r", "F"), Route("ANY", "$default", "F"))


def test_a_function_url_is_served_if_the_template_has_no_other_address(tmp_path):
    cors = {"AllowOrigins": ["https://app.example"]}
    url = f"FunctionUrlConfig: {{AuthType: NONE, Cors: {json.dumps(cors)}}}"
    text = "\n    Resources:" + FUNCTION.format(name="F", events="").replace(
        "CodeUri: f", f"CodeUri: f\n          {url}"
    )
    path = write_application(tmp_path, text, {"f/app.py": ""})
    found = Template(path, {}).application()
    assert (found.routes, found.cors_configuration) == ((Route("ANY", "$default", "F"),), cors)
    edit(path, "Events: {}", "Events: {E: {Type: HttpApi, Properties: {Path: /f, Method: GET}}}")
    found = Template(path, {}).application()
    assert (found.routes, found.cors_configuration) == ((Route("GET", "/f", "F"),), None)
    assert "F.FunctionUrlConfig" in found.notes[0]
