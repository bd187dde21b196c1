"""Validation of messages by the models of the official SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION, methods
from pydantic import BaseModel

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION

_ERROR_DATA: dict[int, type[BaseModel]] = {
    MISSING_REQUIRED_CLIENT_CAPABILITY: mcp_types.MissingRequiredClientCapabilityErrorData,
    UNSUPPORTED_PROTOCOL_VERSION: mcp_types.UnsupportedProtocolVersionErrorData,
}


def assert_valid(method: str, message: Mapping[str, Any]) -> None:
    """Validate a message that a server sent in response to a request of this method.

    The message is a result, an error or a notification. Raises pydantic's ValidationError or AssertionError.
    """
    if "method" in message:
        notification = mcp_types.JSONRPCNotification.model_validate(message)
        assert "id" not in message, "a server sends no requests at this revision"
        methods.parse_server_notification(notification.method, PROTOCOL_VERSION, notification.params)
    elif "error" in message:
        assert "result" not in message
        error = mcp_types.JSONRPCError.model_validate(message).error
        if error.code in _ERROR_DATA:
            _ERROR_DATA[error.code].model_validate(error.data)
    else:
        result = mcp_types.JSONRPCResponse.model_validate(message).result
        methods.parse_server_result(method, PROTOCOL_VERSION, result)
        if result["resultType"] == "input_required":  # the models do not require one of the two members
            assert result.keys() & {"inputRequests", "requestState"}
