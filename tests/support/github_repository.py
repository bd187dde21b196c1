"""A repository at GitHub that runs jobs of its workflows on this computer, with the actions of others."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support import sam_build
from support.aws_account import Cloud
from support.github_workflow import Job, read_workflow
from support.tokens import encoded


@dataclass
class GitHub:
    """The repository: its artefacts by name, and the variables of its environments."""

    cloud: Cloud
    folder: Path
    variables: Mapping[str, Mapping[str, str]]
    source: Path
    proxy: str
    artefacts: dict[str, Path] = field(default_factory=dict)
    workspaces: int = 0
    access_keys: set[str] = field(default_factory=set)
    """Of the credentials that jobs got."""
    undone_run: str = "1"
    cause: str = "push main"
    """The event and the branch of each run."""

    def job(self, name: str, environment: str = "", workflow: str = "deploy.yml") -> Job:
        """Run a job of a workflow on a fresh runner."""
        self.workspaces += 1
        job = Job(
            self.folder / f"workspace-{self.workspaces}",
            {
                "vars": self.variables.get(environment, {}),
                "secrets": {},
                "inputs": {"environment": environment, "run": self.undone_run},
                "github": {"run_id": "1234567890", "token": "t", "repository": "example/tools"},
            },
            {
                **(variables := sam_build.environment()),
                "PATH": f"{self._command_of_github()}:{variables['PATH']}",
                "AWS_ENDPOINT_URL": self.cloud.url,
                "SAM_CLI_POLL_DELAY": "0.2",
                "HTTP_PROXY": self.proxy,
                "NO_PROXY": "127.0.0.1",
            },
            {
                "actions/checkout": self._check_out,
                "actions/setup-python": lambda job, given: None,
                "actions/upload-artifact": self._upload,
                "actions/download-artifact": self._download,
                "aws-actions/configure-aws-credentials": self._assume_role,
            },
            subject=f"repo:example/tools:environment:{environment}",
        )
        job.run([each for each in read_workflow(workflow)["jobs"][name]["steps"] if each["name"] != "Test"])
        return job

    def _command_of_github(self) -> Path:
        """Return a folder with `gh`, which knows the event and the branch of each run."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        command = folder / "gh"
        command.write_text(
            f'#!/bin/sh\ntest "$GH_REPO $1 $2" = "example/tools run view" && echo "{self.cause}"\n'
        )
        command.chmod(0o755)
        return folder

    def _check_out(self, job: Job, given: Mapping[str, str]) -> None:
        shutil.copytree(self.source, job.workspace, symlinks=True)

    def _upload(self, job: Job, given: Mapping[str, str]) -> None:
        path = job.workspace / given["path"]
        if not path.exists():
            assert given["if-no-files-found"] == "ignore"
            return
        target = self.folder / f"artefact-{given['name']}-{len(self.artefacts)}-{job.workspace.name}"
        target.mkdir()
        if path.is_dir():
            assert given["include-hidden-files"] == "True"  # YAML's true
            shutil.copytree(path, target, dirs_exist_ok=True)
        else:
            shutil.copy2(path, target)
        self.artefacts[given["name"]] = target

    def _download(self, job: Job, given: Mapping[str, str]) -> None:
        shutil.copytree(
            self.artefacts[given["name"]], job.workspace / given.get("path", "."), dirs_exist_ok=True
        )

    def _assume_role(self, job: Job, given: Mapping[str, str]) -> None:
        credentials = self.cloud.client("sts").assume_role_with_web_identity(
            RoleArn=given["role-to-assume"],
            RoleSessionName=given["role-session-name"],
            WebIdentityToken=token_of_github(job.subject),
        )["Credentials"]
        self.access_keys.add(credentials["AccessKeyId"])
        job.variables |= {
            "AWS_REGION": given["aws-region"],
            "AWS_DEFAULT_REGION": given["aws-region"],
            "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
            "AWS_SESSION_TOKEN": credentials["SessionToken"],
        }


def token_of_github(subject: str) -> str:
    """Return what GitHub's token says; the emulator verifies no signature."""
    claims = {
        "iss": "https://token.actions.githubusercontent.com",
        "aud": "sts.amazonaws.com",
        "sub": subject,
    }
    return ".".join([*map(encoded, ({}, claims)), "signature"])
