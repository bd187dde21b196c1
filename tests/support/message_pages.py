"""The page of error messages: those that clients and operators see, and the table of authors' mistakes."""

import re
from collections.abc import Iterator

from mcp_roundtrip import DefinitionError
from messages.cases import Case, all_cases
from support.project import ROOT

PAGE = ROOT / "docs/reference/messages.md"

SHOWN = (ROOT / "tests/messages/shown.md").read_text("utf-8")
"""The first part of the page."""

OF_AWS = "From API Gateway and Lambda"
"""The section of the first part with messages that are not this package's."""

AUTHORS = """## Mistakes in the code or in settings

A `DefinitionError` says what to write instead: when the module is imported, when
[its definitions are checked](api/check-definitions.md), or when a question is asked. A function omits
the tool and logs `definition_failed`.

The sections below have the beginnings of other messages, with `…` for names, types and values."""

SUBJECT = re.compile(r"^(@server\.\w+|\w+|[a-z]+ \w+|[a-z ]+ '[^']*'): ")
"""The name of what has the mistake, at the beginning of a message."""

DETAIL = re.compile(r"(?:; |, at \w+[\[.:]|, so | \((?!\.)|: result\b|: it becomes ).*")
"""The remedy, the place in a value, or the cause, at the end of a message."""

VALUE = re.compile(r"(?<!\w)'\w{40,}'?|(?<!\w)'[^']*'|(?<![\w-])\d+\b|\barn:[\w:/-]+")
NAME = re.compile(r"^(?:\w+|a completion)(?= returned)|(?<=calls )\S+(?=, which)|^\w+\.csv")
TYPE = re.compile(
    r"(?<!\ba )(?<!… )\b(?:list|list_iterator|Iterable|dict|int|str|bytes|datetime|generator|None"
    r"|Connection|Priced|ResourceLink)\b(?!\.)(?:\[[\w\[\], ]*\])?(?: \| \w+)*"
)
"""What differs between two messages of one kind: values, names of functions and files, types."""

SECTIONS = {
    "servers": (
        "Content and results",
        "During the call: the log has `tool_raised` (`prompt_raised`, `resource_raised`) with the\n"
        "traceback, and the client gets a correlation id.",
    ),
    "contexts": (
        "Calls of the context: questions, steps, tasks",
        "During the call, as `UsageError`, `InvalidKey`, `DuplicateKey` or `Drift`.",
    ),
    "awaits": (
        "Calls without await",
        "`NotAwaited`, during the call. See [await every call](../guides/writing-tools.md#await-every-call).",
    ),
    "hooks": (
        "Hooks",
        "When the module is imported, or during the call. See [`@server.around`](api/around.md).",
    ),
    "settings": (
        "Settings",
        "The log has `misconfigured` or `setting_missing`, and the client gets -32603.\n"
        "[Settings](settings.md) has all variables.",
    ),
}
"""Module of tests/messages -> heading, and where its messages are seen. `functions` has only definitions."""


def render() -> str:
    parts = [SHOWN.rstrip("\n"), AUTHORS]
    for module, (title, where) in SECTIONS.items():
        problems = {problem for case in all_cases() if _is_of(case, module) for problem in _problems(case)}
        parts += [f"## {title}", where, "\n".join(["```text", *sorted(problems), "```"])]
    return "\n\n".join(parts) + "\n"


def _is_of(case: Case, module: str) -> bool:
    return case.name.startswith(f"{module}:") and case.kind is not DefinitionError


def _problems(case: Case) -> Iterator[str]:
    """Yield each problem that a message names, without its subject and details."""
    for line in case.message.splitlines():
        problem = DETAIL.sub("", line)
        while not problem.startswith("MCP_") and SUBJECT.match(problem):
            problem = SUBJECT.sub("", problem)
        if " must " not in problem:
            yield TYPE.sub("…", NAME.sub("…", VALUE.sub("…", problem)))


def shown_messages() -> list[str]:
    """Return the messages of this package in the first part of the page."""
    ours, _, rest = SHOWN.partition(f"## {OF_AWS}\n")
    return re.findall(r"^\| `(.+?)` \|", ours + rest.partition("\n## ")[2], re.MULTILINE)


def sources() -> str:
    """Return the code of the package and its tools. Literals are joined; a value in one is an ellipsis."""
    folders = (ROOT / "layers", ROOT / "development")
    code = "\n".join(path.read_text("utf-8") for folder in folders for path in sorted(folder.rglob("*.py")))
    return re.sub(r"\{[^{}\n\"]*\}", "…", re.sub(r'"\s*\n\s*f?"', "", code))
