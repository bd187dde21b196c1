"""Forward a call to the Lambda function that owns its tool.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip.canonical import compact_json, parse_json
from mcp_roundtrip.internal_errors import ForwardingFailed

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

MAX_IDLE_S: Final = 5
"""A connection that was idle for longer is not used again. The environment may have been frozen, and the
endpoint may have closed the connection; an error on it would not show whether the request arrived."""


class LambdaForwarder:
    """Invokes a function synchronously, and at most once.

    Only a connection that could not be opened is tried again, because then nothing was sent. After every
    other failure a second attempt could run a tool twice, so the SDK does not retry.
    """

    def __init__(self, client: Callable[[int], LambdaClient], clock: Callable[[], float] = time.time) -> None:
        """Forward with `client(read_timeout_s)`, because botocore has timeouts for clients only.

        `clock` returns epoch seconds: monotonic time may stop while the environment is frozen.
        """
        self.client = client
        self._clock = clock
        self._used_at: dict[int, float] = {}

    @classmethod
    def from_environment(cls) -> LambdaForwarder:
        """Create a forwarder for the account and Region of the execution environment."""
        return cls(cache(_client))

    def __call__(
        self, function: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        """Return the function's response to `event`; `custom` becomes its `client_context.custom`.

        Raises ForwardingFailed if the function could not be invoked, failed, or did not respond within
        `timeout_s`.
        """
        from mcp_roundtrip.aws.clients import AWS_ERRORS, error_reason

        try:
            response = self._invoke(
                timeout_s,
                FunctionName=function,
                Payload=_payload(event),
                ClientContext=b64encode(compact_json({"custom": custom}).encode()).decode(),
            )
            payload = response["Payload"].read()
        except AWS_ERRORS as error:
            raise ForwardingFailed(error_reason(error)) from None
        self._used_at[timeout_s] = self._clock()
        return _parse_response(payload, is_failure="FunctionError" in response)

    def _invoke(self, timeout_s: int, **request: Any) -> Any:
        from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError

        client = self.client(timeout_s)
        if not 0 <= self._clock() - self._used_at.get(timeout_s, 0) <= MAX_IDLE_S:
            client.close()  # its connections; the next request opens a new one
        try:
            return client.invoke(**request)
        except (ConnectTimeoutError, EndpointConnectionError):
            return client.invoke(**request)


def _parse_response(payload: bytes, *, is_failure: bool) -> dict[str, Any]:
    try:
        answer = parse_json(payload)
    except ValueError:
        raise ForwardingFailed("malformed_answer") from None
    if is_failure:  # only the type: the runtime's message may quote the event
        raise ForwardingFailed(str(answer.get("errorType")) if isinstance(answer, dict) else "unhandled")
    if not isinstance(answer, dict):
        raise ForwardingFailed("malformed_answer")
    return answer


def _client(timeout_s: int) -> LambdaClient:
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=1, read_timeout=timeout_s, retries={"total_max_attempts": 1})
    return boto3.client("lambda", config=config)


def _payload(event: Mapping[str, Any]) -> bytes:
    """Encode an event in UTF-8, as API Gateway does: escapes would triple some texts of at most 6 MB."""
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return compact_json(event).encode()
