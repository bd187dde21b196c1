import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_overloads

import pytest

import mcp_roundtrip
import mcp_roundtrip_testing as testing
from mcp_roundtrip import AsyncContext, Context, s3
from mcp_roundtrip.server.registry import Registry
from support.documents import FENCE, blocks_of, run_blocks

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference/api"
INDEX = REFERENCE / "index.md"
PAGES = sorted(page for page in REFERENCE.glob("*.md") if page != INDEX)
LINKED = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

MODULES = (mcp_roundtrip, s3, testing)
"""The modules that the pages document."""

LINK = re.compile(r"\]\(([^)\s]+)\)")

every_page = pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])


def shown(page: Path) -> list[ast.ClassDef]:
    [signatures] = blocks_of(page.read_text("utf-8"), "pyi")
    return [node for node in ast.parse(signatures).body if isinstance(node, ast.ClassDef)]


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(shown_class: ast.ClassDef) -> Iterator[Function]:
    return (node for node in shown_class.body if isinstance(node, Function))


def attributes(shown_class: ast.ClassDef) -> set[str]:
    return {ast.unparse(node.target) for node in shown_class.body if isinstance(node, ast.AnnAssign)}


def members(shown_class: ast.ClassDef) -> set[str]:
    return {function.name for function in functions(shown_class)} | attributes(shown_class)


def parameters(function: Function) -> str:
    """Return names, kinds and defaults of parameters as in `inspect.signature`."""
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg):
            node.annotation = None
    return f"({ast.unparse(function.args)})"


def fields(shown_class: ast.ClassDef) -> str:
    shown_fields = [
        ast.unparse(node.target) + (f"={ast.unparse(node.value)}" if node.value else "")
        for node in shown_class.body
        if isinstance(node, ast.AnnAssign)
    ]
    return f"({', '.join(shown_fields)})"


def in_code(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    spelled = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return spelled.replace("<factory>", "{}").replace("<class 'Exception'>", "Exception")


def public(owner: type) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


@every_page
def test_the_documented_signatures_match_the_code(page):
    for shown_class in shown(page):
        owner = next(
            getattr(module, shown_class.name) for module in MODULES if hasattr(module, shown_class.name)
        )
        if members(shown_class) <= _fields(owner):
            assert fields(shown_class) == in_code(owner)
        assert attributes(shown_class) <= _properties(owner) | _fields(owner)
        for function in functions(shown_class):
            _check_method(owner, function)


def _properties(owner: type) -> set[str]:
    return {name for name in public(owner) if isinstance(inspect.getattr_static(owner, name), property)}


def _fields(owner: type) -> set[str]:
    return set(inspect.signature(owner).parameters)


def _check_method(owner: type, function: Function) -> None:
    member = inspect.getattr_static(owner, function.name)
    spellings = {in_code(member), *map(in_code, get_overloads(member))}
    assert parameters(function) in spellings
    assert _is_awaited(member) is isinstance(function, ast.AsyncFunctionDef)


def _is_awaited(member: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(member))


@pytest.mark.parametrize("name", sorted(public(Context)))
def test_async_methods_have_the_same_parameters(name):
    ours, theirs = (inspect.getattr_static(owner, name) for owner in (Context, AsyncContext))
    assert isinstance(ours, property) is isinstance(theirs, property)
    if not isinstance(ours, property):
        assert in_code(ours) == in_code(theirs)


def test_the_guide_names_the_methods_that_are_not_awaited():
    plain = {
        name
        for name in public(AsyncContext)
        if inspect.isfunction(member := inspect.getattr_static(AsyncContext, name))
        and not _is_awaited(member)
    }
    assert plain == {"branch", "supports", "idempotency_key", "reference"}
    guide = " ".join((ROOT / "docs/guides/writing-tools.md").read_text("utf-8").split())
    assert "`branch`, `supports`, `idempotency_key` and `reference`" in guide


def test_every_decorator_and_every_context_method_has_a_page():
    found: dict[str, set[str]] = {}
    for page in PAGES:
        for shown_class in shown(page):
            found[shown_class.name] = found.get(shown_class.name, set()) | members(shown_class)
    decorators = {name for name, value in vars(Registry).items() if callable(value) and name[0] != "_"}
    assert found["Server"] >= decorators
    assert found["Context"] == public(Context)
    assert found["AsyncContext"] == public(AsyncContext) - public(Context)


def test_the_page_about_testing_names_all_public_names():
    page = (REFERENCE / "testing.md").read_text("utf-8")
    assert {name for name in testing.__all__ if not re.search(rf"\b{name}\b", page)} == set()
    options = {each.name for each in dataclasses.fields(testing.Player) if each.init and each.name[0] != "_"}
    assert {name for name in options if f"`{name}`" not in page} == {"source"}
    shown_members = {each.name: members(each) for each in shown(REFERENCE / "testing.md")}
    inner = {"followed", "fail", "describe_state"} | {"send", "send_round"}
    for name, named in shown_members.items():
        owner = getattr(testing, name)
        own = public(owner) - {each.name for each in dataclasses.fields(owner)} - inner
        shared = public(testing.Round) if name == "PlayedTask" else set()
        assert own - named - shared == {"detailed"} & own


@every_page
def test_the_example_runs(page):
    server, test = blocks_of(page.read_text("utf-8"), "python")
    assert "Server(" in server
    assert "Player(" in test
    assert "assert " in test
    run_blocks(server, test)


def test_the_index_links_to_every_page():
    linked = {link for link in LINK.findall(INDEX.read_text("utf-8")) if not link.startswith("..")}
    assert linked == {page.name for page in PAGES}


def is_broken(link: str, page: Path) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or (anchor != "" and anchor not in anchors(target))


def test_relative_links_point_to_existing_files_and_headings():
    links = [(link, page) for page in LINKED for link in LINK.findall(FENCE.sub("", page.read_text("utf-8")))]
    relative = [(link, page) for link, page in links if not re.match(r"[a-z]+:", link)]
    broken = [f"{page.relative_to(ROOT)}: {link}" for link, page in relative if is_broken(link, page)]
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub generates for the headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
