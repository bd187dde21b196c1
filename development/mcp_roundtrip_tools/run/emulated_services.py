"""The emulated services of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_roundtrip_tools.console.journal_writes import JournalWrites
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.services.credentials import Credentials
from mcp_roundtrip_tools.run.services.emulator import Emulator
from mcp_roundtrip_tools.run.services.kms import FakeKms


@dataclass(frozen=True, slots=True)
class EmulatedServices:
    """The services of a run. `endpoints` has their URL by the variable that AWS SDKs read.

    `container_url` is their URL for containers, which have other credentials; None without containers.

    `writes` has the writes of tasks. `servers` listen already; start them after the application exists.
    """

    credentials: Credentials
    kms: FakeKms
    emulator: Emulator
    writes: JournalWrites
    endpoints: Mapping[str, str]
    servers: tuple[HttpServer, ...]
    container_url: str | None = None
