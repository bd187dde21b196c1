"""The program that imports a function as Lambda does, and prints what keeps it from running, as JSON.

`python -P start_check.py HANDLER [FILE …]` runs in the function's environment, without a request. It checks
the definitions and the settings of the layer, too, and the syntax of files that the function has not
imported. Each problem is the text of a traceback; a warning is about a setting without which the function
runs. This program must not import the layer: the function may have none.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from traceback import format_exception, format_exception_only
from types import ModuleType
from typing import Any

LAYER = "mcp_roundtrip"


def check(handler: str, files: list[str]) -> dict[str, list[str]]:
    """Return the problems and the warnings of a function."""
    warnings: list[str] = []
    found = [*_of_function(handler, warnings)]
    imported = {getattr(module, "__file__", None) for module in [*sys.modules.values()]}
    others = [error for file in files if file not in imported and (error := syntax_error(file))]
    problems = [*found, *(error for error in others if not any(error in each for each in found))]
    return {"problems": problems, "warnings": warnings}


def _of_function(handler: str, warnings: list[str]) -> Iterator[str]:
    name, _, attribute = handler.rpartition(".")
    try:
        module = import_module(name.replace("/", "."))
        found = getattr(module, attribute, None)
        if found is None:
            yield from _missing_handler(module, handler, attribute)
        else:
            yield from _of_layer(module, found, warnings)
    except BaseException as error:  # also SystemExit: importing a module may raise anything
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
            frame = frame.tb_next
        yield "".join(format_exception(type(error), error, frame))


def syntax_error(file: str) -> str | None:
    """Return the SyntaxError of a Python file as text; None for every other file."""
    if not file.endswith(".py"):
        return None
    try:
        compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes, up to Python 3.11
        return "".join(format_exception_only(error))
    except OSError:  # it was removed
        return None
    return None


def _missing_handler(module: ModuleType, handler: str, attribute: str) -> Iterator[str]:
    yield (
        f'  File "{module.__file__}"\nAttributeError: the module has no {attribute}, which the template '
        f"names (Handler: {handler}); write {attribute} = server.lambda_handler\n"
    )


def _of_layer(module: ModuleType, handler: Any, warnings: list[str]) -> Iterator[str]:
    """Yield the problems of definitions, then those of settings; add warnings. Raises what they raise."""
    if LAYER not in sys.modules:
        return
    registry = import_module(f"{LAYER}.server.registry")
    checks = import_module(f"{LAYER}.server.definition_checks")
    owner = getattr(handler, "__self__", None)
    held = {id(each): each for each in (owner, *vars(module).values())}
    servers = [each for each in held.values() if isinstance(each, registry.Registry)]
    for server in servers:
        for feature, error in checks.definition_errors(server.features):
            yield _located(feature.function, error)
        warnings += [warning for _, warning in checks.definition_warnings(server.features)]
    if servers or owner is not None:
        yield from _of_settings(_needs(servers, handler), warnings)


def _needs(servers: list[Any], handler: Any) -> dict[str, list[str]]:
    """Return what settings are needed for: see `mcp_roundtrip.deployment.missing_settings`."""
    if getattr(handler, "__name__", "") == "worker_handler":
        return {"work": [name for server in servers for name in server.endpoint.needs["tasks"]]}
    owner = getattr(handler, "__self__", None)
    endpoints = [each.endpoint for each in servers or [owner] if hasattr(each, "endpoint")]
    kinds = dict.fromkeys(kind for endpoint in endpoints for kind in endpoint.needs)
    return {kind: [name for each in endpoints for name in each.needs.get(kind, ())] for kind in kinds}


def _of_settings(needs: dict[str, list[str]], warnings: list[str]) -> Iterator[str]:
    """Yield the setting that is contradictory, or those that are missing.

    The layer reads some at their first use only.
    """
    wiring = import_module(f"{LAYER}.deployment.wiring")
    errors = import_module(f"{LAYER}.internal_errors")
    missing_settings = import_module(f"{LAYER}.deployment.missing_settings")
    try:
        ports = wiring.ports()
        unset = missing_settings.find_unset_settings(ports.settings)
        if "state_key_arn" not in unset:
            ports.state_codec()
    except errors.SettingsError as error:
        yield f"SettingsError: {error}\n"
        return
    for missing in missing_settings.missing_settings(needs, unset):
        if missing.is_error:
            yield f"SettingsError: {missing.error}\n"
        else:
            warnings.append(str(missing.error))


def _located(function: Callable[..., Any], error: Exception) -> str:
    """Return an error of a definition as if the function's first line had raised it."""
    code = getattr(unwrap(function), "__code__", None)
    text = f"{type(error).__name__}: {error}\n"
    if code is None:
        return text
    line = code.co_firstlineno
    while (source := linecache.getline(code.co_filename, line)) and not source.lstrip().startswith(
        ("def ", "async def ")
    ):
        line += 1  # decorators
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n    {source.strip()}\n{text}'


def main() -> None:
    """Print what was found, and nothing that the module prints."""
    output = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    json.dump(check(sys.argv[1], sys.argv[2:]), output)
    output.flush()
    os._exit(0)  # does not wait for threads of the module


if __name__ == "__main__":
    main()
