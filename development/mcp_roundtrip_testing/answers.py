"""What a client answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DECLINE: Final[Mapping[str, Any]] = {"action": "decline"}
CANCEL: Final[Mapping[str, Any]] = {"action": "cancel"}


def response(request: Mapping[str, Any] | None, given: Any) -> Any:
    """The entry of `inputResponses` for a request, or for a key that is not asked.

    `given` has the values of a form (a dict, or the value of a single field), or is `DECLINE`, `CANCEL`, or a
    whole result for sampling and roots. What is given to a URL is consent.
    """
    is_elicitation = request is not None and request["method"] == "elicitation/create"
    if given is DECLINE or given is CANCEL or request is None or not is_elicitation:
        return given
    if request["params"].get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": given if isinstance(given, dict) else {"value": given}}
