import re
import shutil
import tomllib
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from unittest.mock import create_autospec

import httpx2
import pytest
from botocore.exceptions import ClientError

from mcp_roundtrip_tools.__main__ import main as command
from mcp_roundtrip_tools.deploy import account, checks
from mcp_roundtrip_tools.deploy.account import Account
from mcp_roundtrip_tools.deploy.checks import notes, refusals, reserved_concurrency, stack_of
from mcp_roundtrip_tools.deploy.deployment import Deployment, built_target, pin
from mcp_roundtrip_tools.deploy.environments import Answers, Environment, Refused, configuration
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.reader import Template
from mcp_roundtrip_tools.template.template_files import read_tree
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT, edit
from support.transformed_template import stack

TREE = read_tree(ROOT / "template.yaml")
TEMPLATE = TREE.document


def refused(stack: str = "tools", **given: str) -> list[str]:
    """Return what is refused with these parameters, and options of the platform in template.yaml."""
    parameters = {name: value for name, value in given.items() if name in TREE.declared}
    options = {name: value for name, value in given.items() if name not in TREE.declared}
    overrides = {"AuthMode": "none", **parameters}
    local = Answers({"global": {"stack_name": stack}}, overrides)
    document = deepcopy(dict(TREE.document))
    document["Resources"]["Platform"]["Properties"]["Parameters"] |= options
    tree = replace(TREE, document=document)
    return list(refusals(tree, Environment("default", Answers(), local)))


def test_the_defaults_are_accepted():
    assert refused() == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"AuthMode": "jwt"},
        {"AuthMode": "lambda"},
        {"AuthMode": "bearer"},
        {"DomainName": "tools.example"},
    ],
    ids=str,
)
def test_the_rules_of_the_template_are_applied_as_cloudformation_does(parameters):
    expected = stack(**parameters).broken_rules
    assert expected
    assert [sentence.removesuffix(".") for sentence in refused(**parameters)] == expected


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"PythonRuntime": "python3.11"}, "python3.12, python3.13, python3.14"),
        ({"AuditLog": "yes"}, "empty, principal, hash"),
        ({"AllowedOrigins": "https://a.example,b"}, "must be origins"),
        ({"ThrottlingRate": "0"}, "at least 1"),
        ({"MaxOpenTasks": "101"}, "at most 100"),
        ({"ThrottlingBurst": "many"}, "a number"),
        ({"ServerCards": "com.example/a"}, "ServerCard?"),
    ],
    ids=str,
)
def test_a_value_that_cannot_work_is_refused(parameters, sentence):
    [problem] = refused(**parameters)
    assert all(part in problem for part in (*parameters, sentence))


@pytest.mark.parametrize("stack", ["", "1tools", "my_tools", "tools!", "x" * 129])
def test_an_invalid_name_of_a_stack_is_refused(stack):
    assert len(refused(stack or "_")) == 1


def test_the_concurrency_of_workers_is_known_by_their_names():
    assert reserved_concurrency(stack_of(TREE, {}, "tools")) == {"tools_provision_worker": 20}


def test_a_pinned_template_accepts_one_target_and_is_otherwise_the_same(tmp_path):
    built = tmp_path / "template.yaml"
    built.write_text((ROOT / "template.yaml").read_text())
    target = {"PythonRuntime": "python3.12", "Architecture": "x86_64"}
    assert built_target(built, target) is None
    pin(built, target)
    assert built_target(built, target) == target
    pinned = load(built)
    for name, value in target.items():
        assert pinned["Parameters"][name]["AllowedValues"] == [value]
        assert pinned["Parameters"][name]["Default"] == value
        pinned["Parameters"][name] = TEMPLATE["Parameters"][name]
    assert pinned == TEMPLATE


def test_without_a_build_there_is_nothing_to_deploy(tmp_path):
    with pytest.raises(Refused, match="make build"):
        built_target(tmp_path / "template.yaml", {})


def test_only_functions_with_settings_have_misspelt_ones_and_an_authors_own_variable_is_none():
    variables = {"MCP_SERVER_URL": "https://a.example", "MCP_MAX_ROUND": "3"}
    for settings, count in (({}, 0), ({"MCP_AUTH_MODE": "none"}, 1)):
        document = deepcopy(dict(TREE.document))
        environment = {"Variables": variables | settings}
        document["Globals"]["Function"]["Environment"] = environment
        document["Resources"] = {"F": {"Type": "AWS::Serverless::Function", "Properties": {}}}
        found = notes(stack_of(replace(TREE, document=document, nested={}), {}, "tools"))
        assert len(found) == count


# -- an application of `mcp-roundtrip new` ------------------------------------------------------------------


ISSUER = "TokenIssuer: !Ref TokenIssuer\n"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (ISSUER, f"{ISSUER}        LogRetentionDay: 90\n", " LogRetentionDays?"),
        ("        Application: !Ref AWS::StackName\n", "", "value of Application"),
    ],
    ids=["misspelt", "missing"],
)
def test_what_the_template_passes_to_the_platform_is_checked(project, before, after, sentence):
    edit(project / "template.yaml", before, after)
    given = {"AuthMode": "bearer", "TokenIssuer": "https://issuer.example"}
    with pytest.raises(Refused) as refused:
        Deployment.of(project, "default").with_changes(given).check()
    [problem] = refused.value.problems
    assert sentence in problem
    with pytest.raises(Refused, match=re.escape(sentence)):
        Deployment.of(project, "default").with_changes(given).build(project / "no_sam")


def test_a_platform_of_another_version_is_refused(project):
    edit(project / "platform/template.yaml", "    Version: ", "    Version: 0.0.1 # ")
    for read in (Deployment.of, lambda folder, _: Template(folder / "template.yaml", {}).application()):
        with pytest.raises(TemplateError, match=r"0\.0\.1, .*make upgrade"):
            read(project, "default")


@pytest.fixture
def connected(monkeypatch):
    """Return the AWS account of a deployment: one without a stack, whose quota is enough."""
    connected = create_autospec(Account, instance=True)
    connected.describe.return_value = {}
    connected.refused_concurrency.return_value = []
    monkeypatch.setattr(account, "connect", lambda region, profile: connected)
    return connected


def test_a_deployment_without_a_region_is_refused(project, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    deployment = Deployment.of(project, "default").with_changes({"AuthMode": "none"})
    for act in (deployment.endpoint, lambda: deployment.rollback(Path("no_sam"), ())):
        with pytest.raises(Refused, match="AWS_DEFAULT_REGION"):
            act()


@pytest.mark.usefixtures("connected")
def test_an_issuer_with_another_name_is_refused_before_a_build(project, monkeypatch):
    metadata = {"issuer": "https://id.example/", "jwks_uri": "https://id.example/keys", "keys": []}
    monkeypatch.setattr(checks, "request", lambda *_, timeout_s: httpx2.Response(200, json=metadata))
    deployment = Deployment.of(project, "default").with_changes(
        {"AuthMode": "bearer", "TokenIssuer": "https://id.example"}
    )
    with pytest.raises(Refused, match=r"TokenIssuer .* https://id\.example/,"):
        deployment.deploy(project / "no_sam", artefact_exists=False, asks=False, options=())


def test_an_issuer_that_is_no_url_is_left_to_cloudformation():
    assert checks.refused_issuer({"AuthMode": "bearer", "TokenIssuer": "https://["}) is None


@pytest.mark.usefixtures("connected")
def test_a_value_that_is_not_echoed_is_not_printed_and_a_misspelt_setting_is_named(project, capsys):
    template = project / "template.yaml"
    edit(template, "\nParameters:\n", "\nParameters:\n  Password: {Type: String, NoEcho: true}\n")
    edit(template, "      Variables:\n", "      Variables:\n        MCP_MAX_ROUND: 3\n")
    deployment = Deployment.of(project, "default").with_changes({"AuthMode": "none", "Password": "a secret"})
    does_nothing = Path(shutil.which("true") or "")
    deployment.deploy(does_nothing, artefact_exists=False, asks=False, options=())
    shown = capsys.readouterr().out
    assert "Password = *****" in shown
    assert "a secret" not in shown
    assert len(re.findall("MCP_MAX_ROUND .*MCP_MAX_ROUNDS", shown)) == 1
    assert "make rollback" not in shown, "nothing runs yet"


def test_a_deployer_who_may_not_read_the_template_is_told_that_there_is_no_rollback(
    project, capsys, connected
):
    connected.describe.return_value = {"StackStatus": "UPDATE_COMPLETE"}
    denied = ClientError({"Error": {"Code": "AccessDenied"}}, "GetTemplate")
    connected.clients.return_value.get_template.side_effect = denied
    deployment = Deployment.of(project, "default").with_changes({"AuthMode": "none"})
    deployment.deploy(Path(shutil.which("true") or ""), artefact_exists=False, asks=False, options=())
    assert re.search("make rollback .*not", capsys.readouterr().out)


@pytest.mark.usefixtures("connected")
def test_a_rollback_has_the_parameters_of_the_release(project):
    parameters = {"AuthMode": "none", "Former": "1"}
    account.save_release(project, "default", account.Release("Resources: {}", parameters))
    deployment = Deployment.of(project, "default").with_changes({"AuthMode": "bearer"})
    deployment.rollback(Path(shutil.which("true") or ""), ())
    written = tomllib.loads(configuration(project, deployment.environment).read_text())
    assert written["default"]["deploy"]["parameters"]["parameter_overrides"] == parameters


OF_COMMAND_LINE = {
    "LogRetentionDays": "under Platform.",
    "Platform.LogRetentionDays": "under Platform.",
    "LogRetentionDay": " Platform.LogRetentionDays?",
    "TokenIsuer": " TokenIssuer?",
    "Wxyz": "; it has AuthMode",
}


@pytest.mark.parametrize(("name", "sentence"), OF_COMMAND_LINE.items(), ids=OF_COMMAND_LINE)
def test_an_option_of_the_platform_is_no_parameter_of_a_deployment(project, name, sentence):
    with pytest.raises(Refused) as refused:
        Deployment.of(project, "default").with_changes({name: "90"})
    [problem] = refused.value.problems
    assert all(part in problem for part in (name.rpartition(".")[2], sentence))
    if "." not in name:  # no name of a parameter
        given = f'[default.deploy.parameters]\nparameter_overrides = ["{name}=90"]\n'
        (project / "samconfig.local.toml").write_text(given)
        with pytest.raises(Refused) as refused:
            Deployment.of(project, "default").check()
        [problem] = [each for each in refused.value.problems if sentence in each]
        assert "samconfig.local.toml" in problem


@pytest.mark.parametrize(
    ("parameter", "sam", "problem"),
    [
        ("AuthMode", ["--sam", "no-such-sam"], "error: no-such-sam "),
        ("AuthMode", [], "error: sam "),
        ("AuthMod", ["--sam", "no-such-sam"], "AuthMode?"),
    ],
)
def test_a_misspelt_parameter_is_refused_without_sam(project, parameter, sam, problem, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", "")
    assert command(["deploy", *sam, "--parameters", f"{parameter}=none"]) == 2
    assert problem in capsys.readouterr().err
