"""Answers that are given with the command, for scripts: ANSWERS, SAMPLE and folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_roundtrip_testing.answers import input_response, sampled_message
from mcp_roundtrip_tools.call.errors import usage_error

Request = Mapping[str, Any]
Response = dict[str, Any]


@dataclass(frozen=True)
class GivenAnswers:
    """`by_key` are answers by the key of the question, `sample` a reply for each prompt, `roots` folders."""

    by_key: Mapping[str, Any] = field(default_factory=dict)
    sample: str | None = None
    roots: Sequence[Path] = ()

    def find(self, key: str, request: Request) -> Response | None:
        """Return the response to a request, or None if none is given. Raises CallFailed."""
        method = request.get("method")
        if key in self.by_key:
            try:
                response: Response = input_response(request, self.by_key[key])
            except ValueError as error:
                raise usage_error(f"ANSWERS: {key}: {error}.") from None
            if not isinstance(response, dict):
                raise usage_error(f"ANSWERS: the answer to {key} ({method}) must be a JSON object.")
            return response
        if method == "sampling/createMessage" and self.sample is not None:
            return sampled_message(self.sample)
        if method == "roots/list" and self.roots:
            return roots_result(self.roots)
        return None


def parse_answers(text: str) -> Mapping[str, Any]:
    """Return the answers in ANSWERS. Raises CallFailed."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise usage_error(f"ANSWERS is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise usage_error('ANSWERS must be a JSON object of answers by key, as in \'{"place": "Tokyo"}\'.')
    return value


def roots_result(folders: Sequence[Path]) -> Response:
    """Return a ListRootsResult."""
    paths = [folder.resolve() for folder in folders]
    return {"roots": [{"uri": path.as_uri(), "name": path.name or "/"} for path in paths]}
