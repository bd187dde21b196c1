"""What keeps a function from running is said when it is saved: to its author, and to local callers."""

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from mcp_roundtrip_tools.catalog.__main__ import main as write_catalog
from mcp_roundtrip_tools.client.terminal_text import Styles
from mcp_roundtrip_tools.run import LocalApp
from mcp_roundtrip_tools.run.terminal.terminal import Terminal
from support.messages import META
from support.sam_applications import (
    FRONT_DOOR,
    ONE_SERVER,
    front_door_template,
    http,
    rpc,
    wait_until,
    write_application,
)
from support.served_application import serve

GOOD = """
    import os
    import beside
    from mcp_roundtrip import Context, Server

    server = Server("greet")

    @server.tool
    def greet(ctx: Context, name: str = "you") -> str:
        return f"Hello {name}"

    handler = server.lambda_handler
    """
SOURCES = {"f/app.py": GOOD, "f/beside.py": "VALUE = 1\n"}
TEMPLATE = ONE_SERVER


@dataclass(frozen=True)
class Mistake:
    """A change of a file, the frames of the author that its message has, and its last line."""

    old: str
    new: str
    frames: tuple[str, ...]
    message: str
    file: str = "f/app.py"


APP = 'File "f/app.py", line '
MISTAKES = {
    "a syntax error": Mistake("def greet(", "def greet((", (f"{APP}9",), "SyntaxError: "),
    "a module that does not exist": Mistake(
        "import os", "import nowhere", (f"{APP}2",), "ModuleNotFoundError: No module named 'nowhere'"
    ),
    "an exception": Mistake("import os", 'import os; os.environ["NO"]', (f"{APP}2",), "KeyError: 'NO'"),
    "a process that ends": Mistake(
        "import os", "import os; os._exit(7)", (), "The import of app.py ends the process (exit status 7)."
    ),
    "a syntax error in an imported module": Mistake(
        "VALUE", "VALUE VALUE", (f"{APP}3", 'File "f/beside.py", line 1'), "SyntaxError: ", "f/beside.py"
    ),
    "a parameter that no schema has": Mistake(
        "name: str", "name: slice", (f"{APP}9, in greet",), "DefinitionError: "
    ),
    "no handler": Mistake(
        "handler =", "handle =", ('File "f/app.py"',), "AttributeError: the module has no handler"
    ),
    "a missing setting": Mistake(
        "{MCP_AUTH_MODE: none}", "{}", (), "SettingsError: MCP_AUTH_MODE: must be one of", "template.yaml"
    ),
    "a wrong setting": Mistake(
        "MCP_AUTH_MODE: none",
        "MCP_AUTH_MODE: none, MCP_MAX_ROUNDS: many",
        (),
        "F: MCP_MAX_ROUNDS: must be a whole number",
        "template.yaml",
    ),
}


@dataclass
class Session:
    """A run of `make run`: the application, its folder, and the lines of the terminal."""

    app: LocalApp
    folder: Path
    lines: list[str] = field(default_factory=list)

    def save(self, mistake, *, corrected=False):
        """Save the file of a mistake, with the mistake or without it, and wait for the check."""
        self.lines.clear()
        text = dedent(TEMPLATE if mistake.file == "template.yaml" else SOURCES[mistake.file])
        changed = text if corrected else text.replace(mistake.old, mistake.new)
        assert corrected or changed != text
        path = self.folder / mistake.file
        path.write_text(changed)
        os.utime(path, ns=(time.time_ns(), time.time_ns()))
        self.app.current()
        self.wait()

    def wait(self):
        wait_until(lambda: not self.app.checks.are_running())

    @property
    def text(self):
        return "\n".join(self.lines)


@contextmanager
def session(folder, **sources):
    template = write_application(folder, TEMPLATE, {**SOURCES, **sources})
    with run(template) as found:
        yield found


@contextmanager
def run(template, **options):
    lines: list[str] = []

    def write(text: str) -> None:
        lines.extend(text.split("\n"))

    terminal = Terminal(write, Styles(False))
    with serve(template, listeners=[terminal], watch_interval_s=0, checks=True, **options) as app:
        found = Session(app, template.parent, lines)
        found.wait()
        yield found


def post(app, method, sent=None, **params):
    return rpc(app.url(), method, sent=sent, id=7, **params)


def assert_is_for_the_author(text, mistake):
    """The frames of the author in their order, then the message, and no other frame."""
    last = [line for line in text.split("\n") if not line.startswith("  ")]
    assert last[0].startswith(mistake.message), text
    at = [text.index(frame) for frame in mistake.frames]
    assert at == sorted(at)
    frames = re.findall(r'File "([^"]+)"', text)
    assert len(frames) == len(mistake.frames), text
    assert not any(os.path.isabs(path) for path in frames)
    assert "Traceback" not in text


@pytest.fixture(scope="module")
def without_mistakes(tmp_path_factory):
    """Return a run whose application each test leaves without a mistake."""
    with session(tmp_path_factory.mktemp("session")) as running:
        assert not running.app.problems()
        yield running


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_said_when_it_is_saved_and_to_every_caller_until_it_is_corrected(without_mistakes, kind):
    mistake, running = MISTAKES[kind], without_mistakes
    assert post(running.app, "tools/list").json()["result"]["tools"]
    running.save(mistake)
    [(name, problem)] = running.app.problems().items()
    assert name in ("F", "template.yaml")
    assert_is_for_the_author(problem, mistake)
    for line in problem.split("\n"):
        assert sum(line.strip() in shown for shown in running.lines) == 1, running.text
    running.lines.clear()
    for method in ("tools/list", "tools/call", "server/discover"):
        response = post(running.app, method, **({"name": "greet"} if method == "tools/call" else {}))
        error = {"code": -32603, "message": problem}
        assert (response.status, response.json()) == (200, {"jsonrpc": "2.0", "id": 7, "error": error})
    assert len(running.lines) == 3, running.text  # one for each request
    running.save(mistake, corrected=True)
    assert "he error is corrected" in running.text
    assert not running.app.problems()
    assert post(running.app, "tools/call", name="greet", arguments={}).json()["result"]["content"]


def test_a_mistake_at_the_start_is_said_before_a_request(tmp_path):
    mistake = MISTAKES["a parameter that no schema has"]
    with session(tmp_path, **{mistake.file: GOOD.replace(mistake.old, mistake.new)}) as running:
        assert mistake.message in running.text
        assert_is_for_the_author(running.app.problems()["F"], mistake)
        running.save(mistake, corrected=True)
        assert post(running.app, "tools/list").json()["result"]["tools"]


def test_a_setting_that_is_needed_later_is_named_to_the_caller(tmp_path):
    asks = GOOD.replace('return f"Hello', 'ctx.elicit("a", "?", bool); return f"Hello')
    with session(tmp_path, **{"f/app.py": asks}) as running:
        assert not running.app.problems()
        running.lines.clear()
        answer = post(running.app, "tools/call", meta=META, name="greet", arguments={})
        error = answer.json()["error"]
        assert error["code"] == -32603
        assert "SettingsError: MCP_STATE_KEY_ARN: is not set" in error["message"]
        assert "mcp_roundtrip/" not in error["message"]
        [line] = [line for line in running.lines if "tools/call" in line]
        assert "MCP_STATE_KEY_ARN: is not set" in line


def test_a_setting_that_calls_may_need_is_a_warning_and_the_function_runs(tmp_path):
    missing = ["MCP_STATE_KEY_ARN", "MCP_STATE_ENCRYPTION_KEY_ARN", "MCP_TASK_TABLE"]
    with session(tmp_path) as running:
        found = running.app.checks.findings()["F"].warnings
        assert sorted(text.partition(":")[0] for text in found) == sorted(missing)
        for text in found:
            assert sum(text in line for line in running.lines) == 1, running.text
        assert not running.app.problems()
        assert post(running.app, "tools/call", name="greet", arguments={}).json()["result"]["content"]
        source = GOOD.replace("ctx: Context, ", "")
        (tmp_path / "f/app.py").write_text(dedent(source))
        running.app.current()
        running.wait()
        assert running.app.checks.findings()["F"].warnings == ()


def test_a_tool_that_models_refuse_is_a_warning_and_the_function_runs(tmp_path):
    source = GOOD.replace("ctx: Context, name", "größe")
    with session(tmp_path, **{"f/app.py": source.replace("{name}", "{größe}")}) as running:
        [text] = running.app.checks.findings()["F"].warnings
        assert "greet: models refuse the name of its properties 'größe'" in text
        assert text in running.text
        answer = post(running.app, "tools/call", name="greet", arguments={"größe": "x"}).json()
        assert answer["result"]["isError"] is False


@pytest.mark.parametrize("support", ["optional", "required"])
def test_a_task_without_a_table_or_a_worker_is_a_problem(tmp_path, support):
    source = GOOD.replace("@server.tool", f"@server.tool(task={support!r})")
    with session(tmp_path, **{"f/app.py": source}) as running:
        lines = running.app.problems()["F"].splitlines()
        names = [line.split(": ")[1] for line in lines if line]
        assert names == ["MCP_TASK_TABLE", "MCP_TASK_WORKER", "MCP_TASK_QUEUE"]
        assert "calls of greet cannot become tasks" in running.text


def test_a_template_that_cannot_be_read_is_a_problem_until_it_is_corrected(tmp_path):
    with session(tmp_path) as running:
        template = tmp_path / "template.yaml"
        template.write_text("Resources: [")
        running.app.current()
        assert list(running.app.problems()) == ["template.yaml"]
        assert (
            post(running.app, "tools/list").json()["error"]["message"]
            == running.app.problems()["template.yaml"]
        )
        (tmp_path / "f/app.py").write_text(dedent(GOOD.replace("Hello", "Good morning")))
        running.app.current()
        template.write_text(dedent(TEMPLATE))
        running.lines.clear()
        running.app.current()
        running.wait()
        assert not running.app.problems()
        result = post(running.app, "tools/call", name="greet", arguments={}).json()["result"]
        assert result["content"][0]["text"] == "Good morning you"  # saved while the template was invalid


def test_requests_that_are_no_json_rpc_get_the_problem_as_a_message(tmp_path):
    with session(tmp_path, **{"f/app.py": "import nowhere\n"}) as running:
        for path in ("/.well-known/oauth-protected-resource", "/mcp"):
            response = http(running.app.url(path))
            assert response.status == 500
            assert "No module named 'nowhere'" in response.json()["message"]


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "cf-ray"])
def test_callers_behind_a_proxy_are_not_told(tmp_path, header):
    with session(tmp_path, **{"f/app.py": "import nowhere\n"}) as running:
        response = post(running.app, "tools/list", {header: "203.0.113.7"})
        assert (response.status, response.json()) == (500, {"message": "Internal Server Error"})


def test_a_front_door_passes_the_problem_of_an_owner_on_and_says_it_once(tmp_path):
    tool = GOOD.replace("    import beside\n", "")
    sources = {"functions/front_door/app.py": FRONT_DOOR, "functions/greet/app.py": tool}
    sources["functions/part/app.py"] = tool.replace("greet", "part")
    template = write_application(tmp_path, front_door_template(greet="Greet.Arn", part="Part"), sources)
    assert write_catalog(["--functions", str(tmp_path / "functions")]) == 0
    with run(template) as running:
        source = tmp_path / "functions/greet/app.py"
        good = source.read_text()
        source.write_text(good.replace("import os", "import nowhere"))
        running.lines.clear()
        assert len(post(running.app, "tools/list").json()["result"]["tools"]) == 2  # of the previous catalog
        running.wait()
        error = post(running.app, "tools/call", name="greet", arguments={}).json()["error"]
        assert error["code"] == -32603
        assert 'File "functions/greet/app.py", line 2, in <module>' in error["message"]
        assert error["message"].endswith("ModuleNotFoundError: No module named 'nowhere'")
        assert post(running.app, "tools/call", name="part", arguments={}).json()["result"]["content"]
        shown = [line for line in running.lines if "ModuleNotFoundError" in line]
        assert len([line for line in shown if "tools/call" not in line]) == 1, running.text
