"""Front doors with the catalog of servers in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip_tools.catalog.catalog import render_servers


def make_front_door(owners: Mapping[str, Server], **options: Any) -> FrontDoor:
    """Return a front door whose catalog has these owners. `options` are those of FrontDoor."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "catalog.json")
        path.write_text(render_servers(owners))
        return FrontDoor("door", path, **options)
