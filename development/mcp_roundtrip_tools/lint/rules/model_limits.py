"""MRT014: tools whose names, arguments or schemas models refuse (`server.definition_checks`)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from mcp_roundtrip.server.definition_checks import exceeded_limits
from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.definitions import (
    ClassDefinition,
    bases_of,
    class_named,
    imported_value,
    only_value,
)
from mcp_roundtrip_tools.lint.rules.descriptions import registers_tool
from mcp_roundtrip_tools.lint.source import FunctionNode, Source, parameters


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools that end the session of a model's client."""
    source = module.source
    for node in ast.walk(source.tree):
        if isinstance(node, FunctionNode):
            for decorator in node.decorator_list:
                if registers_tool(source, decorator):
                    name, schema = _name(node, decorator), _input_schema(source, node, decorator)
                    for problem in exceeded_limits(name, schema):
                        yield node, f"{node.name}: {problem}"


def _name(function: FunctionNode, decorator: ast.expr) -> str:
    """Return the name of the tool; an expression that is not constant gives no name."""
    if not isinstance(decorator, ast.Call):
        return function.name
    given = [*decorator.args[:1], *(each.value for each in decorator.keywords if each.arg == "name")]
    if not given:
        return function.name
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else ""


def _input_schema(source: Source, function: FunctionNode, decorator: ast.expr) -> dict[str, Any]:
    """Return the keywords that can be read of the `inputSchema`."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    given = next((each.value for each in keywords if each.arg == "input_schema"), None)
    if given is not None:
        return _literal(source, given)
    fields = [(each, each.arg, each.annotation) for each in parameters(function)]
    return {"properties": _properties(source, fields, set())}


def _literal(source: Source, node: ast.expr) -> dict[str, Any]:
    """Return a dict that is written out, here or as the only value of a variable; {} for any other."""
    if isinstance(node, ast.Name) and (value := only_value(source, node, node.id)) is not None:
        node = value
    elif (imported := imported_value(source, source.dotted(node) or "")) is not None:
        node = imported[1]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _properties(
    source: Source, fields: Iterable[tuple[ast.AST, str, ast.expr | None]], seen: set[ast.ClassDef]
) -> dict[str, Any]:
    """Return the schemas of parameters or fields: their names, and those of the fields of their classes."""
    found: dict[str, Any] = {}
    for node, name, annotation in fields:
        inner: dict[str, Any] = {}
        for each in [] if annotation is None else ast.walk(annotation):
            definition = class_named(source, each) if isinstance(each, ast.Name | ast.Attribute) else None
            if definition is not None:
                inner |= _fields(definition, seen)
        found[_alias(source, node) or name] = {"properties": inner}
    return found


def _fields(definition: ClassDefinition, seen: set[ast.ClassDef]) -> dict[str, Any]:
    if definition.node in seen:
        return {}
    seen.add(definition.node)
    inherited: dict[str, Any] = {}
    for base in bases_of(definition):
        inherited |= _fields(base, seen)
    own = [
        (node, node.target.id, node.annotation)
        for node in definition.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    return inherited | _properties(definition.source, own, seen)


def _alias(source: Source, node: ast.AST) -> str | None:
    """Return the alias that `pydantic.Field` gives to a parameter or a field."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and source.dotted(call.func) == "pydantic.Field":
            for each in call.keywords:
                if each.arg == "alias" and isinstance(each.value, ast.Constant):
                    return str(each.value.value)
    return None
