"""Checks the definitions of all features before deployment."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.server.feature import Feature


def check(features: Iterable[Feature]) -> None:
    """Build what lists and calls need of each feature. Raises one DefinitionError, a line per mistake."""
    problems: dict[str, None] = {}
    for feature in features:
        try:
            feature.parameters.check()
            feature.definition()
        except DefinitionError as error:
            problems[str(error)] = None
    if problems:
        raise DefinitionError("\n".join(problems))
