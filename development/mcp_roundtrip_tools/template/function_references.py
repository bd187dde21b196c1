"""Find a function by how people name it: its logical id, its folder, its name here or its deployed name."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    name, parts = function_name(reference), Path(reference).parts
    in_stack = _STACK.sub("", name, count=1)
    in_folder = [each for each in functions.values() if parts and each.code.parts[-len(parts) :] == parts]
    meanings = (
        [each for each in functions.values() if name in (each.logical_id, each.name, short_name(each.name))],
        # A worker is in the folder of its tool, whose name the folder has.
        [each for each in in_folder if each.code.name == short_name(each.name)],
        in_folder,
        [each for each in functions.values() if in_stack == short_name(each.name)],
    )
    for found in filter(None, meanings):  # the most exact one first
        if len(found) == 1:
            return found[0]
        ids = ", ".join(each.logical_id for each in found)
        raise TemplateError(f"{reference} is the folder of several functions: name one of {ids}")
    for left_out, reason in application.left_out.items():
        if name in (left_out, short_name(left_out)):
            raise TemplateError(f"{left_out} does not run here: {reason}")
    raise TemplateError(f"the template has no function {reference}; it has {_list(functions)}")


def _list(functions: Mapping[str, Function]) -> str:
    names = {each.logical_id: short_name(each.name) for each in functions.values()}
    return ", ".join(own if own == name else f"{own} ({name})" for own, name in names.items())
