"""`make deploy` as a person types it, in this project or an application, to an emulated account."""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import forked_programs, interpreters, sam_build
from support.aws_account import CREDENTIALS, REGION, Cloud, Stack
from support.messages import headers, message

STACK = "mcp-roundtrip"
"""The stack of the environment `default` in samconfig.toml."""

BUILT_TEMPLATE = ".aws-sam/build/template.yaml"
PACKAGED_TEMPLATE = "packaged.yaml"

VENV = Path(".venv")

LIST_TOOLS = message("tools/list")


@dataclass(frozen=True)
class Answer:
    """The response to `tools/list` without credentials."""

    status: int
    challenge: str
    body: bytes

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in json.loads(self.body)["result"]["tools"]]


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
        self._install()
        sam = forked_programs.sam()
        # What is installed is used as it is: make would install into the environment of the tests.
        installed = (
            f"--old-file={VENV / '.local'}",
            f"--old-file={VENV / '.installed'}",
            f"--old-file={sam}",
        )
        return self._run("make", *arguments, f"SAM={sam}", *installed, **variables)

    def _install(self) -> None:
        """Give `folder` a virtual environment whose programs are those of the tests."""
        if (self.folder / VENV).exists():
            return
        programs = self.folder / VENV / "bin"
        programs.mkdir(parents=True)
        (programs / "python").symlink_to(forked_programs.python_of_deploy())
        for name, module, python in (
            ("mcp-roundtrip", "mcp_roundtrip_tools", programs / "python"),
            ("pytest", "pytest", sys.executable),
        ):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{python}" -m {module} "$@"\n')
            program.chmod(0o755)
        for mark in (".local", ".installed"):
            (self.folder / VENV / mark).touch()

    def sam(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run sam with these arguments."""
        return self._run(str(forked_programs.sam()), *arguments)

    def _run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = sam_build.environment() | {
            "AWS_ENDPOINT_URL": self.cloud.url,
            "AWS_ACCESS_KEY_ID": CREDENTIALS["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": CREDENTIALS["aws_secret_access_key"],
            "AWS_DEFAULT_REGION": REGION,
            "SAM_CLI_POLL_DELAY": "0.05",
            "PYTHONPATH": str(interpreters.SITE / "fast_yaml"),
        }
        return subprocess.run(
            command,
            cwd=self.folder,
            env=env | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

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

    def ask_endpoint(self) -> Answer:
        """Send `tools/list` without credentials."""
        url = self.stack.endpoint("/mcp")
        request = urllib.request.Request(url, json.dumps(LIST_TOOLS).encode(), headers(LIST_TOOLS))
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return Answer(response.status, "", response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers.get("www-authenticate", ""), error.read())
