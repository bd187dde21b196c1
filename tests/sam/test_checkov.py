"""checkov finds in the templates exactly the exceptions of .checkov.yaml, each of which has a reason."""

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
    """Return the transformed templates: with defaults, with all options, and the edge."""
    folder = tmp_path_factory.mktemp("templates")
    (folder / "plain.yaml").write_text(transform())
    (folder / "gradual.yaml").write_text(transform(Deployment="Canary10Percent5Minutes"))
    (folder / "edge.yaml").write_text((ROOT / "edge/template.yaml").read_text())
    return folder


def test_checkov_finds_exactly_the_excepted_rules(templates: Path) -> None:
    # The configuration without the exceptions, which are at the end of the file.
    configuration = templates.with_name("checkov.yaml")
    configuration.write_text(CONFIGURATION.read_text().partition("skip-check:")[0])
    # HOME: not the configuration of the user who runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(templates), "LOG_LEVEL": "WARNING"}
    command: list[str | Path] = [CHECKOV, "--directory", templates, "--output", "json", "--soft-fail"]
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
