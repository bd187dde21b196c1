"""The mistakes in the definitions of features, for tests, the catalog and `make run`, never for a call.

MCP allows some names and schemas that the APIs of models refuse. Each request has the definitions of all
tools and is refused for one of them, so one tool ends the sessions of everybody who connects its server.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from inspect import unwrap
from typing import Any, Final

from mcp_roundtrip.errors import DefinitionError, DefinitionWarning
from mcp_roundtrip.schema.json_schema_validator import CompiledSchema
from mcp_roundtrip.schema.subschemas import subschemas
from mcp_roundtrip.server.request_types import Feature
from mcp_roundtrip.server.tools import Tool


def check_definitions(features: Sequence[Feature]) -> None:
    """Raise one DefinitionError for all mistakes, or warn (DefinitionWarning) at the lines of functions."""
    problems = dict[str, None]()
    for feature in features:
        try:
            _build_definition(feature)
        except DefinitionError as error:
            problems[str(error)] = None
    if problems:
        raise DefinitionError("\n".join(problems))
    for tool in features:
        if isinstance(tool, Tool):
            code = getattr(unwrap(tool.function), "__code__", None)
            place = ("<unknown>", 0) if code is None else (code.co_filename, code.co_firstlineno)
            for problem in exceeded_limits(tool.name, tool.parameters.json_schema()):
                warnings.warn_explicit(f"{tool.name}: {problem}", DefinitionWarning, *place)


def _build_definition(feature: Feature) -> None:
    """Build a definition, and compile its schemas. Raises DefinitionError."""
    feature.parameters.json_schema()  # the definition of a resource has none
    definition = feature.definition()
    for member in filter(definition.__contains__, ("inputSchema", "outputSchema")):
        CompiledSchema.compile(definition[member], f"{feature.name}: {member}")


MAX_TOOL_NAME: Final = 40
"""Characters of a tool's name. Models accept 64. Claude Code and Codex call a tool `mcp__<server>__<tool>`:
a server's name may have 17 characters. The limit is enough for VS Code, whose `mcp_<server>_` has at most 18
characters, and for Cursor, which leaves out tools that have more than 60 together with their server."""

_PROPERTY: Final = r"[a-zA-Z0-9_.-]{1,64}"
"""Anthropic's API: "Property keys should match pattern"."""

_TOP_LEVEL: Final = ("anyOf", "oneOf", "allOf", "enum", "not")
"""Anthropic's API refuses the first three, OpenAI's all of them: "schema must […] not have" them."""

MAX_NAMES: Final = 5
"""Properties that a message names."""


def exceeded_limits(name: str, input_schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what models refuse in a tool's name and its `inputSchema`, and what to write instead."""
    if len(name) > MAX_TOOL_NAME:
        yield (
            f"its name has {len(name)} characters; use at most {MAX_TOOL_NAME}, because clients put the "
            "server's name before it, and models accept 64 together"
        )
    objects = [node["properties"] for node in subschemas(input_schema) if "properties" in node]
    keys = dict.fromkeys(key for each in objects if isinstance(each, Mapping) for key in each)
    refused = [key for key in keys if not re.fullmatch(_PROPERTY, key)]
    if refused:
        more = f" and {len(refused) - MAX_NAMES} more" if len(refused) > MAX_NAMES else ""
        names = ", ".join(f"{key!r:.80}" for key in refused[:MAX_NAMES])
        yield (
            f"models refuse the name of its properties {names}{more}; use 1 to 64 of the characters A-Z a-z "
            "0-9 _ - ."
        )
    for keyword in _TOP_LEVEL:
        if keyword in input_schema:
            yield (
                f"models refuse {keyword} at the top level of its inputSchema; move it into a property, or "
                "check the arguments in the function"
            )
