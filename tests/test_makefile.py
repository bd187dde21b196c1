import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.texts import words

ROOT = Path(__file__).parents[1]
[OF_APPLICATION] = (ROOT / "development/mcp_roundtrip_tools/new/application").glob("*/Makefile")
MAKEFILES = {"repository": ROOT / "Makefile", "application": OF_APPLICATION}
CLIENTS = ROOT / "tests/clients"


def run_make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, with an environment and without what an outer make has set."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    env = {**variables, **environment}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def make(
    folder: Path, *arguments: str, makefile: Path = ROOT / "Makefile", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `make -n` in a folder with only the Makefile, its inputs, and an environment."""
    shutil.copy(makefile, folder)
    (folder / "pyproject.toml").touch()
    shutil.copytree(CLIENTS, folder / CLIENTS.relative_to(ROOT), dirs_exist_ok=True)
    return run_make(folder, "--dry-run", *arguments, **environment)


def interpreter(path: Path, version: str) -> Path:
    """Write a program that reports this Python version."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["3.10", "3.15", "2.7"])
def test_an_unsupported_interpreter_is_refused_with_its_version(tmp_path, version):
    python = str(interpreter(tmp_path / "python", version))
    for done in (make(tmp_path, "run", f"PYTHON={python}"), make(tmp_path, "run", PYTHON=python)):
        assert done.returncode == 2
        assert f"PYTHON={python} is Python {version}. " in done.stderr
        assert "pip" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("run PYTHON=no-such-python", "PYTHON=no-such-python"),
        ("run", "make clean"),
        ("test", "make clean"),
        (f"run PYTHON={sys.executable} VENV=other TRACES=1", "TRACES=1 must be"),
    ],
)
def test_what_make_cannot_use_is_named(tmp_path, arguments, sentence):
    interpreter(tmp_path / ".venv/bin/python", "3.10")
    done = make(tmp_path, *arguments.split())
    assert done.returncode == 2
    assert sentence in done.stderr


def test_run_with_traces_installs_opentelemetry_and_names_the_endpoint(tmp_path):
    python = f"PYTHON={sys.executable}"
    plain, traced = (make(tmp_path, "run", python, *given).stdout for given in ([], ["TRACES=http://t:1"]))
    assert "--editable '.[traces]'" in traced
    assert "--env MCP_TRACES=on --env OTEL_EXPORTER_OTLP_ENDPOINT=http://t:1" in traced
    assert "traces" not in plain
    assert "MCP_TRACES" not in plain


def lint(folder: Path, program: str, **environment: str) -> list[str]:
    """Run `make lint` with a shell command in place of its programs; return the lines that it prints."""
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("ruff", "mypy", "python"):
        interpreter(folder / "other/bin" / name, program.format(name=name))
    (folder / "other/.dev").touch()
    done = run_make(folder, "lint", "VENV=other", "--old-file=other/.dev", "--silent", **environment)
    return done.stdout.splitlines()


def test_lint_ignores_a_folder_that_holds_no_function(tmp_path):
    """Git does not remove the folder of a removed function if it contains caches."""
    (tmp_path / "functions/removed/__pycache__").mkdir(parents=True)
    (tmp_path / "functions/present").mkdir()
    (tmp_path / "functions/present/app.py").touch()
    lines = lint(tmp_path, '{name} "$@"')
    replay = "python -m mcp_roundtrip_tools lint functions"
    assert lines == ["ruff check", "ruff format --check", replay, "mypy", "mypy functions/present"]


def test_python_keeps_what_it_compiles(tmp_path):
    lines = lint(tmp_path, '"${{PYTHONDONTWRITEBYTECODE-not set}}"', PYTHONDONTWRITEBYTECODE="1")
    assert {*lines} == {"not set"}


def supporting(module: Path) -> set[Path]:
    """Return the modules of tests/support that a test module uses, directly or through others."""
    found = set[Path]()
    todo = [module]
    while todo:
        names = re.findall(r"\bsupport(?:\.| import )(\w+)", todo.pop().read_text())
        new = {path for name in names if (path := ROOT / f"tests/support/{name}.py").exists()} - found
        found |= new
        todo += new
    return found


def test_make_check_needs_no_tools_outside_its_virtual_environment():
    """Only `make test` installs SAM, ministack and the packages of npm."""
    [names] = re.findall(r"addprefix tests/,([^)]*)\)", (ROOT / "Makefile").read_text())
    parts = [ROOT / "tests" / name for name in names.replace("\\", " ").split()]
    modules = [path for part in parts for path in (part.rglob("test_*.py") if part.is_dir() else [part])]
    assert len(modules) > len(parts)
    assert {path: path.exists() for path in parts} == dict.fromkeys(parts, True)
    # `serve_ministack` starts ministack, whose virtual environment is its own.
    tool = re.compile(r"\.(venv-|cache/)|\bserve_ministack\b")
    assert any(tool.search(path.read_text()) for path in (ROOT / "tests/support").glob("*.py"))
    found = {
        path.relative_to(ROOT).as_posix(): used
        for path in modules
        if (used := {each.name for each in (path, *supporting(path)) if tool.search(each.read_text())})
    }
    assert found == {}


def test_no_virtual_environment_is_removed_as_an_intermediate_file(tmp_path):
    done = make(tmp_path, "test")
    assert done.returncode == 0, done.stderr
    assert ".venv-lock/bin/uv pip install --quiet --python .venv-mcp1/bin/python " in done.stdout
    assert not re.search(r"^rm .*/bin/activate", done.stdout, re.MULTILINE)


def test_a_virtual_environment_whose_creation_was_interrupted_is_created_again(tmp_path):
    interpreter(tmp_path / ".venv/bin/python", "3.13")
    assert "-m venv .venv" in make(tmp_path, "run", f"PYTHON={sys.executable}").stdout
    assert "uv venv --quiet --allow-existing " in make(tmp_path, "test").stdout
    (tmp_path / ".venv/bin/activate").touch()
    assert "-m venv .venv" not in make(tmp_path, "run", f"PYTHON={sys.executable}").stdout


def test_a_virtual_environment_for_which_uv_could_not_download_pip_is_created_again(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    uv = tmp_path / ".venv-lock/bin/uv"
    uv.parent.mkdir(parents=True)
    uv.write_text("#!/bin/sh\nmkdir -p .venv/bin; touch .venv/bin/activate; exit 1\n")
    uv.chmod(0o755)
    for _ in range(2):
        done = run_make(tmp_path, ".venv/bin/activate", "WITH_UV=1", f"PYTHON={sys.executable}")
        assert (done.returncode, "Creating" in done.stderr) == (2, True)


def test_an_index_that_pip_is_configured_for_is_used(tmp_path):
    done = make(tmp_path, "test", f"PYTHON={sys.executable}", PIP_INDEX_URL="https://pypi.example/simple")
    assert done.returncode == 0, done.stderr
    assert ".venv-mcp1/bin/python -m pip install" in done.stdout
    assert "/uv " not in done.stdout


@pytest.mark.parametrize("makefile", MAKEFILES.values(), ids=MAKEFILES.keys())
def test_pip_installs_into_the_virtual_environment_where_its_default_is_the_home_of_the_user(
    makefile, tmp_path
):
    (tmp_path / "more.mk").write_text("show:\n\t@echo $$PIP_USER\n")
    shutil.copy(makefile, tmp_path)
    assert run_make(tmp_path, "-f", "Makefile", "-f", "more.mk", "show", PIP_USER="yes").stdout == "0\n"


def test_only_the_command_line_names_users_of_make_run(tmp_path):
    """Every shell has a variable USER."""
    venv = f"PYTHON={sys.executable}"
    assert (
        '--user "$USER" --scopes "$SCOPES"' in make(tmp_path, "run", venv, "USER=ada bob", "SCOPES=a").stdout
    )
    assert "--user" not in make(tmp_path, "run", venv, USER="root").stdout


@pytest.mark.parametrize("makefile", MAKEFILES.values(), ids=MAKEFILES.keys())
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("run PARAMETRES=x", "PARAMETRES help"),
        ("run port=3001", "port help"),
        ("run NAME=x", "NAME new-tool"),
        ("PORT=3001", "PORT run call invoke"),
    ],
    ids=lambda value: value.partition(" ")[2],
)
def test_a_variable_that_no_goal_reads_is_refused(arguments, named, makefile, tmp_path):
    done = make(tmp_path, *arguments.split(), makefile=makefile)
    assert (done.returncode, done.stdout) == (2, "")
    assert words(named) <= words(done.stderr)


@pytest.mark.parametrize("makefile", MAKEFILES.values(), ids=MAKEFILES.keys())
def test_every_variable_of_the_list_is_accepted_for_its_goals(makefile, tmp_path):
    listed = variables(makefile)
    assert len(listed) >= 12
    for goal in sorted({goal for goals in listed.values() for goal in goals}):
        given = [f"{name}=http://t:1" for name, goals in listed.items() if goal in goals]
        done = make(tmp_path, goal, f"PYTHON={sys.executable}", *given, makefile=makefile)
        assert "has no variable" not in done.stderr


@pytest.mark.parametrize("makefile", MAKEFILES.values(), ids=MAKEFILES.keys())
def test_the_list_has_the_variables_that_goals_read(makefile):
    """A recipe passes a variable of the shell (`"$$ENV"`), or one of make (`$(PORT)`)."""
    text = makefile.read_text()
    read = {name for found in re.findall(r"\$\$([A-Z][A-Z_]+)|\$\(([A-Z][A-Z_]+)\)", text) for name in found}
    assigned = {*re.findall(r"^([A-Z_]+) *[:?]?=", text, re.MULTILINE), *OF_MAKE}
    assert read - {""} - assigned - variables(makefile).keys() == set()
    assert variables(makefile).keys() - read - assigned == OF_PROGRAMS


OF_MAKE = {"BESIDE", "CURDIR", "HOME", "MAKE", "MAKECMDGOALS", "MAKEFILE_LIST", "MAKELEVEL", "PATH"}
"""Variables of make itself, of the shell, and of single targets."""

OF_PROGRAMS = {
    "CA_BUNDLE",
    "CALL",
    "CLIENT_ID",
    "CLIENT_SECRET",
    "IAM",
    "ISSUER",
    "TOKEN",
    "TOKEN_PARAMETERS",
}
"""Variables that no recipe passes: the programs find them in their environment."""


def variables(makefile: Path) -> dict[str, list[str]]:
    """Return the variables in the list of a Makefile, each with the goals that read it."""
    found: dict[str, list[str]] = {}
    for names, goals in re.findall(
        r"^#   (.*?)   *(?:for ([a-z, -]+):.*)?.*$", makefile.read_text(), re.MULTILINE
    ):
        for name in re.findall(r"([A-Z_]+)=", re.sub(r"\"[^\"]*\"|'[^']*'", "", names)):
            assert name not in found
            found[name] = re.split(r", | and ", goals) if goals else []
    return found


@pytest.mark.parametrize(
    ("goal", "guide"),
    [("run", "running-locally"), ("call", "calling-from-the-terminal"), ("invoke", "sample-events")],
)
def test_an_application_has_the_variables_of_this_repository_and_a_guide_names_them(goal, guide):
    """The guides are for both."""
    here, there = (
        {name for name, goals in variables(each).items() if goal in goals} for each in MAKEFILES.values()
    )
    assert here - there == ({"TRACES"} if goal == "run" else set()), OF_APPLICATION
    page = ROOT / f"docs/guides/{guide}.md"
    assert [name for name in there if name not in page.read_text("utf-8")] == [], page


def test_an_application_installs_the_packages_of_its_functions_for_its_tests(tmp_path):
    for path in ("requirements.txt", "layer/requirements.txt", "functions/server/requirements.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    done = make(tmp_path, "test", f"PYTHON={sys.executable}", makefile=OF_APPLICATION)
    assert "--requirement requirements.txt --requirement functions/server/requirements.txt" in done.stdout


DEPLOYING = ("workflows/deploy.yml", "workflows/rollback.yml", "actions/deploy/action.yml")
"""The files of `mcp-roundtrip add pipeline` that run make."""


def runs_of_make() -> Iterator[tuple[set[str], set[str]]]:
    """Yield the goals and the variables of each step of the workflows that deploy."""
    for path in DEPLOYING:
        document = yaml.safe_load((ROOT / ".github" / path).read_text("utf-8"))
        jobs = document.get("jobs") or {"deploy": document["runs"]}
        for step in (step for job in jobs.values() for step in job["steps"]):
            script = step.get("run", "")
            if goals := {*re.findall(r"\bmake (?:--silent )?([a-z]+)", script)}:
                yield goals, {*step.get("env", {}), *re.findall(r"\b([A-Z_]+)=", script)}


@pytest.mark.parametrize("makefile", MAKEFILES.values(), ids=MAKEFILES.keys())
def test_the_workflows_use_goals_and_variables_of_both_makefiles(makefile):
    listed, text = variables(makefile), makefile.read_text()
    known = {*re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE)}
    found = [*runs_of_make()]
    assert {goal for goals, _ in found for goal in goals} == {
        *("test", "build", "deploy", "url", "smoke", "rollback")
    }
    for goals, names in found:
        assert goals <= known
        assert [name for name in names if not goals & {*listed[name]}] == []


def test_both_makefiles_check_variables_with_the_same_lines():
    parts = [
        re.search(r"^given .*?^\$\(if \$\(mistake.*?$", each.read_text(), re.M | re.S)
        for each in MAKEFILES.values()
    ]
    assert None not in parts
    assert len({part[0] for part in parts if part}) == 1


def test_a_makefile_that_runs_another_may_have_variables_of_its_own(tmp_path):
    make(tmp_path)  # copies the Makefile
    (tmp_path / "outer.mk").write_text("help: ; @+$(MAKE) --silent --file Makefile help\n")
    done = make(tmp_path, "--file", "outer.mk", "THEIRS=1")
    assert done.returncode == 0, done.stderr
