"""The tutorial, followed: its commands in a new application, its files, and the buttons of the console.

sam/test_new_application.py runs the first test of the application, and deploys the tutorial's tool.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

import mcp_roundtrip_tools.console
from mcp_roundtrip_tools.new import command as new
from support import forked_programs
from support.documents import code_blocks, read_document
from support.interpreters import output_of, run

PAGE = "docs/tutorial/index.md"
CREATE, RUN, CALL, REMOVE, TEST, RUN_FOR_USERS, CALLS_OF_BOB, *_ = code_blocks(PAGE, "sh")
APP, TEST_FILE, WITH_SCOPES = code_blocks(PAGE, "python")
[PRINTED] = code_blocks(PAGE, "text")

CONSOLE = Path(mcp_roundtrip_tools.console.__file__).parent / "web"

START_TIMEOUT_S = 30

ANSWERS = '{"order": "A-1002", "wish": {"euros": 20, "reason": "late"}, "sure": true}'


def shell(command: str, folder: Path) -> str:
    # Variables of an outer make would make this one print the folders that it enters.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return output_of("sh", "-e", "-c", command, cwd=folder, env=env)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Return the new application. Its virtual environment is that of the tests."""
    folder = tmp_path_factory.mktemp("reader")
    wheel = folder / f"mcp_roundtrip-{metadata.version('mcp-roundtrip')}-py3-none-any.whl"
    wheel.write_bytes(b"never installed")
    program, name = CREATE.splitlines()[0].rsplit(" ", 1)
    assert (program, Path(name).name) == (".venv/bin/mcp-roundtrip new", "shop")
    version = f"python3.{max(12, sys.version_info.minor)}"  # functions are not deployed on 3.11
    assert new.main([str(folder / "shop"), "--runtime", version, "--wheel", str(wheel)]) == 0
    forked_programs.install(folder / "shop", forked_programs.python_of_calls())
    return folder / "shop"


@contextmanager
def served(shop: Path, command: str) -> Iterator[str]:
    """Serve the application with a command of the page; yield the endpoint's URL."""
    with (shop / "run.log").open("w") as log:
        process = subprocess.Popen(
            shlex.split(f"{command.strip()} PORT=0"), cwd=shop, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield _wait(shop, r"endpoint  (http://127\.0\.0\.1:\d+/mcp)")
        finally:
            process.terminate()
            process.wait()


def _wait(shop: Path, pattern: str) -> str:
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end:
        if found := re.search(pattern, (shop / "run.log").read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError((shop / "run.log").read_text())


def test_the_tool_is_called_replaced_and_tested(shop):
    with served(shop, RUN.splitlines()[0]) as url:
        assert shell(f"{CALL.strip()} URL={url}", shop) == PRINTED
        (shop / "functions/server/app.py").write_text(APP)
        _wait(shop, r"(app\.py changed)")
        receipt = shell(f"make call TOOL=refund_order ANSWERS='{ANSWERS}' URL={url}", shop)
    assert '"euros": 20' in receipt
    assert (shop / "run.log").read_text().count("looking up the price of A-1002") == 1
    shell(REMOVE, shop)
    (shop / re.findall(r"`(tests/\w+\.py)`", read_document(PAGE))[0]).write_text(TEST_FILE)
    assert "2 passed" in shell(TEST, shop)


def test_a_scope_admits_only_its_users(shop):
    assert "@server.tool\n" in APP
    (shop / "functions/server/app.py").write_text(APP.replace("@server.tool\n", WITH_SCOPES))
    admitted, refused = CALLS_OF_BOB.splitlines()
    with served(shop, RUN_FOR_USERS) as url:
        assert '"euros": 20' in shell(f"{admitted} ANSWERS='{ANSWERS}' URL={url}", shop)
        done = run(*shlex.split(f"{refused} URL={url}"), cwd=shop)
    assert done.returncode != 0
    assert "orders:refund" in done.stderr


@pytest.mark.parametrize("page", [PAGE, "docs/guides/console.md"])
def test_the_console_has_the_buttons_that_the_page_names(page):
    sources = "\n".join(path.read_text("utf-8") for path in CONSOLE.rglob("*.js"))
    named = set(re.findall(r"\*\*([^*]+)\*\*", read_document(page)))
    assert len(named) > 5
    assert {
        name for name in named if not re.search(rf'["`> ]{re.escape(name)}["`<,]', sources, re.IGNORECASE)
    } == set()
