"""What `make deploy` refuses about the options that template.yaml passes to its nested stacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_roundtrip_tools.deploy.checks import known_values, refusals, stack_of
from mcp_roundtrip_tools.deploy.commands import deploy
from mcp_roundtrip_tools.deploy.deployment import Deployment
from mcp_roundtrip_tools.deploy.environments import Answers, Environment, Refused
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.template_tree import read_tree
from support.sam_applications import write_application

REGION = "eu-west-1"

ROOT = """\
    Parameters:
      AuthMode: {Type: String, AllowedValues: [none, bearer, jwt]}
      TokenIssuer: {Type: String, Default: ""}
    Resources:
      Platform:
        Type: AWS::Serverless::Application
        Properties:
          Location: platform/template.yaml
          Parameters:
            Application: !Ref AWS::StackName
            AuthMode: !Ref AuthMode
            TokenIssuer: !Ref TokenIssuer
      Endpoint:
        Type: AWS::Serverless::Application
        Properties:
          Location: platform/endpoint.yaml
          Parameters:
            Api: !GetAtt Platform.Outputs.Api
      WorkerFunction:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub ${AWS::StackName}_worker
"""
PLATFORM = """\
    Parameters:
      Application: {Type: String}
      AuthMode: {Type: String, AllowedValues: [none, bearer, jwt]}
      TokenIssuer: {Type: String, Default: ""}
      LambdaAuthorizerArn: {Type: String, Default: ""}
      DomainName: {Type: String, Default: ""}
      CertificateArn: {Type: String, Default: ""}
      LogRetentionDays: {Type: Number, Default: 30, AllowedValues: [30, 90]}
      MaxOpenTasks: {Type: Number, Default: 10, MaxValue: 100}
    Rules:
      TokensNeedAnIssuer:
        RuleCondition: !Equals [!Ref AuthMode, bearer]
        Assertions:
          - Assert: !Not [!Equals [!Ref TokenIssuer, ""]]
            AssertDescription: AuthMode bearer needs TokenIssuer
      ADomainNeedsACertificate:
        RuleCondition: !Not [!Equals [!Ref DomainName, ""]]
        Assertions:
          - Assert: !Not [!Equals [!Ref CertificateArn, ""]]
            AssertDescription: DomainName needs CertificateArn
    Resources:
      Table:
        Type: AWS::SQS::Queue
        Properties: {QueueName: !Sub "${Application}_undelivered_tasks"}
"""
ENDPOINT = """\
    Parameters:
      Api: {Type: String, AllowedPattern: '^[a-z0-9]+$'}
    Rules:
      NoOther: {Assertions: [{Assert: !Not [!Equals [!Ref Api, other]], AssertDescription: no}]}
    Resources: {}
"""
SAMCONFIG = '[default.global.parameters]\nstack_name = "tools"\nregion = "eu-west-1"\n'


def application(folder: Path, *options: str) -> Path:
    """Write an application that passes these options to its platform, one a line; return its template."""
    lines = "".join(f"            {option}\n" for option in options)
    passed = ROOT.replace(
        "            TokenIssuer: !Ref TokenIssuer\n", f"            TokenIssuer: !Ref TokenIssuer\n{lines}"
    )
    files = {"template.yaml": PLATFORM, "endpoint.yaml": ENDPOINT}
    nested = {f"platform/{name}": text for name, text in files.items()}
    return write_application(folder, passed, {**nested, "samconfig.toml": SAMCONFIG})


def refused(template: Path, stack: str = "tools", **parameters: str) -> list[str]:
    overrides = {"AuthMode": "none", **parameters}
    local = Answers({"global": {"stack_name": stack}}, overrides)
    return list(refusals(read_tree(template), Environment("default", Answers(), local), REGION))


def test_what_the_platform_accepts_is_not_refused(tmp_path: Path) -> None:
    assert refused(application(tmp_path, "LogRetentionDays: 90", "DomainName: !Ref AWS::NoValue")) == []


OF_OPTIONS = {
    "LogRetentionDay: 90": "platform/template.yaml has no such parameter; did you mean LogRetentionDays?",
    "LogRetentionDays: 31": "Platform.LogRetentionDays must be one of 30, 90, not '31'.",
    "MaxOpenTasks: 101": "Platform.MaxOpenTasks must be at most 100, not '101'.",
    "DomainName: tools.example": "DomainName needs CertificateArn.",
    "LambdaAuthorizerArn: arn:aws:lambda:us-east-1:123456789012:function:a": (
        "LambdaAuthorizerArn names a resource in us-east-1; it must be in eu-west-1, as the stack."
    ),
}


@pytest.mark.parametrize(("option", "sentence"), OF_OPTIONS.items(), ids=OF_OPTIONS)
def test_an_option_that_the_platform_refuses_is_refused_with_its_place(
    option: str, sentence: str, tmp_path: Path
) -> None:
    [problem] = refused(application(tmp_path, option))
    assert problem.endswith(sentence)


def test_a_misspelt_option_is_refused_before_a_build(tmp_path: Path) -> None:
    application(tmp_path, "LogRetentionDay: 90")
    with pytest.raises(Refused, match=r"did you mean LogRetentionDays\?"):
        Deployment.of(tmp_path, "default").build(tmp_path / "no_sam")


def test_a_contradiction_is_resolved_with_the_parameters_of_the_root(tmp_path: Path) -> None:
    template = application(tmp_path)
    assert refused(template, AuthMode="bearer", TokenIssuer="https://issuer.example") == []
    assert refused(template, AuthMode="bearer") == ["AuthMode bearer needs TokenIssuer."]


def test_an_option_that_the_platform_needs_is_named(tmp_path: Path) -> None:
    template = application(tmp_path)
    template.write_text(template.read_text().replace("        Application: !Ref AWS::StackName\n", ""))
    [problem] = refused(template)
    assert "needs a value of Application" in problem


def test_the_issuer_is_checked_where_it_is_written(tmp_path: Path) -> None:
    template = application(tmp_path)
    written = "TokenIssuer: https://example.auth0.com"
    template.write_text(template.read_text().replace("TokenIssuer: !Ref TokenIssuer", written))
    [problem] = refused(template, AuthMode="bearer")
    assert "https://example.auth0.com/, with the slash" in problem


def test_names_in_nested_stacks_may_be_too_long(tmp_path: Path) -> None:
    template = application(tmp_path)
    fits = 64 - len("_worker")
    assert refused(template, "x" * fits) == []
    template.write_text(template.read_text().replace("_worker", "w"))
    [problem] = refused(template, "x" * 64)
    assert "2 characters too long" in problem
    assert "_undelivered_tasks would have 82 characters" in problem


def test_values_that_only_a_deployment_has_are_not_known(tmp_path: Path) -> None:
    known = known_values(stack_of(read_tree(application(tmp_path)), {"AuthMode": "none"}, "tools"))
    assert known["LogRetentionDays"] == "30"
    assert "Api" not in known


WRITE_THE_LINE = (
    "LogRetentionDays is no parameter of template.yaml: write its line under "
    "Platform.Properties.Parameters in template.yaml."
)
OF_COMMAND_LINE = {
    "LogRetentionDays=90": WRITE_THE_LINE,
    "Platform.LogRetentionDays=90": WRITE_THE_LINE,
    "LogRetentionDay=90": (
        "template.yaml has no parameter LogRetentionDay; did you mean Platform.LogRetentionDays?"
    ),
    "TokenIsuer=x": "template.yaml has no parameter TokenIsuer; did you mean TokenIssuer?",
    "Wxyz=1": "template.yaml has no parameter Wxyz; it has AuthMode, TokenIssuer",
}


@pytest.mark.parametrize(("given", "sentence"), OF_COMMAND_LINE.items(), ids=OF_COMMAND_LINE)
def test_an_option_of_the_platform_is_no_parameter_of_a_deployment(
    given: str, sentence: str, tmp_path: Path
) -> None:
    application(tmp_path)
    name, _, value = given.partition("=")
    with pytest.raises(Refused) as refused:
        Deployment.of(tmp_path, "default").with_changes({name: value})
    assert refused.value.problems == (sentence,)
    (tmp_path / "samconfig.local.toml").write_text(
        f'[default.deploy.parameters]\nparameter_overrides = ["{given}"]\n'
    )
    if "." not in name:  # no name of a parameter
        [*_, problem] = [each for each in refusals_of_files(tmp_path) if each.startswith(sentence)]
        assert "samconfig.local.toml sets it: change or delete that line." in problem


@pytest.mark.parametrize(
    ("parameter", "problem"), [("AuthMode", "is not installed"), ("AuthMod", "AuthMode?")]
)
def test_a_misspelt_parameter_is_refused_without_sam(
    parameter: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    application(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert deploy(["--sam", "no-such-sam", "--parameters", f"{parameter}=none"]) == 2
    assert problem in capsys.readouterr().err


def refusals_of_files(folder: Path) -> list[str]:
    with pytest.raises(Refused) as refused:
        Deployment.of(folder, "default").check()
    return [*refused.value.problems]


def test_a_platform_of_another_version_is_refused(tmp_path: Path) -> None:
    application(tmp_path)
    platform = tmp_path / "platform/template.yaml"
    platform.write_text("Metadata: {McpRoundtrip: {Version: 0.0.1}}\n" + platform.read_text())
    with pytest.raises(TemplateError, match=r"is that of mcp-roundtrip 0\.0\.1, .* run make upgrade"):
        Deployment.of(tmp_path, "default")
