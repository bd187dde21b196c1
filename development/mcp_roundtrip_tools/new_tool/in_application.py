"""Plan a new tool of an application with one function, as `mcp-roundtrip new` writes it.

The tool gets a module beside the function's module, which registers it, and a test. The template does not
change, because the tool runs in the same function.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from string import Template as Text
from tempfile import TemporaryDirectory

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_testing.loading import load_server
from mcp_roundtrip_tools.new_tool.files import FUNCTION, HEAD, MODELS, RETURN, TEXT
from mcp_roundtrip_tools.run.only_function import module_of_only_function
from mcp_roundtrip_tools.template.model import TemplateError

MODULE = f"{HEAD}from mcp_roundtrip import Context\n\n\n{MODELS}{FUNCTION}{RETURN}"

TEST = """\
from pathlib import Path

import pytest

from mcp_roundtrip_testing import DECLINE, Player

APP = Path(__file__).parents[1] / "$app"


@pytest.mark.parametrize(("unit", "length"), [("words", 4), ("characters", 21)])
def test_the_user_chooses_the_unit(unit: str, length: int) -> None:
    asked = Player(APP, always_replay=True).call("$name", {"text": "$text"})
    assert asked.asked.keys() == {"unit"}
    assert asked.answer(unit=unit).structured == {"length": length, "unit": unit}


def test_a_declined_question_is_a_tool_error() -> None:
    assert Player(APP).call("$name", {"text": "$text"}, unit=DECLINE).failed
"""


class NotPlannable(McpRoundtripError):
    """The tool cannot be added; the message says why."""


def plan_in_application(project: Path, name: str) -> dict[Path, str]:
    """Return the files that a tool adds or changes, with their text. Raises NotPlannable."""
    try:
        app = module_of_only_function(project)
    except TemplateError as error:
        raise NotPlannable(str(error)) from None
    module, test = app.with_name(f"{name}.py"), project / "tests" / f"test_{name}.py"
    for path in (module, test):
        if path.exists():
            raise NotPlannable(f"{name!r}: {path} exists already")
    values = {
        "name": name,
        "text": TEXT,
        "after": "after asking which",
        "app": app.relative_to(project).as_posix(),
    }
    files = {
        module: Text(MODULE).substitute(values),
        test: Text(TEST).substitute(values),
        app: _register(app, name),
    }
    _try(app, name, files)
    return files


def _register(app: Path, name: str) -> str:
    """Return the text of the function's module with the import and the registration of the tool."""
    text = app.read_text("utf-8")
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    handlers = [(node.lineno - 1, server) for node in tree.body if (server := _server_of(node))]
    if not imports or not handlers:
        raise NotPlannable(
            f"{app} has no line `handler = server.lambda_handler`, before which it is registered"
        )
    lines, end_of_imports = text.splitlines(), imports[-1].end_lineno
    [(line_of_handler, server), *_] = handlers
    between = "\n".join(lines[end_of_imports:line_of_handler]).rstrip()
    follows_import = _is_beside(app, imports[-1])
    follows_registration = between.rpartition("\n")[2].startswith(f"{server}.tool(")
    parts = [
        *lines[:end_of_imports],
        *([] if follows_import else [""]),
        f"from {name} import {name}",
        between,
        *([] if follows_registration else ["", ""]),
        f"{server}.tool({name})",
        "",
        *lines[line_of_handler:],
    ]
    return "\n".join(parts) + "\n"


def _server_of(node: ast.stmt) -> str | None:
    """Return the name of the server in `handler = server.lambda_handler`."""
    match node:
        case ast.Assign(value=ast.Attribute(value=ast.Name(server), attr="lambda_handler")):
            return server
    return None


def _is_beside(app: Path, node: ast.stmt) -> bool:
    """Return whether a statement imports a module in the same folder."""
    return isinstance(node, ast.ImportFrom) and app.with_name(f"{node.module}.py").exists()


def _try(app: Path, name: str, files: dict[Path, str]) -> None:
    """Load the changed module in a copy of its folder. Raises NotPlannable."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / app.parent.name
        shutil.copytree(app.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for path, text in files.items():
            if path.parent == app.parent:
                (copy / path.name).write_text(text, encoding="utf-8")
        try:
            tools = load_server(copy / app.name).tools
        except McpRoundtripError as error:
            raise NotPlannable(f"{app}: {error}") from None
        except Exception as error:  # importing a module may raise anything
            raise NotPlannable(f"{app} cannot be imported: {type(error).__name__}: {error}") from error
    if name not in tools:
        raise NotPlannable(f"{app} does not register the tool")
