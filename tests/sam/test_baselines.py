"""AWS Control Tower's proactive controls find what docs/guides/landing-zones.md excepts, and nothing else."""

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from support import baselines, skips
from support.project import ROOT

PACKAGE = ROOT / ".cache/guard/node_modules/@cdklabs/cdk-validator-cfnguard"
SYSTEM = "macos" if sys.platform == "darwin" else "ubuntu"
GUARD = PACKAGE / "bin" / SYSTEM / platform.machine().replace("arm64", "aarch64") / "cfn-guard"
RULES = PACKAGE / "rules/control-tower/cfn-guard"


@pytest.fixture(scope="module", autouse=True)
def _guard_is_installed():
    if not GUARD.exists():
        skips.skip(skips.NODE, f"{GUARD} does not exist")


def findings(templates: Iterable[Path]) -> set[str]:
    """Return the controls that refuse a resource of a template."""
    command: list[str | Path] = [GUARD, "validate", "--rules", RULES, "--data", *templates]
    report = ["--structured", "--output-format", "json", "--show-summary", "none"]
    done = subprocess.run([*command, *report], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 19), done.stderr  # 19: rules failed
    refused = [rule for file in json.loads(done.stdout) for rule in file["not_compliant"]]
    found = [re.search(r"\[(CT\.[A-Z0-9]+\.PR\.\d+)\]", json.dumps(rule)) for rule in refused]
    return {control[1] for control in found if control} | {"?" for control in found if not control}


def test_with_defaults_the_controls_find_exactly_the_exceptions(tmp_path):
    written = baselines.write(baselines.with_defaults(), tmp_path)
    assert findings(written) == baselines.excepted("CT.")


def test_with_every_option_only_exceptions_without_a_parameter_remain(tmp_path):
    written = baselines.write(baselines.with_options(), tmp_path)
    assert findings(written) == baselines.excepted("CT.", with_options=True)
