import json
import os
import platform
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from support import baselines, skips
from support.interpreters import output_of, run
from support.project import ROOT

CHECKOV = Path(os.environ.get("CHECKOV", ROOT / ".venv-checkov/bin/checkov"))
CONFIGURATION = ROOT / ".checkov.yaml"

PACKAGE = ROOT / ".cache/programs/node_modules/@cdklabs/cdk-validator-cfnguard"
SYSTEM = "macos" if sys.platform == "darwin" else "ubuntu"
GUARD = PACKAGE / "bin" / SYSTEM / platform.machine().replace("arm64", "aarch64") / "cfn-guard"
RULES = PACKAGE / "rules/control-tower/cfn-guard"


@pytest.fixture(scope="module")
def checkov(tmp_path_factory):
    """Return the failed checks of checkov with defaults (False) and with every option (True)."""
    folder = tmp_path_factory.mktemp("templates")
    both = {"False": baselines.with_defaults(), "True": baselines.with_options()}
    for kind, templates in both.items():
        baselines.write({f"{kind}-{name}": text for name, text in templates.items()}, folder)
    # The configuration without the exceptions, which are at the end of the file.
    configuration = folder.with_name("checkov.yaml")
    configuration.write_text(CONFIGURATION.read_text().partition("skip-check:")[0])
    # HOME: not the configuration of the user who runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(folder), "LOG_LEVEL": "WARNING"}
    command: list[str | Path] = [CHECKOV, "--directory", folder, "--output", "json", "--soft-fail"]
    printed = output_of(*command, "--config-file", configuration, cwd=folder, env=environment)
    report = json.loads(printed)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 200
    found: defaultdict[str, set[str]] = defaultdict(set)
    for check in report["results"]["failed_checks"]:
        found[Path(check["file_path"]).stem.partition("-")[0]].add(check["check_id"])
    return found


@pytest.mark.parametrize("options", [False, True])
def test_checkov_finds_exactly_the_exceptions_and_with_every_option_those_without_a_parameter(
    checkov, options
):
    assert checkov[str(options)] == baselines.excepted("CKV", with_options=options)


def test_the_configuration_of_checkov_skips_the_exceptions():
    """So that `checkov` in the project's folder finds nothing."""
    skipped = re.findall(r"^  - (\w+)$", CONFIGURATION.read_text(), re.MULTILINE)
    assert set(skipped) == baselines.excepted("CKV")


@pytest.mark.parametrize("options", [False, True])
def test_the_controls_find_exactly_the_exceptions_and_with_every_option_those_without_a_parameter(
    options, tmp_path
):
    if not GUARD.exists():
        skips.skip(skips.NODE, f"{GUARD} does not exist")
    templates = baselines.with_options() if options else baselines.with_defaults()
    command: list[str | Path] = [GUARD, "validate", "--rules", RULES, "--data"]
    written = baselines.write(templates, tmp_path)
    report = ["--structured", "--output-format", "json", "--show-summary", "none"]
    done = run(*command, *written, *report)
    assert done.returncode in (0, 19), done.stderr  # 19: rules failed
    refused = [rule for file in json.loads(done.stdout) for rule in file["not_compliant"]]
    found = [re.search(r"\[(CT\.[A-Z0-9]+\.PR\.\d+)\]", json.dumps(rule)) for rule in refused]
    controls = {control[1] if control else "?" for control in found}
    assert controls == baselines.excepted("CT.", with_options=options)
