"""Find a function by how people name it: its logical id, its folder, its name here or its deployed name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.template.model import Application, Function, TemplateError, function_name, short_name

_STACK: Final = re.compile("[A-Za-z][A-Za-z0-9-]*_")
"""The name of a stack, which has no underscore, before the name of a function."""


def find_function(application: Application, reference: str | None) -> Function:
    """Return the function with this logical id, name, ARN or folder; without one, the only function.

    The deployed name is that of the folder after another stack's name. Raises TemplateError, which lists the
    functions.
    """
    functions = application.functions
    if reference is None:
        if len(functions) == 1:
            return next(iter(functions.values()))
        raise TemplateError(f"name a function of the template: {_list(functions)}")
    name = function_name(reference)
    for is_meant in _meanings(reference, name):
        found = [each for each in functions.values() if is_meant(each)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.logical_id for each in found)
            raise TemplateError(f"{reference} is the folder of several functions: name one of {ids}")
    for left_out, reason in application.left_out.items():
        if name in (left_out, short_name(left_out)):
            raise TemplateError(f"{left_out} does not run here: {reason}")
    raise TemplateError(f"the template has no function {reference}; it has {_list(functions)}")


def _meanings(reference: str, name: str) -> tuple[Callable[[Function], bool], ...]:
    """Return the meanings of a reference, the most exact first. `name` is that of an ARN."""
    parts, in_stack = Path(reference).parts, _STACK.sub("", name, count=1)

    def is_folder(function: Function) -> bool:
        return bool(parts) and function.code.parts[-len(parts) :] == parts

    return (
        lambda function: name in (function.logical_id, function.name, short_name(function.name)),
        # A worker is in the folder of its tool, whose name the folder has.
        lambda function: is_folder(function) and function.code.name == short_name(function.name),
        is_folder,
        lambda function: in_stack == short_name(function.name),
    )


def _list(functions: Mapping[str, Function]) -> str:
    return ", ".join(map(_describe, functions.values()))


def _describe(function: Function) -> str:
    name = short_name(function.name)
    return name if name == function.logical_id else f"{function.logical_id} ({name})"
