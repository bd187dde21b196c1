"""Runs sam with one configuration file, which contains every option and every parameter explicitly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.deploy import toml
from mcp_roundtrip_tools.deploy.environments import OVERRIDES, Environment
from mcp_roundtrip_tools.deploy.errors import Refused

INSTALLED: Final = Path(".venv-sam/bin/sam")
"""The sam that `make` installs."""


def find_sam(folder: Path, given: Path | None) -> Path:
    """Return the given sam, or the one on PATH, or the one that `make` installed. Raises Refused."""
    on_path = shutil.which("sam")
    program = folder / (given or on_path or INSTALLED)
    if not program.exists():
        raise Refused(f"{given or 'sam'} is not installed: pip install aws-sam-cli, or run make build.")
    return program


def configuration(folder: Path, environment: Environment) -> Path:
    """Return the path of sam's configuration file for this environment."""
    return folder / ".aws-sam" / f"samconfig-{environment.name}.toml"


def write_configuration(
    folder: Path,
    environment: Environment,
    target: Mapping[str, str],
    values: Mapping[str, str],
    *,
    own_bucket: bool,
) -> None:
    """Write sam's configuration: the options of both files, and the values of all parameters of the template.

    CloudFormation keeps the previous value of a parameter that a deployment does not name. `target` has the
    parameters of the build. `own_bucket`: the
    command line names a bucket for the artefact, so sam does not create one.
    """
    sections = {
        command: {name: value for name, value in options.items() if name != OVERRIDES}
        for command, options in environment.sections.items()
    }
    sections["build"] = {**sections.get("build", {}), OVERRIDES: dict(target)}
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
    # sam looks for the Python of the functions' runtime on PATH. A virtual environment may be the only place.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(  # noqa: S603 - the caller chooses the program
        [sam, command, *given, *options], cwd=folder, env={**os.environ, "PATH": path}, check=False
    )
    return done.returncode
