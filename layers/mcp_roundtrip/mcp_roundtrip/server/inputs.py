"""The params of `tools/call`, `prompts/get` and `resources/read`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError


@dataclass(frozen=True, slots=True)
class CallParams:
    """The params of a call that its handling depends on."""

    arguments: Mapping[str, Any]
    responses: Mapping[str, Any]
    state: str | None
    is_retry: bool = False

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> CallParams:
        """Check the params' shapes. Raises ProtocolError -32602."""
        responses = params.get("inputResponses", {})
        state = params.get("requestState")
        arguments = params.get("arguments")
        if not isinstance(responses, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        if "requestState" in params and not isinstance(state, str):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: requestState must be a string")
        if arguments is not None and not isinstance(arguments, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        is_retry = "inputResponses" in params or "requestState" in params
        return cls(arguments or {}, responses, state, is_retry)

    def declined(self) -> dict[str, int]:
        """How many answers say no, if any: for the log."""
        if not self.responses:
            return {}
        answers = [answer for answer in self.responses.values() if isinstance(answer, dict)]
        declined = sum(answer.get("action") in ("decline", "cancel") for answer in answers)
        return {"declined": declined} if declined else {}
