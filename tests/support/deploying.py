"""`make deploy` as a person types it, in this project or an application, to an emulated account."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import forked_programs, interpreters, sam_build
from support.aws_account import Cloud, Stack
from support.sam_applications import Response, rpc

STACK = "mcp-roundtrip"
"""The stack of the environment `default` in samconfig.toml."""

BUILT_TEMPLATE = ".aws-sam/build/template.yaml"
PACKAGED_TEMPLATE = "packaged.yaml"

VENV = Path(".venv")


@dataclass(frozen=True)
class Deployer:
    """A person in `folder`, a copy of the project or an application, whose AWS account is `cloud`."""

    cloud: Cloud
    folder: Path
    stack_name: str = STACK

    @property
    def stack(self) -> Stack:
        return Stack(self.cloud, self.stack_name)

    def make(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run make with these arguments. No terminal is attached, so it asks nothing."""
        if not (self.folder / VENV).exists():
            forked_programs.install(self.folder, forked_programs.python_of_deploy())
        sam = forked_programs.sam()
        # What is installed is used as it is: make would install into the environment of the tests.
        installed = (
            f"--old-file={VENV / '.local'}",
            f"--old-file={VENV / '.installed'}",
            f"--old-file={sam}",
        )
        return self._run("make", *arguments, f"SAM={sam}", *installed, **variables)

    def sam(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(str(forked_programs.sam()), *arguments)

    def _run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = sam_build.environment() | {
            **self.cloud.variables,
            "SAM_CLI_POLL_DELAY": "0.05",
            "PYTHONPATH": str(interpreters.SITE / "fast_yaml"),
        }
        return interpreters.run(*command, cwd=self.folder, env=env | variables, stdin=subprocess.DEVNULL)

    def keep_artefact(self) -> None:
        """Upload the built artefact once: further deployments of it compress no code."""
        done = self.sam("package", "--resolve-s3", "--output-template-file", PACKAGED_TEMPLATE)
        assert done.returncode == 0, done.stderr
        self.restore_artefact()

    def restore_artefact(self) -> None:
        """Return to the artefact that `keep_artefact` uploaded."""
        shutil.copyfile(self.folder / PACKAGED_TEMPLATE, self.folder / BUILT_TEMPLATE)

    def configuration(self, function: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.cloud.client("lambda").get_function_configuration(
            FunctionName=self.stack.resources[function], Qualifier="live"
        )
        return found

    def settings(self, function: str) -> dict[str, str]:
        """Return the variables of a function, with the lines of MCP_SETTINGS."""
        variables = dict(self.configuration(function)["Environment"]["Variables"])
        lines = variables.pop("MCP_SETTINGS").splitlines()
        return {**dict(line.split("=", 1) for line in lines), **variables}

    def ask_endpoint(self) -> Response:
        """Return the response to `tools/list` without credentials."""
        return rpc(self.stack.endpoint("/mcp"), "tools/list")
