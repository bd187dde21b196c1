"""Load the module of a function as Lambda does, repeatedly."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from mcp_roundtrip.entry.server import Server

Source = Server | Path | Callable[[], Server]
"""A server, the path of a module that holds one, or a function that makes one."""


def load_server(source: Source) -> Server:
    """Return the server of a new environment; a module is executed again.

    Raises DefinitionError for an invalid tool, prompt or resource.
    """
    if not isinstance(source, Path):
        server = source if isinstance(source, Server) else source()
        server.check_definitions()
        return server
    servers = servers_in(load_module(source))
    assert len(servers) == 1, f"{source} holds {len(servers)} servers"
    return servers[0]


def load_module(path: Path) -> ModuleType:
    """Execute the module of a function again, with its folder first on the import path, as on Lambda.

    Modules in the same folder are executed again, too. The module gets a unique name, because every function
    has a module `app`. Raises DefinitionError for an invalid tool, prompt or resource of its servers.
    """
    folder = path.resolve().parent
    name = f"mcp_roundtrip_function_{folder.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    for beside in folder.glob("*.py"):  # another function may have a module of the same name
        sys.modules.pop(beside.stem, None)
    sys.modules[name] = module  # dataclasses look up their module there
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    _check_definitions(module, folder)
    return module


def _check_definitions(module: ModuleType, folder: Path) -> None:
    """Check once for each state of a folder, because `Player` loads a module in every round."""
    state = (folder, *sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*.py")))
    if state not in _checked:
        for server in servers_in(module):
            server.check_definitions()
        _checked.add(state)


_checked: set[tuple[object, ...]] = set()


def servers_in(module: ModuleType) -> list[Server]:
    """Return the servers in the module's globals."""
    held = {id(value): value for value in vars(module).values() if isinstance(value, Server)}
    return list(held.values())
