"""A history of deployments of one stack, each with `make deploy`: it works, or is refused before the build.

support/aws_account.py describes the account and its differences from AWS. Functions run on the interpreter of
the tests, so builds for other targets are compared with the configuration of the functions, and not run.
"""

import io
import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from support import aws_account
from support.aws_clients import REGION
from support.deploying import BUILT_TEMPLATE, Deployer
from support.layers import (
    LAYER,
    OTHER_ARCHITECTURE,
    OTHER_RUNTIME,
    layer_of_other_target,
    share_layers,
    targets_of,
)
from support.project import ROOT, copy_project, functions
from support.sam_applications import Response, http
from support.sam_build import NATIVE_RUNTIME, require_deployed_runtime, sam_build

OPTIONS = {
    # The emulator's own address is not https, which AuthMode bearer refuses.
    "EndpointUri": "https://tools.example/mcp",
    "LambdaAuthorizerArn": f"arn:aws:lambda:{REGION}:000000000000:function:authorizer",
    "PrincipalContextKey": "user",
}
"""Options of the platform in all deployments. The settings of another mode are ignored."""

REMOVED = {
    "TaskDelivery": "queue",
    "StateSigning": "delegated",
    "StateEncryption": "disabled",
    "AllowedOrigins": "https://app.example",
}
"""Options that only the first deployment has."""

MODES = {
    "none": "AuthMode=none",
    "jwt": "AuthMode=jwt TokenIssuer=https://issuer.example",
    "lambda": "AuthMode=lambda",
    "iam": "AuthMode=iam",
}
STATUS = {"none": 200, "jwt": 401, "lambda": 401, "iam": 403}
"""The response without credentials."""

PARAMETERS = re.compile(r"(^  Platform:\n(?:    .*\n)*?      Parameters:\n)", re.MULTILINE)
"""The lines up to the options of the platform, in template.yaml and in the built template."""

BROKEN_QUEUE = """
  BrokenQueue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 999999
"""


@dataclass
class History:
    """The deployments of one stack."""

    deployer: Deployer

    def type(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.deployer.make("deploy", *arguments, **variables)

    def works(self, mode: str, *arguments: str, **variables: str) -> Response:
        """Deploy, and return the response of the endpoint, which is that of `mode` in every function."""
        done = self.type(*arguments, **variables)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        answer = self.deployer.ask_endpoint()
        assert answer.status == STATUS[mode], answer
        assert self.deployer.settings("WeatherFunction")["MCP_AUTH_MODE"] == mode
        return answer

    def is_refused(self, named: str, *arguments: str) -> None:
        """Deploy, which is refused with names in this order before a build or a call of CloudFormation."""
        built, before = self.built(), self.deployer.stack.description["LastUpdatedTime"]
        done = self.type(*arguments)
        assert done.returncode != 0
        assert re.search(named, done.stderr)
        assert self.built() == built
        assert self.deployer.stack.description["LastUpdatedTime"] == before

    def built(self) -> tuple[int, int]:
        status = (self.deployer.folder / BUILT_TEMPLATE).stat()
        return status.st_ino, status.st_mtime_ns

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        file = self.deployer.folder / path
        file.write_text(change(file.read_text()))

    def versions(self) -> dict[str, int]:
        """Return the version that the alias of each function names."""
        return {name: int(self.deployer.configuration(name)["Version"]) for name in functions()}


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Yield the history after its first two deployments: the first one fails, the second one has REMOVED.

    `sam build` copies layers that all tests share, by the target whose working directory it selects.
    """
    require_deployed_runtime()
    folder = tmp_path_factory.mktemp("history")
    project = folder / "project"
    project.mkdir()
    copy_project(project)
    layers = {
        f"{NATIVE_RUNTIME}-{NATIVE_ARCHITECTURE}": sam_build().layer,
        f"{OTHER_RUNTIME}-{OTHER_ARCHITECTURE}": layer_of_other_target(),
    }
    share_layers(project / LAYER.relative_to(ROOT) / "Makefile", layers)
    with aws_account.running(folder) as cloud:
        begun = History(Deployer(cloud, project))
        native = (f"PYTHON_RUNTIME={NATIVE_RUNTIME}", f"ARCHITECTURE={NATIVE_ARCHITECTURE}")
        begun.edit("template.yaml", lambda text: with_options(text, OPTIONS))
        assert begun.deployer.make("build", *native).returncode == 0
        begun.deployer.keep_artefact()
        begun.edit(BUILT_TEMPLATE, with_a_broken_queue)
        assert begun.type("BUILD=0", "PARAMETERS=AuthMode=none", *native).returncode != 0
        assert begun.deployer.stack.description["StackStatus"] == "ROLLBACK_COMPLETE"
        begun.deployer.restore_artefact()
        begun.edit(BUILT_TEMPLATE, lambda text: with_options(text, REMOVED))
        begun.works("lambda", "BUILD=0", f"PARAMETERS={MODES['lambda']}")
        yield begun


def with_a_broken_queue(template: str) -> str:
    return template.replace("\nOutputs:\n", f"{BROKEN_QUEUE}Outputs:\n")


def with_options(template: str, options: Mapping[str, str]) -> str:
    lines = "".join(f"        {name}: {value}\n" for name, value in options.items())
    changed, found = PARAMETERS.subn(rf"\1{lines}", template)
    assert found == 1
    return changed


# Deployments also change the mode, each to another one. Stored settings of other modes stay, and are ignored.
def test_a_failed_deployment_changes_nothing_and_a_removed_option_returns_to_its_default(history):
    before = history.deployer.settings("ProvisionFunction")
    assert before["MCP_STATE_SIGNING"] == "delegated"
    assert before["MCP_TASK_DELIVERY"] == "queue"
    assert "MCP_STATE_ENCRYPTION_KEY_ARN" not in before
    history.deployer.restore_artefact()
    history.edit(BUILT_TEMPLATE, with_a_broken_queue)
    change = ("BUILD=0", f"PARAMETERS={MODES['jwt']}")
    assert history.type(*change).returncode != 0
    assert history.deployer.stack.description["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert history.deployer.settings("ProvisionFunction") == before
    history.deployer.restore_artefact()
    history.works("jwt", *change)
    after = history.deployer.settings("ProvisionFunction")
    assert {name for name in before | after if after.get(name) != before.get(name)} == {
        "SETTINGS_VERSION",
        "MCP_AUTH_MODE",
        *("MCP_PRINCIPAL_CONTEXT_KEY", "MCP_SCOPE_CONTEXT_KEY", "MCP_TOKEN_ISSUER"),  # of the modes
        "MCP_TASK_WORKER",  # a queue in place of the version of the worker
        *("MCP_STATE_SIGNING", "MCP_TASK_DELIVERY", "MCP_ALLOWED_ORIGINS"),
        *("MCP_STATE_ENCRYPTION", "MCP_STATE_ENCRYPTION_KEY_ARN", "MCP_TRUSTED_STATE_ENCRYPTION_KEY_ARNS"),
    }


def test_what_cannot_work_is_refused_before_the_build(history):
    history.is_refused("AuthMode bearer.*jwt.*TokenIssuer", "PARAMETERS=AuthMode=bearer TokenIssuer")
    before = (history.deployer.folder / "template.yaml").read_text()
    history.edit("template.yaml", lambda text: with_options(text, {"DomainName": "tools.example"}))
    history.is_refused("DomainName .*CertificateArn")
    history.edit("template.yaml", lambda text: before)


def test_reserved_concurrency_above_the_quota_is_refused_before_the_build(history):
    reserves = "ReservedConcurrentExecutions: "
    history.edit("template.yaml", lambda text: text.replace(f"{reserves}20", f"{reserves}950"))
    history.is_refused("950 .*100 .*unreserved")
    history.edit("template.yaml", lambda text: text.replace(f"{reserves}950", f"{reserves}20"))


def test_a_change_of_the_layer_publishes_every_function(history):
    before = history.versions()
    layer = "RoundtripLayer"
    history.edit(f".aws-sam/build/{layer}/python/mcp_roundtrip/__init__.py", lambda text: f"{text}\nX = 1\n")
    # Instead of the one that was uploaded.
    history.edit(BUILT_TEMPLATE, lambda text: re.sub(r"(ContentUri:)\s+s3://\S+", rf"\1 {layer}", text))
    history.works("jwt", "BUILD=0")  # the same settings, which would publish every function as well
    assert history.versions() == {name: version + 1 for name, version in before.items()}


def test_another_target_is_built_and_deployed_together(history):
    other = (f"PYTHON_RUNTIME={OTHER_RUNTIME}", f"ARCHITECTURE={OTHER_ARCHITECTURE}")
    history.works("iam", *other, f"PARAMETERS={MODES['iam']}")
    assert_layer_fits(history.deployer, OTHER_RUNTIME, OTHER_ARCHITECTURE)


def test_an_artefact_for_another_target_is_refused(history):
    # The architecture is stored: this deployment does not return to the default of the template.
    other = OTHER_ARCHITECTURE
    named = f"built for {OTHER_RUNTIME} .*{other}.*default has {NATIVE_RUNTIME} .*{other}"
    history.is_refused(named, "BUILD=0", f"PYTHON_RUNTIME={NATIVE_RUNTIME}")
    # sam deploy by itself cannot select another target, either: the built template accepts only its own.
    options = (
        "--stack-name",
        history.deployer.stack.name,
        "--resolve-s3",
        "--capabilities",
        "CAPABILITY_IAM",
    )
    selected = ("--parameter-overrides", f"PythonRuntime={NATIVE_RUNTIME}", "AuthMode=iam")
    done = history.deployer.sam("deploy", *options, *selected)
    assert done.returncode != 0
    assert_layer_fits(history.deployer, OTHER_RUNTIME, OTHER_ARCHITECTURE)


def test_the_first_artefact_works_again(history):
    history.deployer.restore_artefact()
    native = (f"PYTHON_RUNTIME={NATIVE_RUNTIME}", f"ARCHITECTURE={NATIVE_ARCHITECTURE}")
    answer = history.works("none", "BUILD=0", f"PARAMETERS={MODES['none']}", *native)
    assert b'"request_approval"' in answer.body
    assert_layer_fits(history.deployer, NATIVE_RUNTIME, NATIVE_ARCHITECTURE)


def assert_layer_fits(deployer: Deployer, runtime: str, architecture: str) -> None:
    """Assert that the layer's compiled packages are for the runtime and architecture of each function."""
    for function in functions():
        configuration = deployer.configuration(function)
        assert configuration["Runtime"] == runtime
        assert configuration["Architectures"] == [architecture]
        [layer] = configuration["Layers"]
        assert compiled_for(deployer, layer["Arn"]) == ({runtime}, {architecture})


@cache
def compiled_for(deployer: Deployer, layer: str) -> tuple[set[str], set[str]]:
    """Return the runtimes and architectures of the extension modules in a version of the layer."""
    found = deployer.cloud.client("lambda").get_layer_version_by_arn(Arn=layer)
    archive = zipfile.ZipFile(io.BytesIO(http(found["Content"]["Location"]).body))
    return targets_of((name, archive.read(name)) for name in archive.namelist() if name.endswith(".so"))
