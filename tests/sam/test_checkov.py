"""checkov finds the exceptions of docs/guides/landing-zones.md and nothing else."""

import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from support import baselines
from support.project import ROOT

CHECKOV = Path(os.environ.get("CHECKOV", ROOT / ".venv-checkov/bin/checkov"))
CONFIGURATION = ROOT / ".checkov.yaml"


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Return the failed checks with defaults and with every option."""
    folder = tmp_path_factory.mktemp("templates")
    both = {"defaults": baselines.with_defaults(), "options": baselines.with_options()}
    for kind, templates in both.items():
        baselines.write({f"{kind}-{name}": text for name, text in templates.items()}, folder)
    # The configuration without the exceptions, which are at the end of the file.
    configuration = folder.with_name("checkov.yaml")
    configuration.write_text(CONFIGURATION.read_text().partition("skip-check:")[0])
    # HOME: not the configuration of the user who runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(folder), "LOG_LEVEL": "WARNING"}
    command: list[str | Path] = [CHECKOV, "--directory", folder, "--output", "json", "--soft-fail"]
    done = subprocess.run(
        [*command, "--config-file", configuration],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 200
    found: defaultdict[str, set[str]] = defaultdict(set)
    for check in report["results"]["failed_checks"]:
        found[Path(check["file_path"]).stem.partition("-")[0]].add(check["check_id"])
    return found


def test_with_defaults_checkov_finds_exactly_the_exceptions(findings):
    assert findings["defaults"] == baselines.excepted("CKV")


def test_with_every_option_only_exceptions_without_a_parameter_remain(findings):
    assert findings["options"] == baselines.excepted("CKV", with_options=True)


def test_the_configuration_skips_the_exceptions():
    """So that `checkov` in the project's folder finds nothing."""
    skipped = re.findall(r"^  - (\w+)$", CONFIGURATION.read_text(), re.MULTILINE)
    assert set(skipped) == baselines.excepted("CKV")


def test_every_exception_has_a_reason():
    rows = list(baselines.exceptions())
    rules = [rule for row in rows for rule in row.rules]
    assert len(rules) == len(set(rules)) > 15
