"""The servers of one run. They listen already, and are started after the application exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.run.services.credentials import Credentials
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.kms import FakeKms


@dataclass(frozen=True, slots=True)
class EmulatedServices:
    """The services that functions call. `endpoints` has their URL by the variable that AWS SDKs read.

    `container_url` is their URL for containers, which have other credentials; None without containers.

    `writes` has the writes of tasks.
    """

    credentials: Credentials
    kms: FakeKms
    emulator: Emulator
    writes: JournalWrites
    endpoints: Mapping[str, str]
    servers: tuple[HttpServer, ...]
    container_url: str | None = None


@dataclass(frozen=True, slots=True)
class WebServers:
    """What clients call. `url` is that of the HTTP API, also if it is not served."""

    url: str
    servers: tuple[HttpServer, ...] = ()
    console_url: str | None = None
    """The URL of the console, with a slash at the end."""
    issuer: LocalIssuer | None = None
