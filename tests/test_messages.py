import ast
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcp_roundtrip
from mcp_roundtrip import Drift, McpRoundtripError
from messages.cases import Case, all_cases

PACKAGE = Path(mcp_roundtrip.__file__).parent
CASES = all_cases()
MESSAGES = Path(__file__).with_name("messages") / "messages.json"
"""The message of each mistake, by its name."""

KINDS = {
    *("DefinitionError", "UsageError", "InvalidKey", "DuplicateKey", "NotAwaited", "Drift"),
    "SettingsError",
}
"""The exceptions that authors see."""

REMEDY = re.compile(
    r"[;:] (write|use|pass|return|remove|register|import|define|give|keep|call|put|make|run|set|add|check"
    r"|did you mean|percent-encode|split|encode|copy|raise|take|await) |must be |must hold "
)
"""Matches a last clause with the remedy, or an only clause with the required value."""


def test_each_mistake_raises_an_error_of_its_kind_with_its_message():
    answers = {case.name: case.raised for case in CASES}
    assert len(answers) == len(CASES), "two mistakes have one name"
    assert {name: kind for name, (kind, _) in answers.items()} == {case.name: case.kind for case in CASES}
    messages = {name: message for name, (_, message) in sorted(answers.items())}
    if os.environ.get("WRITE_TABLES"):
        MESSAGES.write_text(json.dumps(messages, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert messages == json.loads(MESSAGES.read_text("utf-8")), "run `make reference`"


def has_remedy(case: Case) -> bool:
    lines = (
        case.message.splitlines() if case.kind is not Drift else []
    )  # the remedy is in a note of the exception
    return all(REMEDY.search(line) or line.startswith("result") for line in lines)


def test_a_message_ends_with_the_remedy():
    assert [case.name for case in CASES if not has_remedy(case)] == []
    informal = re.compile(r"\b(nobody|whoever|anybody|alone|told)\b")
    assert [case.name for case in CASES if informal.search(case.message)] == []


Site = tuple[str, range]


def _makers(tree: ast.AST) -> Iterator[str]:
    """Return the functions that return such an error."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) in KINDS:
            yield node.name


def sites() -> Iterator[Site]:
    """A place where the package raises such an error: module and lines."""
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    made = {path: set(_makers(tree)) for path, tree in trees.items()}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = vars(node.func)
                name = called.get("attr", called.get("id"))
                if name in KINDS or called.get("id") in made[path] or name == "usage_error":
                    yield str(path), range(node.lineno, (node.end_lineno or node.lineno) + 1)


def test_the_table_covers_every_place_that_raises_such_an_error(monkeypatch: pytest.MonkeyPatch):
    passed: set[tuple[str, int]] = set()
    plain = McpRoundtripError.__init__

    def recording(self: McpRoundtripError, *given: object) -> None:
        frame = sys._getframe(1)
        while frame is not None:  # type: ignore[redundant-expr]
            passed.add((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back  # type: ignore[assignment]
        plain(self, *given)

    monkeypatch.setattr(McpRoundtripError, "__init__", recording)
    for case in CASES:
        with pytest.raises(case.kind):
            case.make()
    missing = {
        f"{Path(path).relative_to(PACKAGE)}:{lines[0]}"
        for path, lines in sites()
        if not any((path, line) in passed for line in lines)
    }
    assert sorted(missing) == [], "put a case into tests/messages for each"
