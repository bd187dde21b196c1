from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.reader import Template
from support.sam_applications import write_application
from support.served_application import TEMPLATE

LOCAL = {"Platform.EndpointUri": "http://127.0.0.1:3000/mcp"}


def application(path: Path = TEMPLATE, **parameters: str) -> Any:
    return Template(path, parameters).application(api_url="http://127.0.0.1:3000")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"AuthMode": "bearer"}, "need TokenIssuer"),
        ({"AuthMode": "lambda", "Platform.PrincipalContextKey": "sub"}, "needs LambdaAuthorizerArn"),
        ({"AuthMode": "none", "Platform.DomainName": "a.example"}, "DomainName needs CertificateArn"),
        ({"AuthMode": "never"}, "AuthMode .*'never'"),
        ({"AuthMode": "bearer", "TokenIssuer": "ftp://id.example"}, "TokenIssuer must be"),
        ({"AuthMode": "bearer", "TokenIssuer": "http://127.0.0.1.example", **LOCAL}, "TokenIssuer must be"),
        ({"AuthMode": "bearer", "TokenIssuer": "http://127.0.0.1:9000", **LOCAL}, None),
        ({"AuthMode": "bearer", "TokenIssuer": "http://localhost:9000", **LOCAL}, None),
        ({"AuthMode": "jwt", "TokenIssuer": "https://id.example"}, None),
        ({"AuthMode": "lambda", "Platform.LambdaAuthorizerArn": "arn:x"}, None),
        (
            {"AuthMode": "none", "TokenIssuer": "https://id.example", "Platform.TokenAlgorithms": "ES256"},
            None,
        ),
    ],
)
def test_what_a_deployment_refuses_is_refused_and_no_other_value(parameters, sentence):
    with nullcontext() if sentence is None else pytest.raises(TemplateError, match=sentence):
        assert application(**parameters).functions


def test_settings_that_the_layer_refuses_are_refused(tmp_path):
    template = """
        Parameters:
          Mode: {Type: String, Default: bearer}
          Host: {Type: String, Default: a.example}
        Resources:
          F:
            Type: AWS::Serverless::Function
            Properties:
              Handler: app.handler
              CodeUri: f
              Environment:
                Variables: {MCP_AUTH_MODE: !Ref Mode, MCP_TOKEN_ISSUER: !Sub "https://${Host}"}
        """
    path = write_application(tmp_path, template, {"f/app.py": ""})
    assert application(path).functions
    with pytest.raises(TemplateError, match="MCP_AUTH_MODE"):
        application(path, Mode="x")
    with pytest.raises(TemplateError, match="MCP_TOKEN_ISSUER"):
        application(path, Host="a b")


PARAMETER = """
    Parameters: {{P: {declared}}}
    Resources: {{}}
    """


@pytest.mark.parametrize(
    ("declared", "accepted", "refused", "problem"),
    [
        ("{Type: CommaDelimitedList, AllowedValues: [a, b]}", "b, a", "a,c", "P .* a, b,.* 'c'"),
        ("{Type: String, AllowedPattern: '[a-z]+'}", "ab", "ab1", r"P .*\[a-z\]\+.* 'ab1'"),
    ],
)
def test_the_constraints_of_a_parameter_are_those_of_cloudformation(
    declared, accepted, refused, problem, tmp_path
):
    path = write_application(tmp_path, PARAMETER.format(declared=declared), {})
    Template(path, {"P": accepted}).application()
    with pytest.raises(TemplateError, match=problem):
        Template(path, {"P": refused}).application()


def test_a_constraint_that_is_no_number_is_named_with_its_parameter(tmp_path):
    path = write_application(tmp_path, PARAMETER.format(declared="{Type: Number, MinValue: one}"), {})
    with pytest.raises(TemplateError, match=r"parameter P: .*'one'"):
        Template(path, {"P": "1"}).application()


RULE = """
    Parameters: {{Size: {{Type: String, Default: s}}}}
    Rules:
      One: {{RuleCondition: !Equals [{condition}, s], Assertions: [{{Assert: !Equals [{value}, a]}}]}}
    Resources: {{}}
    """


@pytest.mark.parametrize(
    ("condition", "value", "is_broken"),
    [
        ("!Ref Size", "!Ref Size", True),
        ("!Ref Size", "!Ref Unknown", False),
        ("!Ref Unknown", "!Ref Size", False),
        ("m", "!Ref Size", False),
    ],
)
def test_a_rule_applies_if_its_condition_and_its_values_are_known(tmp_path, condition, value, is_broken):
    path = write_application(tmp_path, RULE.format(condition=condition, value=value), {})
    with pytest.raises(TemplateError, match="rule One") if is_broken else nullcontext():
        Template(path, {}).application()


RESOURCE = """
    Globals:
      Function: {{Layers: [!Ref RoundtripLayer], Environment: {{Variables: {{{name}: none}}}}}}
    Resources:
      F:
        Type: {kind}
        Properties: {{Runtime: {runtime}}}
    """
FUNCTION = "AWS::Serverless::Function"


@pytest.mark.parametrize(
    ("runtime", "name", "problem"),
    [
        ("python3.10", "MCP_AUTH_MODE", "F.Runtime: .*python3.12, .*not python3.10"),
        ("python3.11", "MCP_AUTH_MODE", "F.Runtime"),
        ("python3.14", "MCP_AUTH_MODE", None),
        ("python3.10", "OTHER", None),
        ("python3.10", "MCP_SERVER_URL", None),
        ("!ImportValue runtime", "MCP_AUTH_MODE", None),
    ],
)
def test_a_runtime_without_a_layer_is_refused(runtime, name, problem, tmp_path):
    path = write_application(tmp_path, RESOURCE.format(kind=FUNCTION, runtime=runtime, name=name), {})
    with nullcontext() if problem is None else pytest.raises(TemplateError, match=problem):
        Template(path, {}).application()


def test_a_function_without_the_layer_may_have_any_runtime_and_the_settings_of_globals(tmp_path):
    text = RESOURCE.format(kind=FUNCTION, runtime="python3.11", name="MCP_AUTH_MODE")
    text = text.replace(f"Type: {FUNCTION}", f"Type: {FUNCTION}\n        IgnoreGlobals: [Layers]")
    for layers in ("[]", '["arn:aws:lambda:eu-west-1:123456789012:layer:other:1"]'):
        own = text.replace("{Runtime:", f"{{Layers: {layers}, Runtime:")
        Template(write_application(tmp_path, own, {}), {}).application()
