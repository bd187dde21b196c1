"""The mistakes in the definitions of features, for tests, the catalog and `make run`, never for a call."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Final

from mcp_roundtrip.errors import DefinitionError, DefinitionWarning
from mcp_roundtrip.schema.model_limits import exceeded_limits
from mcp_roundtrip.schema.schema_validator import SchemaValidator
from mcp_roundtrip.server.tools import Tool

if TYPE_CHECKING:
    from mcp_roundtrip.server.feature import Feature

_SCHEMAS: Final = ("inputSchema", "outputSchema")


def check_definitions(features: Sequence[Feature]) -> None:
    """Raise one DefinitionError for all mistakes, or warn (DefinitionWarning) at the lines of functions."""
    problems = dict.fromkeys(str(error) for _, error in definition_errors(features))
    if problems:
        raise DefinitionError("\n".join(problems))
    for tool, problem in definition_warnings(features):
        code = getattr(unwrap(tool.function), "__code__", None)
        place = ("<unknown>", 0) if code is None else (code.co_filename, code.co_firstlineno)
        warnings.warn_explicit(problem, DefinitionWarning, *place)


def definition_errors(features: Sequence[Feature]) -> Iterator[tuple[Feature, DefinitionError]]:
    """Yield the features whose definition cannot be built, each with the mistake."""
    for feature in features:
        try:
            feature.parameters.check()
            definition = feature.definition()
            for member in filter(definition.__contains__, _SCHEMAS):
                SchemaValidator.compile(definition[member], f"{feature.name}: {member}")
        except DefinitionError as error:
            yield feature, error


def definition_warnings(features: Sequence[Feature]) -> Iterator[tuple[Tool, str]]:
    """Yield the tools that models refuse, each with the reason, without those of `definition_errors`."""
    for tool in features:
        if not isinstance(tool, Tool):
            continue
        try:
            schema = tool.parameters.json_schema()
        except DefinitionError:
            continue
        for problem in exceeded_limits(tool.name, schema):
            yield tool, f"{tool.name}: {problem}"
