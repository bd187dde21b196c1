"""The GitHub workflows, run step by step on this computer against an emulated AWS account.

Not run: the step `make test`, which would run this test, and GitHub itself: actions of others are stubs.
Roles are those of platform/pipeline/. The emulator enforces who may assume the workflow's role, and
what it may do. It does not enforce the role of CloudFormation: a test compares its policies with what runs.
"""

import json
import os
import re
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mcp_roundtrip_tools.deploy import account
from mcp_roundtrip_tools.deploy.account import Account
from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.deployer_policy.permissions import PERMISSIONS
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.template.yaml_reader import load
from support import forked_programs, sam_build
from support.aws_account import Cloud, Stack, running
from support.aws_clients import REGION
from support.github_repository import GitHub
from support.github_workflow import read_workflow
from support.layers import LAYER, share_layers
from support.project import ROOT, copy_project
from support.sam_applications import http
from support.sam_build import NATIVE_RUNTIME, SAM, require_deployed_runtime

PROVIDER = "arn:aws:iam::000000000000:oidc-provider/token.actions.githubusercontent.com"
ENVIRONMENT, STACK = "prod", "mcp-roundtrip-prod"
"""The environment of these tests. The job of the other one has the same steps."""
CALL = 'get_weather {"location": "Hyderabad"}'


def create_pipeline(cloud: Cloud) -> dict[str, str]:
    """Deploy platform/pipeline/template.yaml; return the variables of the environment."""
    cloudformation, name = cloud.client("cloudformation"), f"pipeline-{ENVIRONMENT}"
    parameters = {
        "GitHubRepository": "example/tools",
        "GitHubEnvironment": ENVIRONMENT,
        "ApplicationStack": STACK,
        "OidcProviderArn": PROVIDER,
    }
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=(ROOT / "platform/pipeline/template.yaml").read_text("utf-8"),
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    outputs = Stack(cloud, name).description["Outputs"]
    values = {each["OutputKey"]: each["OutputValue"] for each in outputs}
    # The policy refuses plain HTTP, which is all that the emulator speaks.
    cloud.client("s3").delete_bucket_policy(Bucket=values["ArtefactBucket"])
    return {
        "AWS_REGION": REGION,
        "DEPLOY_ROLE_ARN": values["DeployRoleArn"],
        "EXECUTION_ROLE_ARN": values["ExecutionRoleArn"],
        "ARTEFACT_BUCKET": values["ArtefactBucket"],
        "SMOKE_CALL": CALL,
    }


def repository(folder: Path, services: Mapping[str, str]) -> Path:
    """Copy the project with its virtual environments, its built layer, and settings of both environments."""
    copy = copy_project(folder)
    target = f"{NATIVE_RUNTIME}-{NATIVE_ARCHITECTURE}"
    share_layers(copy / LAYER.relative_to(ROOT) / "Makefile", {target: sam_build.sam_build().layer})
    installed = copy / ".venv/bin"
    installed.mkdir(parents=True)
    (installed / "python").symlink_to(forked_programs.python_of_deploy())
    for mark in (ROOT / ".venv").glob(".*"):
        (installed.parent / mark.name).touch()
    programs = copy / ".venv-sam/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(SAM.with_name("python"))
    (programs / "sam").symlink_to(forked_programs.sam())
    for each in (installed, programs):
        (each / "activate").touch()  # make creates an environment without it again
    for name in ("Makefile", "pyproject.toml"):
        os.utime(copy / name, (0, 0))  # what is installed is new enough
    values = {
        "AuthMode": "none",
        "PythonRuntime": NATIVE_RUNTIME,
        "Architecture": NATIVE_ARCHITECTURE,
    }
    template = (copy / "template.yaml").read_text("utf-8")
    for name in ("GEOCODING_API_URL", "WEATHER_API_URL"):
        template = template.replace(f"{name}: !Ref AWS::NoValue", f"{name}: {services[name]}")
    (copy / "template.yaml").write_text(template, "utf-8")
    with (copy / "samconfig.toml").open("a") as file:
        for environment in ("default", ENVIRONMENT):  # `make build` is for the first one
            file.write(f"\n[{environment}.deploy.parameters.parameter_overrides]\n")
            file.writelines(f'{name} = "{value}"\n' for name, value in values.items())
    return copy


NOT_FORWARDED = frozenset(
    {"connection", "content-length", "date", "host", "proxy-connection", "transfer-encoding"}
)


@contextmanager
def api_gateway_proxy(cloud: Cloud) -> Iterator[str]:
    """Run a proxy that gives hosts of API Gateway an address, that of the emulator; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            url = urlsplit(self.path)
            api = (url.hostname or "").partition(".")[0]
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            answer = http(
                f"{cloud.url}/_aws/execute-api/{api}/$default{url.path}",
                method=self.command,
                body=body or None,
                headers={k: v for k, v in self.headers.items() if k.lower() not in NOT_FORWARDED},
            )
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name not in NOT_FORWARDED:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_DELETE = forward

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def github(tmp_path_factory):
    assert SAM.exists(), f"{SAM} does not exist: `make test` installs it"
    require_deployed_runtime()
    folder = tmp_path_factory.mktemp("github")
    with (
        running(tmp_path_factory.mktemp("account")) as cloud,
        serve_stand_ins(ROOT / "template.yaml") as services,
        api_gateway_proxy(cloud) as proxy,
    ):
        variables = {ENVIRONMENT: create_pipeline(cloud)}
        (folder / "source").mkdir()
        yield GitHub(cloud, folder, variables, repository(folder / "source", services), proxy)


@pytest.fixture(scope="module")
def released(github):
    jobs = []
    for name, environment in [("build", ""), (ENVIRONMENT, ENVIRONMENT)]:
        jobs.append(job := github.job(name, environment))
        assert job.failure is None, job.failure
    return jobs


def test_the_artefact_is_deployed_and_called(released):
    assert released[1].outcome("Smoke test") == "success"
    assert released[1].outcome("Roll back") == "skipped"


def test_the_same_artefact_is_deployed_to_the_other_environment_before_with_the_same_steps():
    jobs = read_workflow("deploy.yml")["jobs"]
    first = json.loads(json.dumps(jobs["default"]).replace('"default"', f'"{ENVIRONMENT}"'))
    assert first["needs"] == ["test", "build"]
    assert jobs[ENVIRONMENT] == {**first, "name": f"Deploy to {ENVIRONMENT}", "needs": ["default"]}


def deployed_template(cloud: Cloud) -> str:
    cloudformation = cloud.client("cloudformation")
    return str(cloudformation.get_template(StackName=STACK, TemplateStage="Original")["TemplateBody"])


def broken(github: GitHub) -> None:
    """Replace the artefact by one whose front door has an empty catalog, and with another Makefile."""
    folder = github.artefacts["artefact"]
    with tarfile.open(folder / "artefact.tar") as archive:
        archive.extractall(folder, filter="tar")  # which permits links to the shared layer
    catalog = folder / ".aws-sam/build/FrontDoorFunction/catalog.json"
    catalog.write_text(json.dumps({**json.loads(catalog.read_text()), "tools": []}))
    with tarfile.open(folder / "artefact.tar", "w") as archive:
        archive.add(folder / ".aws-sam", ".aws-sam")
        archive.add(catalog, "Makefile")


def test_a_release_that_fails_its_smoke_test_is_rolled_back(github, released):
    good = deployed_template(github.cloud)
    broken(github)
    job = github.job(ENVIRONMENT, ENVIRONMENT)
    assert job.failure is not None
    assert "catalog.json is empty" in job.failure
    assert (job.outcome("Deploy"), job.outcome("Roll back")) == ("success", "success"), job.steps[-1].output
    assert deployed_template(github.cloud) == good
    assert (job.workspace / "Makefile").read_bytes() == (github.source / "Makefile").read_bytes()


def test_the_workflow_for_rollbacks_deploys_what_ran_before_with_its_parameters(github, released):
    found = account.running_release(Account(github.cloud.client), STACK)
    assert found is not None
    earlier = replace(found, parameters={**found.parameters, "TokenIssuer": "https://id.example"})
    saved = account.save_release(github.folder / "earlier", ENVIRONMENT, earlier)
    github.artefacts[f"before-{ENVIRONMENT}"] = saved.parents[1]
    job = github.job("rollback", ENVIRONMENT, "rollback.yml")
    assert job.failure is None, job.failure
    assert account.running_release(Account(github.cloud.client), STACK) == earlier


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        ("1", "pull_request main"),
        ("1", "push release"),
        ("--repo=other/tools", "push main"),
        ("", "push main"),
    ],
)
def test_what_a_pull_request_or_another_branch_saved_is_not_deployed(github, monkeypatch, run, cause):
    monkeypatch.setattr(github, "undone_run", run)
    monkeypatch.setattr(github, "cause", cause)
    job = github.job("rollback", ENVIRONMENT, "rollback.yml")
    failed = [each.name for each in job.steps if each.outcome == "failure"]
    assert failed == ["Require a run of a commit on main"]
    assert job.outcome("Roll back") == "skipped"
    assert "AWS_ACCESS_KEY_ID" not in job.variables


NOT_RECORDED = {
    "cloudformation:DeleteStack": "a first deployment that failed is deleted before the next one",
    "iam:PassRole": "the emulator does not record that a request passes a role",
}
"""Permissions of the workflow's role without a request in these tests, with the reason."""


def test_the_role_of_the_workflow_allows_exactly_what_the_steps_do(github, released):
    role = load(ROOT / "platform/pipeline/template.yaml")["Resources"]["DeployRole"]["Properties"]
    [policy] = role["Policies"]
    listed = [each["Action"] for each in policy["PolicyDocument"]["Statement"]]
    allowed = {action for each in listed for action in ([each] if isinstance(each, str) else each)}
    lines = github.cloud.log.read_text(errors="replace").splitlines()
    found = [re.fullmatch(r"allowed (\S+) (\S+)", line) for line in lines]
    used = {each[1] for each in found if each is not None and each[2] in github.access_keys}
    assert used - {"sts:GetCallerIdentity"} == allowed - NOT_RECORDED.keys()  # needs no permission


NAMED_BY_ARN = ("AWS::IAM::ManagedPolicy", "AWS::Lambda::LayerVersion", "AWS::Lambda::Version")
"""Types whose physical id is an ARN."""

PATTERNS: dict[str, str] = {
    "AWS::CloudWatch::Alarm": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:{id}",
    "AWS::CodeDeploy::Application": "arn:aws:codedeploy:us-east-1:000000000000:application:{id}",
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:us-east-1:000000000000:table/{id}",
    "AWS::IAM::Role": "arn:aws:iam::000000000000:role/{id}",
    "AWS::KMS::Alias": "arn:aws:kms:us-east-1:000000000000:{id}",
    "AWS::Lambda::Function": "arn:aws:lambda:us-east-1:000000000000:function:{id}",
    "AWS::SQS::Queue": "arn:aws:sqs:us-east-1:000000000000:{id}",
}
"""The ARN by the physical id. Other types have random ids, for which the policies have wildcards.

The emulator names log groups differently from CloudFormation.
"""


def test_the_policies_cover_the_names_of_what_is_deployed(github, released):
    values = {
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::AccountId": "000000000000",
        "ApplicationStack": STACK,
        "RolePath": "/",
    }
    tried = set()
    for _, each in Stack(github.cloud, STACK).summaries(STACK):
        kind, physical_id = each["ResourceType"], each["PhysicalResourceId"].rpartition("/queue/")[2]
        if kind not in PATTERNS and kind not in NAMED_BY_ARN:
            continue
        tried.add(kind)
        name = physical_id.rpartition("/")[2] if kind == "AWS::SQS::Queue" else physical_id
        arn = name if kind in NAMED_BY_ARN else PATTERNS[kind].format(id=name)
        patterns = [text for needed in PERMISSIONS[kind] for text in needed.resources]
        for variable, value in values.items():
            patterns = [text.replace(f"${{{variable}}}", value) for text in patterns]
        assert any(text != "*" and fnmatchcase(arn, text) for text in patterns), (arn, patterns)
    assert tried >= {"AWS::IAM::Role", "AWS::Lambda::Function", "AWS::SQS::Queue"}
