"""Rebuild the catalogs of front doors when the sources of their owners change.

A deployment uses the catalog file in the front door's folder, which ``make catalog`` writes. Here a current
catalog replaces it in a copy of that folder, so that a new tool can be called immediately.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Final

from mcp_roundtrip.deployment.settings import read_variables
from mcp_roundtrip_tools.run.execution.runtime_process import isolated_variables
from mcp_roundtrip_tools.run.project import fingerprint
from mcp_roundtrip_tools.template.model import WORKER, Application, Function, function_name

OWNERS = "MCP_OWNERS"
CATALOG = "catalog.json"

_catalog_texts: dict[str, str] = {}
"""Catalogs by a digest of their sources and variables, so that tests that serve often build each once.

Each saved change makes another one, of megabytes if there are hundreds of tools: those of the last uses stay.
"""

MAX_CATALOGS: Final = 8


class FreshCatalogs:
    """Builds catalogs in a background thread, one at a time, and copies of front doors in `folder`.

    `variables` are those of `make run` for all functions. They override the template's.
    """

    def __init__(self, folder: Path, log: Callable[[str], None], variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._log = log
        self._variables = variables
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="catalog")
        self._builds: dict[str, Future[Path]] = {}

    def build(self, application: Application) -> None:
        """Start to build the catalogs of an application."""
        for function in application.functions.values():
            if owners := owners_of(function, application):
                before = self._builds.get(function.name)
                self._builds[function.name] = self._builder.submit(
                    self._build_folder, function, owners, before, bool(application.left_out)
                )

    def code_folder(self, function: Function) -> Path:
        """Return the folder of a function's code with a current catalog. Waits until it is built."""
        build = self._builds.get(function.name)
        return function.code if build is None else build.result()

    def close(self) -> None:
        """Wait for the running build."""
        self._builder.shutdown(cancel_futures=True)

    def _build_folder(
        self,
        function: Function,
        owners: Mapping[str, Function],
        before: Future[Path] | None,
        leaves_out: bool,
    ) -> Path:
        written = function.code / CATALOG
        try:
            text = self._catalog_text(owners)
        except subprocess.CalledProcessError as error:
            self._log(
                f"[{function.name}] {error.stderr.strip()}\n"
                "The previous catalog is used until this is corrected."
            )
            return function.code if before is None else before.result()
        present = written.read_text(encoding="utf-8")
        if present == text:
            return function.code
        # The folders of the owners have the digests of the last `make catalog`.
        text = _without_others(text, owners)
        copy = self._folder / f"{function.name}-{_digest(text)}"
        shutil.copytree(function.code, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / CATALOG).write_text(text, encoding="utf-8")
        if not (leaves_out and _without_others(present, owners) == text):
            self._log(
                f"[{function.name}] {CATALOG} is stale, and make run uses a current one. "
                "Run `make catalog` before you deploy."
            )
        return copy

    def _catalog_text(self, owners: Mapping[str, Function]) -> str:
        """Return the text of the catalog. Raises CalledProcessError."""
        modules = {owner: function.code / function.module for owner, function in owners.items()}
        layers = list(dict.fromkeys(layer for function in owners.values() for layer in function.path[1:]))
        seen = fingerprint([*(module.parent for module in modules.values()), *layers])
        variables = {name: value for each in owners.values() for name, value in each.environment.items()}
        variables |= self._variables
        key = _digest(
            json.dumps([[*map(str, modules.items())], sorted(seen.items()), sorted(variables.items())])
        )
        text = _catalog_texts.pop(key, "") or self._run_catalog_command(modules, layers, variables)
        _catalog_texts[key] = text  # behind those that were used before it
        for old in [*_catalog_texts][:-MAX_CATALOGS]:
            _catalog_texts.pop(old, None)
        return text

    def _run_catalog_command(
        self, modules: Mapping[str, Path], layers: Iterable[Path], variables: Mapping[str, str]
    ) -> str:
        output = self._folder / CATALOG
        options = [*(f"--owner={owner}={path}" for owner, path in modules.items())]
        options += [f"--path={layer}" for layer in layers]
        # A new process imports the sources in their current state.
        command = [sys.executable, "-m", "mcp_roundtrip_tools", "catalog", f"--output={output}", *options]
        env = {**isolated_variables(), **variables}
        subprocess.run(  # noqa: S603 - a command of this package
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=True
        )
        return output.read_text(encoding="utf-8")


def _without_others(catalog: str, owners: Container[str]) -> str:
    """Return a catalog without digests, and without other owners, such as functions that do not run here."""
    try:
        lists = json.loads(catalog)
    except ValueError:
        return ""
    for name, rows in lists.items():
        if isinstance(rows, list):
            lists[name] = [row for row in rows if row.get("owner") in owners]
    kept = {name: rows for name, rows in lists.items() if name != "digests" and (rows or name == "tools")}
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def is_front_door(function: Function) -> bool:
    """Return whether a function is a front door: all functions may have MCP_OWNERS, but no catalog."""
    return OWNERS in read_variables(function.environment) and (function.code / CATALOG).is_file()


def owners_of(function: Function, application: Application) -> dict[str, Function]:
    """Return the owners of a front door in alphabetical order; none for another function."""
    if not is_front_door(function):
        return {}
    setting = read_variables(function.environment)[OWNERS]
    if not setting.startswith("{"):
        return _matching(function_name(setting), function, application)
    owners = json.loads(setting)
    found = {owner: application.functions.get(function_name(to)) for owner, to in sorted(owners.items())}
    return {owner: owned for owner, owned in found.items() if owned is not None}


def _matching(pattern: str, front_door: Function, application: Application) -> dict[str, Function]:
    """Return the functions whose names match a pattern with one `*`, by what the `*` stands for."""
    before, _, behind = pattern.partition("*")
    found = {
        name.removeprefix(before).removesuffix(behind): function
        for name, function in sorted(application.functions.items())
        if name.startswith(before) and name.endswith(behind) and name != front_door.name
    }
    return {owner: owned for owner, owned in found.items() if owner and not owner.endswith(WORKER)}


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
