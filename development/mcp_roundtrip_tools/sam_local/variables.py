"""The variables that `sam local` passes to containers: those of the run, with addresses in the network.

sam passes a variable only if template.yaml declares it, and cannot resolve the outputs of nested stacks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.run.app import LocalApp

AWS: Final = "AWS_ENDPOINT_URL"

_SERVER: Final = re.compile(r"http://127\.0\.0\.1:\d+")


def addresses(app: LocalApp, host: str) -> dict[str, str]:
    """Return the URLs of the services and stand-ins of the run, with their URLs for containers."""
    assert app.container_url is not None
    values = [value for name in app.functions() for value in app.environment(name).values()]
    servers = {url for value in values for url in _SERVER.findall(value)} - {app.url("")}
    in_network = {url: f"http://{host}:{urlsplit(url).port}" for url in servers}
    return {**in_network, app.endpoints[AWS]: app.container_url}


def container_variables(app: LocalApp, in_network: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the content of the file for `--env-vars`: logical id -> the function's variables.

    `in_network` has the URLs for containers by the URLs for this computer.
    """

    def moved(value: str) -> str:
        return _SERVER.sub(lambda url: in_network.get(url[0], url[0]), value)

    return {
        function.logical_id: {
            name: moved(value)
            for name, value in {**app.environment(function.name), AWS: app.endpoints[AWS]}.items()
        }
        for function in app.functions().values()
    }
