"""The files of a change: its names, what is written, and what a new tool consists of."""

import argparse
import builtins
import json
import keyword
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path, PurePosixPath
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.catalog.catalog import FUNCTIONS, catalog_files, changed, load_function_servers
from mcp_roundtrip_tools.events import PATH, call, post
from mcp_roundtrip_tools.growth.entries import TEMPLATE, TemplateText, find_conflict
from mcp_roundtrip_tools.template.model import WORKER, TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load

MAX_NAME = 30
"""A function's name has at most 64 characters: the stack's name, `_`, this name, and `_worker`."""

RESERVED_ENDS = (WORKER, "_tasks")
"""What the names of a function's worker and queue end with."""

RESERVED = frozenset({"server", "handler", "worker", "app", "live"})
"""Names that a function's module uses, and the folder of the live events."""

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class GrowthError(McpRoundtripError):
    """The tool or function cannot be added; the message says why. No file was changed."""


def check_name(name: str, command: str) -> None:
    """Refuse a name that no tool can have. `command` is that of the Makefile. Raises GrowthError."""
    if not name:
        raise GrowthError(f"a name is missing: make {command} NAME=find_orders")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise GrowthError(
            f"{name!r} must be at most {MAX_NAME} lower-case letters, digits and single underscores between "
            "them, and begin with a letter"
        )
    if name.endswith(RESERVED_ENDS):
        raise GrowthError(f"{name!r} ends like the name of a worker or of its queue")
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in RESERVED:
        raise GrowthError(f"{name!r} is reserved in Python or in this project")


def check_module_name(name: str) -> None:
    """Refuse the name of a module that functions may import: another would hide it. Raises GrowthError."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    if name in sys.stdlib_module_names or PathFinder.find_spec(name, installed):
        raise GrowthError(f"{name!r} is the name of an installed module, which a tool's module would hide")


def check_function_name(project: Path, document: Mapping[str, Any], name: str) -> None:
    """Refuse the name of a function whose folders or resources exist. Raises GrowthError."""
    for path in (project / folder / name for folder in ("functions", "events")):
        if path.exists():
            raise GrowthError(f"{name!r}: {path} exists already")
    if found := find_conflict(document, name):
        raise GrowthError(f"{name!r}: template.yaml uses that name in {found!r}")


def write(files: Mapping[Path, str]) -> None:
    """Write all files, and the folders in which they are. A file keeps its line endings."""
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        has_crlf = path.exists() and b"\r\n" in path.read_bytes()
        path.write_text(text, encoding="utf-8", newline="\r\n" if has_crlf else "\n")


TEXT = "Ask before you count."

RESULT = "    return Length(length=count(text, unit), unit=unit)\n"
RESULT_OF_TASK = """\
    ctx.run_as_task(ttl_ms=TTL_MS)
    length: int = ctx.step("count", count, text, unit)
    return Length(length=length, unit=unit)
"""


def render_module(name: str, *, tasks: bool) -> str:
    """Return a module with the tool's function, which the function's module registers."""
    ttl = "\n\nTTL_MS = 3_600_000" if tasks else ""
    head = f"from mcp_roundtrip import Context{ttl}\n"
    return render("module.txt", name, tasks=tasks, head=head, decorator="", handlers="")


def render_app(name: str, *, tasks: bool) -> str:
    """Return the module of a function that has only this tool."""
    head = f'from mcp_roundtrip import Context, Server\n\nserver = Server("{name}")\n'
    handlers = "\n\nhandler = server.lambda_handler\n"
    if tasks:
        head, handlers = f"{head}\nTTL_MS = 3_600_000\n", f"{handlers}worker = server.worker_handler\n"
    task = 'task="optional", ' if tasks else ""
    decorator = f'@server.tool({task}annotations={{"readOnlyHint": True}})\n'
    return render("module.txt", name, tasks=tasks, head=head, decorator=decorator, handlers=handlers)


def render_test(name: str, app: PurePosixPath, levels: int, *, tasks: bool) -> str:
    """Return the test of a tool of the module `app`, whose path starts `levels` folders above the test."""
    imports = "DECLINE, WITH_TASKS, Player, crashes" if tasks else "DECLINE, Player"
    files = ("test.txt", "test_of_task.txt") if tasks else ("test.txt",)
    values = {"app": str(app), "levels": str(levels), "imports": imports}
    return "".join(render(file, name, tasks=tasks, **values) for file in files)


def render_events(name: str) -> dict[str, str]:
    """Return the sample events of a tool by file."""
    events = {
        f"{name}.json": call(name, {"text": TEXT}),
        f"{name}_bad_arguments.json": call(name, {"text": 1}),
    }
    return {
        file: json.dumps(post(PATH, each), indent=2, ensure_ascii=False) + "\n"
        for file, each in events.items()
    }


def render(file: str, name: str = "", *, tasks: bool = False, **values: str) -> str:
    """Return the text of a file in tool/ with these values."""
    after = "in a task, after asking which" if tasks else "after asking which"
    result = RESULT_OF_TASK if tasks else RESULT
    text = Path(__file__).with_name("tool").joinpath(file).read_text("utf-8")
    return Template(text).substitute(name=name, text=TEXT, after=after, result=result, **values)


Files = dict[Path, str]
"""The text of the files that are added or changed, by path."""


def read_template(project: Path) -> tuple[dict[str, Any], TemplateText]:
    """Return the template as data and as text. Raises TemplateError."""
    document = load(project / TEMPLATE)
    return document, TemplateText((project / TEMPLATE).read_text("utf-8"))


def render_test_and_events(project: Path, name: str, app: Path, *, tasks: bool) -> Files:
    """Return the test of a tool in the module `app`, and its sample events. Raises GrowthError."""
    tests = project / "tests"
    folder = tests / "functions" if (tests / "functions").is_dir() else tests
    test, levels = folder / f"test_{name}.py", len(folder.relative_to(project).parts)
    module = PurePosixPath(app.relative_to(project).as_posix())
    files = {test: render_test(name, module, levels, tasks=tasks)}
    for file, text in render_events(name).items():
        files[project / "events" / app.parent.name / file] = text
    return files


@contextmanager
def changed_copy(folder: Path, changed: Mapping[Path, str]) -> Iterator[Path]:
    """Yield a copy of a folder with these changes of its files."""
    with TemporaryDirectory() as parent:
        copy = Path(parent) / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        own = {path: text for path, text in changed.items() if path.is_relative_to(folder)}
        write({copy / path.relative_to(folder): text for path, text in own.items()})
        yield copy


def changed_catalog(project: Path, added: Mapping[Path, str]) -> Files:
    """Return what these files change in the catalog, and what follows from it. Raises GrowthError."""
    functions = project / FUNCTIONS
    with changed_copy(functions, added) as copy:
        try:
            return changed(catalog_files(functions, load_function_servers(copy)))
        except McpRoundtripError as error:
            raise GrowthError(str(error).replace(str(copy), str(functions))) from None


def refuse_existing(files: Mapping[Path, str]) -> None:
    """Refuse to replace files. Raises GrowthError."""
    for path in files:
        if path.exists():
            raise GrowthError(f"{path} exists already")


def run(plan: Callable[[], Files], closing: Callable[[Files], str]) -> int:
    """Plan a change and write it; `closing` returns what the user does next. Raises GrowthError, OSError."""
    try:
        files = plan()
    except TemplateError as error:
        where = "" if TEMPLATE.name in str(error) else f"{TEMPLATE}: "  # errors of reading it name it
        raise GrowthError(f"{where}{error}") from None
    write(files)
    print("\n".join(map(str, files)) or "All files are up to date.")
    print(f"\n{closing(files)}")
    return 0


def edit_first(files: Files) -> str:
    """Return what the user does with the files of a new tool."""
    return f"Now edit {next(iter(files))}. `make run` serves the tool."


def parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that both commands have."""
    made = argparse.ArgumentParser(
        prog=f"mcp-roundtrip {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("name", help="the name of the tool, such as find_orders")
    made.add_argument("--tasks", action="store_true", help="a tool that becomes a task, which a worker runs")
    made.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    return made
