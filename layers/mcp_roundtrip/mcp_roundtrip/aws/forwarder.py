"""Hands a call on to the Lambda function that owns its tool.

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.canonical import compact, parse
from mcp_roundtrip.errors import ForwardingFailed

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


@dataclass(frozen=True, slots=True)
class LambdaForwarder:
    """Invokes synchronously, once: a retry by the SDK could run a tool twice.

    `client` gives one that waits for so many seconds, which botocore has for clients and not for calls.
    """

    client: Callable[[int], LambdaClient]

    @classmethod
    def from_environment(cls) -> LambdaForwarder:
        """A forwarder on the account and Region of the execution environment."""
        return cls(cache(_client))

    def __call__(
        self, function: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        """The function's response to `event`; `custom` reaches it as `client_context.custom`.

        Raises ForwardingFailed when it could not be invoked, ended in an error of its own, or did not answer
        for `timeout_s`.
        """
        from mcp_roundtrip.aws.calls import AWS_ERRORS, error_reason

        try:
            response = self.client(timeout_s).invoke(
                FunctionName=function,
                Payload=_payload(event),
                ClientContext=b64encode(compact({"custom": custom}).encode()).decode(),
            )
            payload = response["Payload"].read()
        except AWS_ERRORS as error:
            raise ForwardingFailed(error_reason(error)) from None
        try:
            answer = parse(payload)
        except ValueError:
            raise ForwardingFailed("malformed_answer") from None
        if "FunctionError" in response:  # the runtime's own words: its message may quote the event
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
    """UTF-8 as API Gateway sends it: escapes would triple some texts, and 6 MB is the limit."""
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return compact(event).encode()
