"""A new application, as a stranger makes one from a wheel: run, tested, built and deployed.

The commands are those of docs/guides/your-own-project.md and adding-a-tool.md, and the deployed tool is that
of the tutorial. The package comes from the source distribution.
"""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from email import message_from_string
from pathlib import Path
from shutil import copyfile, copytree

import pytest

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.run.services import ministack
from support import forked_programs, interpreters, skips
from support.aws_account import Stack, running
from support.clients import Answer, Person, official
from support.documents import code_blocks
from support.project import ROOT, contents
from support.sam_build import NATIVE_RUNTIME, environment, require_deployed_runtime, run
from support.texts import words

NEW, RUN, UPGRADE, SAM_INIT = code_blocks("docs/guides/your-own-project.md", "sh")
DEPLOY = "make deploy\n"
NEW_TOOL, TEST, *_ = code_blocks("docs/guides/adding-a-tool.md", "sh")
TUTORIAL, *_ = code_blocks("docs/tutorial/index.md", "python")

PACKAGES = [
    ROOT / "layers/mcp_roundtrip/mcp_roundtrip",
    *sorted(path.parent for path in (ROOT / "development").glob("mcp_roundtrip_*/__init__.py")),
]

ANSWER = {"value": "A-1002"}
RESULT = {"text": "A-1002 is being packed."}

BUILD = """
import os, sys
from hatchling import build
os.chdir(sys.argv[1])
print(getattr(build, sys.argv[2])(sys.argv[3]))
"""
"""Builds a distribution of the project in a folder, as `python -m build --no-isolation` does."""

SOURCE_DATE_EPOCH = "1785196800"

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


def as_stranger(
    *command: str, folder: Path, variables: Mapping[str, str], stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder. Any exit status is returned."""
    return interpreters.run(*command, cwd=folder, env=of_stranger(**variables), stdin=stdin)


def shell(commands: str, folder: Path, **variables: str) -> str:
    """Run commands that must succeed; return what they print."""
    done = as_stranger("sh", "-e", "-c", commands, folder=folder, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_stranger(**variables: str) -> dict[str, str]:
    """Return the environment of somebody who has Python and sam, and no checkout."""
    of_sam = environment()
    path = os.pathsep.join([of_sam["PATH"], str(forked_programs.sam().parent)])
    # A few of the installed modules are imported: those are compiled then. (pip reads "1" as `compile`.)
    return {**of_sam, "PATH": path, "PIP_NO_COMPILE": "0", **variables}


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    """Install the versions of the build backend that `make dist` pins, and return their folder."""
    tools = tmp_path_factory.mktemp("tools")
    pinned = re.findall(r"\bhatch\S+==\S+", (ROOT / "Makefile").read_text("utf-8"))
    installed = run(sys.executable, "-m", "pip", "install", "--no-compile", "--target", tools, *pinned)
    assert installed.returncode == 0, installed.stderr
    return tools


@pytest.fixture(scope="module")
def build(backend, tmp_path_factory):
    def distribution(project, kind):
        output = tmp_path_factory.mktemp(kind)
        done = run(
            *(sys.executable, "-c", BUILD, project, f"build_{kind}", output),
            PYTHONPATH=str(backend),
            SOURCE_DATE_EPOCH=SOURCE_DATE_EPOCH,
        )
        assert done.returncode == 0, done.stderr
        [path] = output.iterdir()
        return path

    return distribution


@pytest.fixture(scope="module")
def source(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build(ROOT, "sdist")) as archive:
        archive.extractall(folder, filter="data")
    [unpacked] = folder.iterdir()
    return unpacked


@pytest.fixture(scope="module")
def wheel(build, source):
    return build(source, "wheel")


def test_the_same_sources_are_the_same_wheel(build, source, wheel, tmp_path):
    again = copytree(source, tmp_path / "again", copy_function=copyfile)  # with other times
    assert build(again, "wheel").read_bytes() == wheel.read_bytes()


def test_the_source_distribution_has_everything_in_the_repository(source):
    listed = run("git", "ls-files")
    if listed.returncode != 0:
        skips.skip(skips.HISTORY, "git ls-files")
    assert [path for path in listed.stdout.splitlines() if not (source / path).exists()] == []


def test_the_wheel_contains_only_the_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        path.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == expected
    assert {f"{package.name}/py.typed" for package in PACKAGES} <= names


def test_the_wheel_is_for_every_platform_and_its_page_links_to_the_release(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = message_from_string(archive.read(path).decode())
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    links = re.findall(r'\]\((?!#)([^)]*)\)|src(?:set)?="([^"]*)"', str(metadata.get_payload()))
    assert len(links) > 20
    release = f"{project['urls']['Repository']}/{{}}/v{project['version']}/"
    for link, image in links:
        assert link.startswith(("https://", "http://")) or image.startswith(release.format("raw"))
    assert release.format("blob") + "docs/tutorial/index.md" in dict(links)
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.fixture(scope="module")
def application(wheel, tmp_path_factory):
    """Return a new application, in a path with a space. Its own virtual environment does not exist yet."""
    require_deployed_runtime()
    folder = tmp_path_factory.mktemp("a stranger")
    tools = folder / "tools"
    assert run(sys.executable, "-m", "venv", "--without-pip", tools / ".venv").returncode == 0
    # The record of PEP 610 is what pip writes. The dependencies are those of this interpreter.
    pip = (sys.executable, "-m", "pip", "--python", tools / ".venv/bin/python")
    installed = run(*pip, "install", "--no-deps", "--no-compile", wheel)
    assert installed.returncode == 0, installed.stderr
    [packages] = tools.glob(".venv/lib/*/site-packages")
    shell(
        for_this_computer(NEW).replace(".venv/bin/mcp-roundtrip", f"{sys.executable} -m mcp_roundtrip_tools"),
        tools,
        PYTHONPATH=str(packages),
    )
    return folder / "orders"


def for_this_computer(new: str) -> str:
    return f"{new.rstrip()} --runtime {NATIVE_RUNTIME} --architecture {NATIVE_ARCHITECTURE}"


def test_sam_init_writes_the_same_application(application, tmp_path):
    _, *options, _ = SAM_INIT.split()
    target = ["--architecture", NATIVE_ARCHITECTURE, "--extra-context", f'{{"runtime": "{NATIVE_RUNTIME}"}}']
    command: list[str | Path] = [*options, ROOT, "--no-input", "--name", "orders", *target]
    sam = forked_programs.sam()
    done = run(sam, *command, cwd=tmp_path, HOME=str(tmp_path))  # cookiecutter remembers its answers there
    assert done.returncode == 0, done.stderr
    expected = {name: text for name, text in contents(application).items() if not name.endswith(".whl")}
    pinned = "layer/requirements.txt"  # its template knows no wheel
    assert {**contents(tmp_path / "orders"), pinned: expected[pinned]} == expected


def test_a_changed_wheel_is_installed_and_the_tests_pass_with_another_tool(application, wheel, tmp_path):
    (application / "layers/deps").mkdir(parents=True)
    (application / "layers/deps/requirements.txt").touch()
    of_index = "mv layer/wheels/*.whl . && make --dry-run lint && mv *.whl layer/wheels"
    shown = shell(of_index, application)
    assert ("--requirement layers/deps/requirements.txt" in shown, "uninstall" in shown) == (True, False)
    shell("rm -r layers", application)
    # The package was installed before the wheel changed.
    (application.parent / "tools/.venv").rename(application / ".venv")
    before = application / ".venv/.installed"
    before.touch()
    # If pip failed after that, as for packages that conflict, the package would be missing.
    assert "uninstall" not in shell("make --dry-run --what-if=requirements.txt lint", application)
    changed = application / "layer/wheels" / wheel.name
    with zipfile.ZipFile(changed, "a") as archive:
        archive.writestr("mcp_roundtrip_tools/changed.py", "")
    os.utime(changed, ns=(0, before.stat().st_mtime_ns + 1))  # both may be of one tick of the clock
    # pip prefers a build tag. If it took this wheel, the installation would fail.
    (tmp_path / wheel.name.replace("-py3", "-1-py3")).write_text("another package of that name")
    add, name = NEW_TOOL.split()[1], NEW_TOOL.partition("NAME=")[2].strip()
    assert add == "new-tool"
    # The first command installs the application, with the changed wheel of the same version.
    assert f"functions/server/{name}.py" in shell(NEW_TOOL, application, PIP_FIND_LINKS=str(tmp_path))
    assert [*application.glob(".venv/lib/*/site-packages/mcp_roundtrip_tools/changed.py")]
    assert "5 passed" in shell(TEST, application)
    assert "already" in shell(UPGRADE, application)
    where = "import mcp_roundtrip; print(mcp_roundtrip.__file__)"
    python = application / ".venv/bin/python"
    assert str(application / ".venv") in run(python, "-c", where, cwd=application).stdout


def test_the_application_has_sample_events(application):
    shell("make events", application)
    found = {
        path.relative_to(application / "events").as_posix() for path in application.glob("events/**/*.json")
    }
    assert found >= {"server/list.json", "server/order_status.json"}
    call = "make --silent invoke PORT=1 EVENT=events/server/order_status.json"
    asked = json.loads(shell(f"{call} > 1.json && cat 1.json", application))
    [key] = json.loads(asked["body"])["result"]["inputRequests"]
    answers = shlex.quote(json.dumps({key: ANSWER}))
    done = json.loads(shell(f"{call} ROUND=1.json ANSWERS={answers}", application))
    assert json.loads(done["body"])["result"]["content"] == [{"type": "text", **RESULT}]


def test_make_run_serves_the_tool_without_a_build(application):
    run = f"{RUN.splitlines()[1]} PORT=0".split()
    with interpreters.serving(run, cwd=application, env=of_stranger()) as (_, url):
        given = """URL="$URL" TOOL=order_status ANSWERS='{"number": "A-1002"}'"""
        assert RESULT["text"] in shell(f"make call {given}", application, URL=url)
    assert not (application / ".aws-sam").exists()


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    assert ministack.PYTHON.exists(), f"{ministack.PYTHON} does not exist: `make e2e` installs it"
    with running(tmp_path_factory.mktemp("account")) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def deployer(account):
    return {**account.variables, "SAM_CLI_POLL_DELAY": "0.2"}


@pytest.fixture(scope="module")
def stack(application, account, deployer):
    """Return the stack that `make deploy` makes, with typed answers, at the end of the tutorial."""
    (application / "functions/server/app.py").write_text(TUTORIAL)
    assert DEPLOY in code_blocks("docs/tutorial/index.md", "sh")
    answers = {"Name of the stack": "", "Region": "", "AuthMode": "none"}
    ours, terminal = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers.values()).encode())
    done = as_stranger(*DEPLOY.split(), folder=application, variables=deployer, stdin=terminal)
    os.close(ours)
    os.close(terminal)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [question for question in answers if re.search(rf"{question}.*: ", done.stdout)]
    assert asked == list(answers)
    return Stack(account, "orders")


async def test_the_deployed_tool_asks_its_questions(stack):
    url = f"{stack.cloud.url}/_aws/execute-api/{stack.resources['Platform.Api']}/$default/mcp"
    answers: list[Answer] = [ANSWER, {"euros": 20, "reason": "late"}, {"value": True}]
    async with official(url, person := Person(answers)) as client:
        refund = await client.call("refund_order", {})
    assert (refund["order"], refund["euros"]) == ("A-1002", 20)
    wish = "A-1002 cost 120 euros. How much do you want back?"
    assert person.asked == ["Which order?", wish, "Pay back 20 euros for A-1002?"]


def test_the_layer_ships_bytecode_and_nothing_that_runs_on_a_developers_computer(application, stack):
    layer = application / ".aws-sam/build/RoundtripLayer/python"
    shipped = {path.name for path in layer.iterdir()}
    assert {"mcp_roundtrip", "msgspec", "pydantic", "jwt", "cryptography", "aws_lambda_powertools"} <= shipped
    assert not any(name.startswith("mcp_roundtrip_") for name in shipped)
    assert "bin" not in shipped
    # Their content depends on the folder of the build.
    assert {path.name for path in layer.glob("*.dist-info/*")}.isdisjoint({"RECORD", "direct_url.json"})
    sources = [path for path in layer.rglob("*.py") if path.parent.name != "bin"]
    tag = NATIVE_RUNTIME.replace("python", "cpython-").replace(".", "")
    missing = [each for each in sources if not (each.parent / f"__pycache__/{each.stem}.{tag}.pyc").exists()]
    assert missing == []
    flags = (layer / f"mcp_roundtrip/__pycache__/errors.{tag}.pyc").read_bytes()[4:8]
    assert flags == b"\x01\0\0\0"  # an unchecked hash (PEP 552)


def test_the_answers_are_kept_for_the_next_commands(application, stack, deployer):
    saved = tomllib.loads((application / "samconfig.local.toml").read_text("utf-8"))["default"]
    assert saved["deploy"]["parameters"]["parameter_overrides"] == {"AuthMode": "none"}
    assert saved["global"]["parameters"] == {"stack_name": "orders", "region": "us-east-1"}
    url = shell("make --silent url", application, **deployer)
    assert re.fullmatch(rf"https?://{stack.resources['Platform.Api']}\.execute-api\.\S+/mcp\n", url)
    assert "0 of 0 versions" in shell("make --silent prune", application, **deployer)


def test_another_target_of_fixed_functions_is_refused_before_the_build(application, deployer):
    command = ("make", "deploy", "PYTHON_RUNTIME=python3.14")
    done = as_stranger(*command, folder=application, variables=deployer)
    assert done.returncode == 2
    assert {"error", "template.yaml", "PythonRuntime", "Runtime"} <= words(done.stderr)
    assert "Building" not in done.stdout
