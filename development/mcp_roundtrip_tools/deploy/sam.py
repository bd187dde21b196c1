"""Runs sam with one configuration file, which contains every option and every parameter explicitly."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_roundtrip_tools.deploy import toml
from mcp_roundtrip_tools.deploy.environments import OVERRIDES, Environment
from mcp_roundtrip_tools.deploy.target import Target


def configuration(folder: Path, environment: Environment) -> Path:
    """Return the path of sam's configuration file for this environment."""
    return folder / ".aws-sam" / f"samconfig-{environment.name}.toml"


def write_configuration(
    folder: Path, environment: Environment, target: Target, values: Mapping[str, str], *, own_bucket: bool
) -> None:
    """Write sam's configuration: the options of both files, and the values of all parameters of the template.

    CloudFormation keeps the previous value of a parameter that a deployment does not name. `own_bucket`: the
    command line names a bucket for the artefact, so sam does not create one.
    """
    sections = {
        command: {name: value for name, value in options.items() if name != OVERRIDES}
        for command, options in environment.sections.items()
    }
    sections["build"] = {**sections.get("build", {}), OVERRIDES: target.parameters}
    deploy = {**sections.get("deploy", {}), OVERRIDES: dict(values)}
    if own_bucket:
        deploy.pop("resolve_s3", None)
    sections["deploy"] = deploy
    document = {"version": 0.1, environment.name: {each: {"parameters": sections[each]} for each in sections}}
    path = configuration(folder, environment)
    path.parent.mkdir(exist_ok=True)
    path.write_text(toml.dumps(document), encoding="utf-8")


def run(sam: Path, folder: Path, environment: Environment, command: str, options: Sequence[str] = ()) -> int:
    """Run a command of sam in `folder` with the written configuration, and return its exit status."""
    given = ["--config-file", str(configuration(folder, environment)), "--config-env", environment.name]
    done = subprocess.run(  # noqa: S603 - the caller chooses the program
        [sam, command, *given, *options], cwd=folder, check=False
    )
    return done.returncode
