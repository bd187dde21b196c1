"""Whether AWS can be called with the client `signed`, or only with boto3 (`MCP_AWS_CLIENT`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_roundtrip.internal_errors import SettingsError

_BOTO3_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_ACCOUNT_ID_ENDPOINT_MODE"),
    *("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
)
"""Variables that change how an SDK calls AWS, and that the client `signed` does not have."""

_WITHOUT_EFFECT: Final = frozenset({"", "false", "preferred", "disabled", "/dev/null"})
"""Values of these variables with which an SDK calls AWS as without them."""


def check_signed_client(environment: Mapping[str, str]) -> None:
    """Raise SettingsError if AWS has to be called in a way that only boto3 knows."""
    for name in _BOTO3_VARIABLES:
        if environment.get(name, "").lower() not in _WITHOUT_EFFECT:
            problem = f"must be boto3 if {name} is set; set it to boto3, or remove {name}"
            raise SettingsError("MCP_AWS_CLIENT", problem)
