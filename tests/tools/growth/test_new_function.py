"""``make new-function`` in this repository, whose functions are behind a front door."""

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path, PurePosixPath

import pytest

from mcp_roundtrip_tools.__main__ import main
from mcp_roundtrip_tools.growth.written_files import (
    MAX_NAME,
    render_app,
    render_module,
    render_test,
    write,
)
from support.interpreters import output_of, run
from support.project import ROOT, TASK_TOOL, TOOL, contents, copy_project

BIN = Path(sys.executable).parent
LONGEST = "a" * MAX_NAME


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a copy of the project with the functions TOOL and TASK_TOOL, the latter written by `make`."""
    project = copy_project(tmp_path_factory.mktemp("written"))
    assert main(["new-function", "--project", str(project), TOOL]) == 0
    done = make(project, f"NAME={TASK_TOOL}", "TASKS=1")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="module")
def unwritten(tmp_path_factory):
    """Return a copy of the project that must stay unchanged."""
    project = copy_project(tmp_path_factory.mktemp("unwritten"))
    before = contents(project)
    yield project
    assert contents(project) == before


@pytest.fixture
def project(unwritten):
    return unwritten


def make(project: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    """Run `make new-function` with the virtual environment of the tests."""
    environment = BIN.parent
    ready = f"{environment}/.local"
    command = ["make", "--old-file", ready, f"VENV={environment}", "new-function", *variables]
    variables_of_make = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "NAME", "TASKS"}
    inherited = {name: value for name, value in os.environ.items() if name not in variables_of_make}
    return run(*command, cwd=project, env=inherited)


def test_function_test_events_template_entries_and_catalog_are_written(written, unwritten):
    before = contents(unwritten)
    changed = {name for name, content in contents(written).items() if before.get(name) != content}
    own = {
        name
        for tool in (TOOL, TASK_TOOL)
        for name in (
            f"functions/{tool}",
            f"functions/{tool}/app.py",
            f"functions/{tool}/catalog.digest",
            f"events/{tool}",
            f"events/{tool}/{tool}.json",
            f"events/{tool}/{tool}_bad_arguments.json",
            f"tests/functions/test_{tool}.py",
        )
    }
    edge = {"platform/edge/routes.yaml", "platform/edge/template.yaml"}
    assert changed == {*own, *edge, "functions/front_door/catalog.json", "template.yaml"}


def test_mypy_checks_the_function_with_tasks():
    """In `make lint`: mypy would read all packages again."""
    checked = ROOT / f"tests/typed/{TASK_TOOL}.py"
    assert render_app(TASK_TOOL, tasks=True) == checked.read_text("utf-8")


def test_the_written_files_are_lint_clean_and_formatted(tmp_path):
    for name, tasks in product(("f", TOOL, LONGEST), (False, True)):
        test = render_test(name, PurePosixPath("functions", name, "app.py"), 1, tasks=tasks)
        texts = {"app.py": render_app(name, tasks=tasks), f"{name}.py": render_module(name, tasks=tasks)}
        for text in texts.values():
            assert f"\ndef {name}(" in text
        folder = tmp_path / f"{name}_{tasks}"
        write({folder / path: text for path, text in {**texts, f"test_{name}.py": test}.items()})
    for command in (("check",), ("format", "--check")):
        output_of(BIN / "ruff", *command, "--config", ROOT / "pyproject.toml", tmp_path, cwd=ROOT)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "NAME="),
        *((name, "lower-case") for name in ("Orders", "find-orders", "orders_", "find__orders", "größe")),
        *((name, "lower-case") for name in ("orders\n", "../orders")),
        *((name, "a letter") for name in ("1st", "_orders")),
        (LONGEST + "a", str(MAX_NAME)),
        *((name, "Python") for name in ("import", "list", "handler")),
        *((name, "exists") for name in ("weather", "rest_api")),
        ("orders_worker", "worker"),
        ("orders_tasks", "queue"),
        ("get_weather", "'get_weather'.*'weather'"),
    ],
)
def test_an_invalid_name_is_refused(project, name, reason, capsys):
    assert main(["new-function", "--project", str(project), "--", name]) == 2
    assert re.search(f"error: .*{reason}", capsys.readouterr().err, re.DOTALL)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [([], "make new-function NAME=find_orders"), (['NAME=x"; touch stray; "'], "lower-case")],
)
def test_make_names_a_missing_name_and_no_shell_interprets_it(project, variables, reason):
    done = make(project, *variables)
    assert done.returncode != 0
    assert reason in done.stderr
