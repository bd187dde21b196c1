"""checkov finds nothing in the templates but what .checkov.yaml lists, each with its reason."""

import json
import os
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from support.sam_build import ROOT
from support.transformed import transform

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


@cache
def found(folder: Path, *options: str | Path) -> frozenset[str]:
    """The checks that fail."""
    # HOME: not the configuration of whoever runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(folder), "LOG_LEVEL": "WARNING"}
    command = [CHECKOV, "--directory", folder, "--output", "json", "--soft-fail", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 100
    return frozenset(check["check_id"] for check in report["results"]["failed_checks"])


def test_checkov_finds_nothing_else(templates: Path) -> None:
    assert found(templates, "--config-file", CONFIGURATION) == set()


def test_every_exception_is_still_needed(templates: Path) -> None:
    assert found(templates, "--framework", "cloudformation", "--skip-download", "--quiet") == EXCEPTIONS


def test_every_exception_has_its_reason() -> None:
    lines = CONFIGURATION.read_text().splitlines()
    after = lines[lines.index("skip-check:") :]
    for before, line in pairwise(after):
        if line.startswith("  - "):
            assert before.startswith("  # "), f"{line} has no reason above it"
