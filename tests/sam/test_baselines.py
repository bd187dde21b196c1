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
CHECKS = """
import json, sys
from checkov.cloudformation.runner import Runner
from checkov.runner_filter import RunnerFilter
report = Runner().run(sys.argv[1], runner_filter=RunnerFilter(framework=["cloudformation"]))
assert not report.parsing_errors
assert len(report.passed_checks) > 200
print(json.dumps([(check.file_path, check.check_id) for check in report.failed_checks]))
"""
"""Prints what checkov's command reports, which imports its checks of all frameworks in half of its time."""

PACKAGE = ROOT / ".cache/programs/node_modules/@cdklabs/cdk-validator-cfnguard"
SYSTEM = "macos" if sys.platform == "darwin" else "ubuntu"
GUARD = PACKAGE / "bin" / SYSTEM / platform.machine().replace("arm64", "aarch64") / "cfn-guard"
RULES = PACKAGE / "rules/control-tower/cfn-guard"

DEFAULTS, OPTIONS = "defaults", "options"


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """Return the folder of all templates. Names begin with DEFAULTS or OPTIONS, by the parameters."""
    folder = tmp_path_factory.mktemp("templates")
    both = {DEFAULTS: baselines.with_defaults(), OPTIONS: baselines.with_options()}
    for kind, templates in both.items():
        baselines.write({f"{kind}-{name}": text for name, text in templates.items()}, folder)
    return folder


def by_kind(failed):
    """Return the failed rules of both kinds of templates, from pairs of a path and a rule."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path, rule in failed:
        found[Path(path).stem.partition("-")[0]].add(rule)
    return found


def assert_exceptions(found, prefix):
    assert found[DEFAULTS] == baselines.excepted(prefix)
    assert found[OPTIONS] == baselines.excepted(prefix, with_options=True)


def test_checkov_finds_exactly_the_exceptions_and_with_every_option_those_without_a_parameter(templates):
    # HOME: not the configuration of the user who runs this. No network, no account.
    environment = {"PATH": os.defpath, "HOME": str(templates), "LOG_LEVEL": "WARNING"}
    python = CHECKOV.with_name("python")
    failed = json.loads(output_of(python, "-c", CHECKS, templates, cwd=templates, env=environment))
    assert_exceptions(by_kind(failed), "CKV")


def test_the_configuration_of_checkov_skips_the_exceptions():
    """So that `checkov` in the project's folder finds nothing."""
    skipped = re.findall(r"^  - (\w+)$", CONFIGURATION.read_text(), re.MULTILINE)
    assert set(skipped) == baselines.excepted("CKV")


def test_the_controls_find_exactly_the_exceptions_and_with_every_option_those_without_a_parameter(templates):
    if not GUARD.exists():
        skips.skip(skips.NODE, f"{GUARD} does not exist")
    report = ["--structured", "--output-format", "json", "--show-summary", "none"]
    done = run(GUARD, "validate", "--rules", RULES, "--data", templates, *report)
    assert done.returncode in (0, 19), done.stderr  # 19: rules failed
    refused = [(file["name"], rule) for file in json.loads(done.stdout) for rule in file["not_compliant"]]
    assert_exceptions(by_kind((name, control_of(rule)) for name, rule in refused), "CT.")


def control_of(rule):
    found = re.search(r"\[(CT\.[A-Z0-9]+\.PR\.\d+)\]", json.dumps(rule))
    return found[1] if found else "?"
