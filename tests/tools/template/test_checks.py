"""Parameters that a deployment, or a function at its first request, refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.run import TemplateError
from mcp_roundtrip_tools.template.reader import Template
from support.sam_applications import write_application
from support.served_application import TEMPLATE

LOCAL = {"EndpointUri": "http://127.0.0.1:3000/mcp"}


def application(path: Path = TEMPLATE, **parameters: str) -> Any:
    template = Template(path, parameters)
    keys = template.keys()
    arns = {key.logical_id: f"arn:aws:kms:us-east-1:000000000000:key/{key.logical_id}" for key in keys}
    return template.application(arns, "http://127.0.0.1:3000", "http://127.0.0.1:4000")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"AuthMode": "bearer"}, "AuthMode bearer and jwt need TokenIssuer"),
        ({"AuthMod": "none"}, "no parameter AuthMod; did you mean AuthMode?"),
        ({"Unlike": "none"}, "no parameter Unlike; it has .*AuthMode, "),
        ({"AuthMode": "jwt", "TokenAudience": "x"}, "AuthMode bearer and jwt need TokenIssuer"),
        ({"AuthMode": "lambda", "PrincipalContextKey": "sub"}, "AuthMode lambda needs LambdaAuthorizerArn"),
        ({"AuthMode": "none", "WorkerConcurrency": "1"}, "WorkerConcurrency is 0 or at least 2"),
    ],
)
def test_parameters_against_a_rule_of_the_template_are_refused(
    parameters: dict[str, str], sentence: str
) -> None:
    with pytest.raises(TemplateError, match=sentence):
        application(**parameters)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"AuthMode": "bearer", "TokenIssuer": "ftp://id.example"},
            "MCP_TOKEN_ISSUER: must be .*--parameter TokenIssuer=…",
        ),
        ({"AuthMode": "none", "AllowedOrigins": "*"}, "MCP_ALLOWED_ORIGINS: .*--parameter AllowedOrigins=…"),
        (
            {"AuthMode": "none", "StatePublicKeys": "nonsense"},
            "MCP_STATE_PUBLIC_KEYS: .*--parameter StatePublicKeys=…",
        ),
    ],
)
def test_settings_that_the_layer_refuses_are_refused_with_the_parameter_to_change(
    parameters: dict[str, str], sentence: str
) -> None:
    with pytest.raises(TemplateError, match=sentence):
        application(**parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {"AuthMode": "none"},
        {"AuthMode": "iam"},
        {"AuthMode": "bearer", "TokenIssuer": "http://127.0.0.1:9000", **LOCAL},
        {"AuthMode": "jwt", "TokenIssuer": "https://id.example"},
        {"AuthMode": "jwt", "TokenIssuer": "https://id.example", "TokenAudience": "x"},
        {"AuthMode": "lambda", "LambdaAuthorizerArn": "arn:x"},
        {"AuthMode": "lambda", "LambdaAuthorizerArn": "arn:x", "PrincipalContextKey": "sub"},
        {"AuthMode": "none", "TokenIssuer": "https://id.example", "TokenAlgorithms": "ES256"},
        {"AuthMode": "none", "StateEncryption": "disabled"},
        {"AuthMode": "none", "TaskDelivery": "queue"},
    ],
)
def test_parameters_that_a_deployment_accepts_are_accepted(parameters: dict[str, str]) -> None:
    assert application(**parameters).functions


def test_functions_without_the_layer_have_no_settings(tmp_path: Path) -> None:
    template = """
        Resources:
          F:
            Type: AWS::Serverless::Function
            Properties: {Handler: a.b, CodeUri: f, Environment: {Variables: {AUTH_MODE: nonsense}}}
        """
    assert application(write_application(tmp_path, template, {"f/a.py": ""})).functions


RULES = """
    Parameters: {{Zones: {{Type: CommaDelimitedList, Default: "a,b"}}, Size: {{Type: String, Default: s}}}}
    Rules:
      One:
        RuleCondition: !Equals [!Ref Size, s]
        Assertions: [{{Assert: {assertion}}}]
    Resources: {{}}
    """


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ("!Contains [!Ref Zones, a]", True),
        ("!Contains [!Ref Zones, c]", False),
        ("!EachMemberIn [!Ref Zones, [a, b, c]]", True),
        ("!EachMemberIn [!Ref Zones, [a]]", False),
        ("!EachMemberEquals [!Ref Zones, a]", False),
        ("!Equals [!Ref Unknown, a]", True),
    ],
)
def test_all_functions_of_rules_are_evaluated(tmp_path: Path, assertion: str, holds: bool) -> None:
    path = write_application(tmp_path, RULES.format(assertion=assertion), {})
    if holds:
        Template(path, {})
    else:
        with pytest.raises(TemplateError, match="rule One"):
            Template(path, {})
    Template(path, {"Size": "m"})
