"""Forward a call to the Lambda function that owns its tool.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.aws.client_interface import AwsClient, AwsError
from mcp_roundtrip.aws.services import MAX_CODE
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.protocol.canonical import compact_json, parse_json


class LambdaForwarder:
    """Invokes a function synchronously, and at most once."""

    def __init__(self, client: AwsClient) -> None:
        """Forward with a client of Lambda that sends no request twice: `AwsClients.invoke_client`."""
        self._client = client

    def __call__(
        self, function: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        """Return the function's response to `event`; `custom` becomes its `client_context.custom`.

        Raises ForwardingFailed if the function could not be invoked, failed, or did not respond within
        `timeout_s`.
        """
        try:
            response = self._client.call(
                "Invoke",
                timeout_s=timeout_s,
                FunctionName=function,
                Payload=_payload(event),
                ClientContext=b64encode(compact_json({"custom": custom}).encode()).decode(),
            )
        except AwsError as error:
            raise ForwardingFailed(error.code) from None
        return _parse_response(response["Payload"], is_failure="FunctionError" in response)


def _parse_response(payload: bytes, *, is_failure: bool) -> dict[str, Any]:
    try:
        answer = parse_json(payload)
    except ValueError:
        raise ForwardingFailed("malformed_answer") from None
    if is_failure:  # only the type: the runtime's message may quote the event
        kind = answer.get("errorType") if isinstance(answer, dict) else None
        raise ForwardingFailed(kind[:MAX_CODE] if isinstance(kind, str) else "unhandled")
    if not isinstance(answer, dict):
        raise ForwardingFailed("malformed_answer")
    return answer


def _payload(event: Mapping[str, Any]) -> bytes:
    """Encode an event in UTF-8, as API Gateway does: escapes would triple some texts of at most 6 MB."""
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return compact_json(event).encode()
