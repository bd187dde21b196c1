"""``mcp-roundtrip smoke``: check the endpoint URL, with settings from the environment.

The exit status is 0 if the endpoint works, 1 if something is wrong, and 2 if a setting cannot be read.
Settings come from the environment, because other users of a computer can read command lines.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from mcp_roundtrip_tools.smoke.findings import Findings
from mcp_roundtrip_tools.smoke.run import Call, Settings, check

SETTINGS = """\
Settings are variables of the environment, because other users of a computer can read command lines:
  URL=https://…/mcp   the endpoint
  TOKEN=…             an access token
  CLIENT_ID=… CLIENT_SECRET=…  fetch a token with the client credentials grant
  TOKEN_PARAMETERS=…  the form of the token request, as in 'scope=a b&audience=c'; default: resource=…
  IAM=1               sign requests with the AWS credentials of the environment (AuthMode iam)
  CALL='TOOL {…}'     a tool to call with these arguments; one that asks and has no side effects
  CA_BUNDLE=…         a file with certificates to trust instead of the system's"""


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Run the command; return its exit status."""
    argparse.ArgumentParser(
        prog="mcp-roundtrip smoke",
        description="Check a deployed endpoint from the outside.",
        epilog=SETTINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    try:
        settings = read_settings(environment)
    except (ValueError, OSError) as error:
        print(f"error: {error}\n{SETTINGS}", file=sys.stderr)
        return 2
    findings = Findings(show=lambda finding: print(finding, flush=True))
    return 0 if check(settings, findings) else 1


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings in an environment. Raises ValueError with one sentence."""
    given = {name: environment.get(name, "").strip() for name in _NAMES}
    if not given["URL"]:
        raise ValueError("URL is missing.")
    parameters = dict(parse_qsl(given["TOKEN_PARAMETERS"])) if given["TOKEN_PARAMETERS"] else None
    return Settings(
        given["URL"],
        token=given["TOKEN"] or None,
        client_id=given["CLIENT_ID"] or None,
        client_secret=given["CLIENT_SECRET"],
        token_parameters=parameters,
        iam=given["IAM"] == "1",
        call=_read_call(given["CALL"]),
        tls=ssl.create_default_context(cafile=given["CA_BUNDLE"]) if given["CA_BUNDLE"] else None,
    )


_NAMES = ("URL", "TOKEN", "CLIENT_ID", "CLIENT_SECRET", "TOKEN_PARAMETERS", "IAM", "CALL", "CA_BUNDLE")


def _read_call(text: str) -> Call | None:
    if not text:
        return None
    tool, _, rest = text.partition(" ")
    try:
        arguments = json.loads(rest or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ValueError(
            'CALL must be the name of a tool and its arguments, as in \'get_weather {"location": "Tokyo"}\'.'
        )
    return Call(tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
