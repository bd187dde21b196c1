"""The environment variables that hold settings: lines of `MCP_SETTINGS`, and variables of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mcp_roundtrip.internal_errors import SettingsError

PREFIX: Final = "MCP_"

SHARED: Final = "MCP_SETTINGS"
"""The variable with the settings that the functions of a deployment share: lines `MCP_NAME=value`."""

SAM_LOCAL: Final = "AWS_SAM_LOCAL"
"""The variable that `sam local` sets."""

SAM_LOCAL_SETTINGS: Final = """
MCP_AUTH_MODE=none
MCP_ISSUER=sam-local
MCP_AUDIENCE=http://127.0.0.1:3000/mcp
"""


def read_variables(environment: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """Return the known variables that are set, without white space around their texts.

    A variable of its own replaces its line in `MCP_SETTINGS`; an empty one unsets it. Raises SettingsError
    for a line that is not `NAME=value`, and for a name in the lines that is not known or is there twice.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(_shared(environment).split("\n"), 1):
        name, separator, text = (part.strip() for part in line.partition("="))
        if not separator:
            if name:
                raise SettingsError(SHARED, f"must hold lines such as MCP_ISSUER=shop; line {number} is none")
        elif name not in known:
            problem = (
                f"names {name}, which this version of the package does not have; correct the name, or run "
                "`mcp-roundtrip upgrade` if the platform has another version than the package"
            )
            raise SettingsError(SHARED, problem)
        elif name in texts:
            raise SettingsError(SHARED, f"names {name} twice; remove one of the lines")
        else:
            texts[name] = text
    texts |= {name: environment[name].strip() for name in known if name in environment}
    return {name: text for name, text in texts.items() if text}


def _shared(environment: Mapping[str, str]) -> str:
    """Return the lines of `MCP_SETTINGS`.

    sam local passes an empty text for an output of a nested stack (`!GetAtt`), and with `!Sub` the reference
    itself. CloudFormation never does: it resolves the reference, or fails the deployment.
    """
    text = environment.get(SHARED)
    if text is None:
        return ""
    if SAM_LOCAL in environment and "=" not in text:
        return SAM_LOCAL_SETTINGS
    if not text.strip():
        raise SettingsError(SHARED, "is empty; set it to the output Settings of the platform, or remove it")
    return text
