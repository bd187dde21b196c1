"""Execution environments in this process, and the settings that a deployment of them lacks."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final
from weakref import WeakKeyDictionary

import pydantic.type_adapter  # noqa: F401 - before a test replaces `date`, as freezegun does: pydantic keeps it
from msgspec.structs import replace

from mcp_roundtrip.deployment.needed_settings import find_unset_settings, missing_settings
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.entry.front_door import FrontDoor
from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.lambda_invocation import Forwarded, Invocation
from mcp_roundtrip.server.tools import ServerTools, Tool

Source = Server | Path | Callable[[], Server]
"""A server, the path of a module that holds one, or a function that makes one."""


def load_server(source: Source) -> Server:
    """Return the server of a new environment; a module is executed again. Raises DefinitionError."""
    if not isinstance(source, Path):
        server = source if isinstance(source, Server) else source()
        if _features_checked.get(server) != len(server.features):  # `Player` loads it in every round
            server.check_definitions()
            _features_checked[server] = len(server.features)
        return server
    servers = servers_in(load_module(source))
    assert len(servers) == 1, (
        f"{source} holds {len(servers)} servers; pass a Server, or load_module(path).front_door and owners="
    )
    return servers[0]


def load_module(path: Path) -> ModuleType:
    """Execute the module of a function again, with its folder first on the import path, as on Lambda.

    Modules and packages in the folder are executed again, too. The module gets a unique name, because every
    function has a module `app`. The folder stays on the path until another function is loaded, because
    functions also import when they run. Raises DefinitionError.
    """
    folder = path.resolve().parent
    name = f"mcp_roundtrip_function_{folder.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    _forget_modules_in(folder)
    sys.modules[name] = module  # dataclasses look up their module there
    _put_on_path([path])
    spec.loader.exec_module(module)
    _check_definitions(module, folder)
    return module


def _forget_modules_in(folder: Path) -> None:
    """Have the modules and packages of a folder imported again, but not those that were installed there.

    Some installed packages can be imported only once.
    """
    paths = [*folder.glob("*.py")]
    if not any(folder.glob("*.dist-info")):
        paths += folder.glob("*/*.py")
    names = {path.relative_to(folder).parts[0].removesuffix(".py") for path in paths}
    for loaded in [each for each in sys.modules if each.partition(".")[0] in names]:
        del sys.modules[loaded]


def _put_on_path(modules: Iterable[Path]) -> None:
    """Put the folders of these functions first on the import path, in place of those of before."""
    for folder in _on_path:
        with suppress(ValueError):
            sys.path.remove(folder)
    _on_path[:] = [str(module.resolve().parent) for module in modules]
    sys.path[:0] = _on_path


_on_path: list[str] = []
"""The folders of the functions that were loaded last: one, or those behind a front door."""


def _check_definitions(module: ModuleType, folder: Path) -> None:
    """Check once for each state of a folder, because `Player` loads a module in every round."""
    state = (folder, *sorted((path.name, path.stat().st_mtime_ns) for path in folder.glob("*.py")))
    if state not in _checked:
        for server in servers_in(module):
            server.check_definitions()
        _checked.add(state)


_checked: set[tuple[object, ...]] = set()
_features_checked = WeakKeyDictionary[Server, int]()


def servers_in(module: ModuleType) -> list[Server]:
    """Return the servers in the module's globals."""
    held = {id(value): value for value in vars(module).values() if isinstance(value, Server)}
    return list(held.values())


# One callable of a union, not a union of callables: mypy checks a lambda against a single type only.
Application = Server | FrontDoor | Path | Callable[[], Server | FrontDoor]
"""A server or a front door, a function that makes one, or the path of a module that holds a server."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A server in a new environment, or a front door with its owners, each in a new environment."""

    entry: Server | FrontDoor
    owners: Mapping[str, Server]

    @classmethod
    def load(cls, application: Application, owners: Mapping[str, Source]) -> Environment:
        """Load the application and the owners of a front door."""
        made: Server | FrontDoor | Path
        if isinstance(application, (Server, FrontDoor, Path)):
            made = application
        elif callable(application):
            made = application()
        else:
            raise TypeError(
                f"{application!r:.100} cannot be played; pass a Server, a function that creates one, or the "
                "Path of an app.py, as in Player(Path('functions/server/app.py'))"
            )
        if isinstance(made, FrontDoor):
            servers = {name: load_server(source) for name, source in owners.items()}
            _put_on_path(source for source in owners.values() if isinstance(source, Path))
            return cls(made, servers)
        server = load_server(made)
        return cls(server, {"": server})

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return {name: tool for server in self.owners.values() for name, tool in server.tools.items()}

    @property
    def server_tools(self) -> ServerTools:
        """What a worker needs to run the tasks of all tools."""
        first, *others = (server._server_tools for server in self.owners.values())
        return ServerTools(first.options, self.tools) if others else first

    def respond(self, request: HttpRequest, ports: Ports, remaining_ms: float) -> HttpResponse:
        """Respond to a request within this time."""
        if isinstance(self.entry, FrontDoor):
            ports = replace(ports, forward=self._forwarder(ports))
        # The front door passes its event to the owner unchanged. Here the request takes its place.
        invocation = Invocation("test", ports.clock_ms() + remaining_ms, event={"request": request})
        response = self.entry.endpoint.respond(request, ports, invocation)
        return response if response.raw is None else response.raw

    def _forwarder(self, ports: Ports) -> Callable[[str, Mapping[str, Any], Mapping[str, Any], int], Any]:
        def forward(
            owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
        ) -> HttpResponse:
            forwarded = Forwarded.read(SimpleNamespace(client_context=SimpleNamespace(custom=custom)))
            remaining_ms = (forwarded.deadline_ms or 0) - ports.clock() * 1000
            invocation = Invocation("test", ports.clock_ms() + remaining_ms, None, event, forwarded)
            return self.owners[owner].endpoint.respond(event["request"], ports, invocation)

        return forward


__tracebackhide__ = True  # pytest shows the line of the test

TEMPLATE: Final = "template.yaml"

_ABOUT_WORKERS: Final = frozenset({"task_worker", "task_queue"})
"""Settings that a function or its worker does not need, if the other one has them."""


class SettingMissing(UserWarning):
    """In the deployment that the template describes, a tool can do less than its code says."""


def unset_settings(app: Path) -> frozenset[str]:
    """Return the settings without a value in the function whose code is this file (`find_unset_settings`).

    They are those of the nearest template.yaml in the folders above. Without one, with a template that has no
    function with this code, without PyYAML (extra ``local``), and with settings that need the values of
    required parameters, nothing is missing. Raises TemplateError if the template cannot be deployed.
    """
    file = app.resolve()
    template = next((path for folder in file.parents if (path := folder / TEMPLATE).is_file()), None)
    if template is None:
        return frozenset()
    return _unset_by_file(template, template.stat().st_mtime_ns).get(file, frozenset())


@lru_cache(8)
def _unset_by_file(template: Path, _mtime_ns: int) -> Mapping[Path, frozenset[str]]:
    """Return the settings without a value, by the file that a function shares with its worker."""
    try:
        from mcp_roundtrip_tools.template.functions import has_settings, misspelled_settings
        from mcp_roundtrip_tools.template.model import TemplateError
        from mcp_roundtrip_tools.template.parameters import placeholder_parameters
        from mcp_roundtrip_tools.template.reader import Template
    except ModuleNotFoundError:
        return {}
    placeholders = placeholder_parameters(template)
    application = Template(template, placeholders).application(checks_values=False)
    found: dict[Path, frozenset[str]] = {}
    for function in application.functions.values():
        if has_settings(function.environment):
            try:
                unset = find_unset_settings(load_settings(function.environment))
            except SettingsError as error:
                value = function.environment.get(error.setting, "")
                if any(name == placeholder and name in value for name, placeholder in placeholders.items()):
                    return {}  # the value stands for one that only a deployment has
                raise TemplateError(f"{function.name}: {error}") from None
            for note in misspelled_settings(function.environment):
                warnings.warn(note, SettingMissing, stacklevel=2)
            file = (function.code / function.module).resolve()
            other = found.get(file, unset)
            found[file] = (unset | other) - (_ABOUT_WORKERS - (unset & other))
    return found


def check_settings(needs: Mapping[str, Sequence[str]], unset: Collection[str]) -> None:
    """Compare a server's features with its deployment. Raises SettingsError, or warns with SettingMissing."""
    for missing in missing_settings(needs, unset):
        if missing.is_error:
            raise missing.error
        warnings.warn(str(missing.error), SettingMissing, stacklevel=2)
