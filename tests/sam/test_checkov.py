"""checkov finds in the templates what .checkov.yaml excepts, each with its reason, and nothing else."""

import json
import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from support.project import ROOT
from support.transformed_template import transform

CHECKOV = Path(os.environ.get("CHECKOV", ROOT / ".venv-checkov/bin/checkov"))
CONFIGURATION = ROOT / ".checkov.yaml"
EXCEPTIONS = set(re.findall(r"^  - (\w+)$", CONFIGURATION.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The templates as CloudFormation gets them: for everybody, with everything, and at the edge."""
    folder = tmp_path_factory.mktemp("templates")
    (folder / "plain.yaml").write_text(transform())
    (folder / "gradual.yaml").write_text(transform(Deployment="Canary10Percent5Minutes"))
    (folder / "edge.yaml").write_text((ROOT / "edge/template.yaml").read_text())
    return folder


def test_checkov_finds_what_the_configuration_excepts_and_nothing_else(templates: Path) -> None:
    # All of the configuration but the exceptions, which are the end of the file.
    configuration = templates.with_name("checkov.yaml")
    configuration.write_text(CONFIGURATION.read_text().partition("skip-check:")[0])
    # HOME: not the configuration of the user who runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(templates), "LOG_LEVEL": "WARNING"}
    command = [CHECKOV, "--directory", templates, "--output", "json", "--soft-fail"]
    done = subprocess.run(
        [*command, "--config-file", configuration],
        cwd=templates,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 100
    assert {check["check_id"] for check in report["results"]["failed_checks"]} == EXCEPTIONS


def test_every_exception_has_its_reason() -> None:
    lines = CONFIGURATION.read_text().splitlines()
    after = lines[lines.index("skip-check:") :]
    for before, line in pairwise(after):
        if line.startswith("  - "):
            assert before.startswith("  # "), f"{line} has no reason above it"
