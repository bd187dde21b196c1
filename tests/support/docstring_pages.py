"""Pages of the reference that are made from docstrings: servers, types and exceptions.

A docstring says the same in an editor and on a page. The pages are in Git, so that GitHub shows them.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import mcp_roundtrip


@dataclass(frozen=True)
class GeneratedPage:
    """A page: its title, its first paragraph, and the public names under each heading."""

    title: str
    introduction: str
    sections: Mapping[str, Sequence[str]]


PAGES = {
    "servers.md": GeneratedPage(
        "Servers",
        "A function has one server. The [decorators](api/index.md) add features to it.",
        {"Servers": ["Server", "FrontDoor"]},
    ),
    "types.md": GeneratedPage(
        "Content and annotations",
        "Classes that belong to one decorator or call are on [its page](api/index.md).",
        {
            "Content blocks": ["Text", "Image", "Audio", "ResourceLink", "EmbeddedResource"],
            "Annotations": ["one_of", "McpHeader"],
        },
    ),
    "exceptions.md": GeneratedPage(
        "Exceptions",
        "Every exception of the package is a `McpRoundtripError`, except `Suspend`.",
        {
            "Exceptions that you raise": ["ToolError", "ProtocolError", "ResourceNotFound"],
            "Exceptions that you can catch": [
                "ElicitationDeclined",
                "ElicitationCancelled",
                "StepFailed",
                "StepInterrupted",
            ],
            "Exceptions that name a mistake in the code": [
                "DefinitionError",
                "DefinitionWarning",
                "UsageError",
                "DuplicateKey",
                "InvalidKey",
                "NotAwaited",
            ],
            "Exceptions that end a call": [
                "Drift",
                "MissingClientCapability",
                "Suspend",
                "McpRoundtripError",
            ],
        },
    ),
}
"""File in docs/reference -> page."""


WITHOUT_SIGNATURE = {
    "Exceptions that you can catch",
    "Exceptions that name a mistake in the code",
    "Exceptions that end a call",
}
"""Sections with exceptions that only the package raises."""


def render(page: GeneratedPage) -> str:
    parts = [f"# {page.title}", "<!-- make reference -->", page.introduction]
    for heading, names in page.sections.items():
        parts.append(f"## {heading}")
        for name in names:
            parts += _exception(name) if heading in WITHOUT_SIGNATURE else [f"### `{name}`", *_entry(name)]
    return "\n\n".join(parts) + "\n"


def _exception(name: str) -> list[str]:
    found = getattr(mcp_roundtrip, name)
    return [f"### `{name}` (`{_public_base(found)}`)", *inspect.cleandoc(found.__doc__).split("\n\n")[:1]]


def _entry(name: str) -> Iterator[str]:
    found = getattr(mcp_roundtrip, name)
    yield f"```pyi\n{_signature(name, found)}\n```"
    yield from map(_markdown, inspect.cleandoc(found.__doc__).split("\n\n"))


def _public_base(found: type | object) -> str:
    """Return the name of the next base that authors can name."""
    parents = [parent.__name__ for parent in found.__mro__[1:]] if isinstance(found, type) else []
    named = {*mcp_roundtrip.__all__, "UserWarning", "Exception", "BaseException"}
    return next((name for name in parents if name in named), "")


def _signature(name: str, found: type | object) -> str:
    """Return the parameters with names and defaults; for a class, also its base."""
    base = _public_base(found)
    bases = f"({base})" if base else ""
    kind = "class" if isinstance(found, type) else "def"
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]  # callable, or the ValueError below
    except ValueError:  # an exception without parameters of its own
        return f"{kind} {name}{bases}: ..."
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "ports"  # for tests
    ]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    shown = shown.replace("<class 'Exception'>", "Exception").replace("'", '"')
    if kind == "def":
        return _wrap(f"def {name}{shown}: ...")
    inside = _wrap(f"    def __init__{shown.replace('(', '(self, ', 1)}: ...")
    return f"class {name}{bases}:\n{inside}"


def _wrap(line: str) -> str:
    """Put each parameter of a long line on a line of its own."""
    if len(line) <= 110:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    head, _, rest = line.partition("(")
    inside = re.sub(r", (?=\*|\w+(?:=|,|\)))", f",\n{indent}    ", rest.removesuffix("): ..."))
    return f"{head}(\n{indent}    {inside},\n{indent}): ..."


def _markdown(paragraph: str) -> str:
    """Return a paragraph of a docstring. A paragraph of "`name`: text" becomes a list."""
    if not re.match(r"`\w+`(, `\w+`)*: ", paragraph):
        return paragraph
    items = re.split(r"\n(?=`)", paragraph)
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items if not item.startswith("`ports`"))
