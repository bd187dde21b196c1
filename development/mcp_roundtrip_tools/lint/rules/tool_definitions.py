"""MRT012 to MRT014: forms that are not flat, tools without a description, and tools that models refuse."""

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mcp_roundtrip.server.definition_lint import exceeded_limits
from mcp_roundtrip_tools.lint.contexts import Module
from mcp_roundtrip_tools.lint.name_resolution import class_named, definition_of, lineage, unwrapped
from mcp_roundtrip_tools.lint.parsed_module import Definition, FunctionNode, Source, argument, parameters

_FIELD_BASES: Final = frozenset(
    {"pydantic.BaseModel", "typing.TypedDict", "typing_extensions.TypedDict", "typing.NamedTuple"}
)
_DATACLASSES: Final = frozenset({"dataclasses.dataclass", "pydantic.dataclasses.dataclass"})
_LISTS: Final = frozenset(
    f"{module}{name}"
    for module in ("", "typing.", "collections.abc.")
    for name in ("list", "set", "frozenset", "tuple", "List", "Set", "Tuple", "Sequence", "Iterable")
)
_DICTS: Final = frozenset({"dict", "typing.Dict", "collections.abc.Mapping", "typing.Mapping"})
_FREE: Final = frozenset(
    {"str", "int", "float", "bool", "datetime.date", "datetime.datetime", "decimal.Decimal"}
)

_LITERALS: Final = frozenset({"typing.Literal", "typing_extensions.Literal"})

_OBJECT: Final = "is a nested object, and a form is flat: put its fields into the model itself"
_LIST_OF_OBJECTS: Final = "is a list of objects, and a form is flat: ask for one after the other"
_UNION: Final = "is a union, and a field of a form has one type: use one type, or a field for each"
_FREE_LIST: Final = "is a list of free values, and a form needs choices: write list[Literal[…]]"
_DICT: Final = "is a dict, and a form has fixed fields: write a field of the model for each entry"

_NUMBERS: Final = "is a choice of numbers, and a form has choices of text: use Literal['1', …] or a StrEnum"


def check_forms(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find the models of questions whose fields a form cannot hold."""
    for model in filter(None, (argument(each, 2, "model") for each in _forms(module))):
        definition = class_named(module.source, model)
        if definition is not None and _has_fields(definition):
            for source, field in _fields_of(definition):
                if problem := _problem(source, field.annotation):
                    yield model, f"field {ast.unparse(field.target)!r} of {definition.node.name} {problem}"
        elif problem := _problem(module.source, model):
            yield model, f"the answer {problem}"


def _forms(module: Module) -> Iterator[ast.Call]:
    for function in module.functions:
        yield from (call.node for call in function.calls if call.method == "elicit")
    calls = (each for each in ast.walk(module.source.tree) if isinstance(each, ast.Call))
    yield from (
        each for each in calls if module.source.dotted(each.func) in ("mcp_roundtrip.Elicit", "Elicit")
    )


def _has_fields(definition: Definition[ast.ClassDef]) -> bool:
    """Return whether a class is a pydantic model, a dataclass or a TypedDict."""
    for each in lineage(definition):
        decorators = (node.func if isinstance(node, ast.Call) else node for node in each.node.decorator_list)
        if any(each.source.dotted(node) in _DATACLASSES for node in decorators):
            return True
        if any(each.source.dotted(node) in _FIELD_BASES for node in each.node.bases):
            return True
    return False


def _fields_of(definition: Definition[ast.ClassDef]) -> Iterator[tuple[Source, ast.AnnAssign]]:
    """Yield the fields of a class, those of its bases first, each with the module that contains it."""
    for each in reversed(lineage(definition)):
        for node in each.node.body:
            if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
                yield each.source, node


def _problem(source: Source, annotation: ast.expr) -> str | None:
    """Return why a form cannot hold a type; None if it can, or if that is not known."""
    made = definition_of(source, unwrapped(source, annotation))
    source = made.source
    match made.node:
        case ast.ClassDef() as node:
            has_fields = _has_fields(Definition(source, node))
            return _OBJECT if has_fields else _NUMBERS if _counts(source, node) else None
        case ast.Subscript(value=outer, slice=inner) if source.dotted(outer) in _LITERALS:
            return _NUMBERS if any(map(_is_number, ast.walk(inner))) else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _UNION if any(_is_free(source, each) for each in (left, right)) else None
        case ast.Subscript(value=outer, slice=inner) if source.dotted(outer) in _LISTS:
            item = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            if (problem := _problem(source, item)) in (_OBJECT, _NUMBERS):
                return _LIST_OF_OBJECTS if problem == _OBJECT else _NUMBERS
            return _FREE_LIST if _is_free(source, item) else None
        case ast.Subscript(value=outer) | (ast.Name() as outer) if source.dotted(outer) in _DICTS:
            return _DICT
    return None


def _counts(source: Source, node: ast.ClassDef) -> bool:
    """Return whether a class is an enumeration of numbers."""
    bases = [source.dotted(base) for base in node.bases]
    values = [each.value for each in node.body if isinstance(each, ast.Assign)]
    has_numbers = any(_is_number(each) or ast.unparse(each).endswith("auto()") for each in values)
    return bases in (["enum.IntEnum"], ["int", "enum.Enum"]) or (bases == ["enum.Enum"] and has_numbers)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_free(source: Source, annotation: ast.expr) -> bool:
    is_plain = source.dotted(unwrapped(source, annotation)) in _FREE
    return is_plain or _problem(source, annotation) is not None


def check_descriptions(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools without a docstring and without `description=`."""
    for function, decorator in _tools(module.source):
        is_described = any(each.arg in ("description", None) for each in decorator.keywords)
        if not is_described and not (ast.get_docstring(function) or "").strip():
            yield function, f"{function.name} has no docstring, by which the model selects a tool: write one"


def _tools(source: Source) -> Iterator[tuple[FunctionNode, ast.Call]]:
    """The tools of servers of this package, each with the call of `tool` that registers it."""
    for node in ast.walk(source.tree):
        for decorator in node.decorator_list if isinstance(node, FunctionNode) else ():
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            if isinstance(node, FunctionNode) and _registers_tool(source, call.func):
                yield node, call
        if isinstance(node, ast.Call) and node.args:  # server.tool(orders.find)
            call = node.func if isinstance(node.func, ast.Call) else ast.Call(node.func, [], node.keywords)
            if _registers_tool(source, call.func):
                made = definition_of(source, node.args[0])
                if made.source is source and isinstance(made.node, FunctionNode):
                    yield made.node, call


def _registers_tool(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "tool":
        return False
    if any(name.startswith("mcp_roundtrip.") for name in source.imports.values()):
        return True
    made = definition_of(source, node.value)
    return isinstance(made.node, ast.Call) and made.source.dotted(made.node.func) == "mcp_roundtrip.Server"


def check_limits(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find tools that end the session of a model's client."""
    source = module.source
    for function, decorator in _tools(source):
        given = argument(decorator, 0, "name")
        name = function.name if given is None else _literal(source, given)
        given = argument(decorator, None, "input_schema")
        fields = [(source, each) for each in parameters(function)]
        schema = {"properties": _properties(fields, [])} if given is None else _literal(source, given)
        for problem in exceeded_limits(name or "", schema or {}):
            yield function, f"{function.name}: {problem}"


def _literal(source: Source, node: ast.expr) -> Any:
    """Return a value that is written out, here or as the only value of a variable; None for any other."""
    try:
        return ast.literal_eval(definition_of(source, node).node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _properties(
    fields: Iterable[tuple[Source, ast.arg | ast.AnnAssign]], seen: list[ast.ClassDef]
) -> dict[str, Any]:
    """Return the schemas of parameters or fields: their names, and those of the fields of their classes."""
    found: dict[str, Any] = {}
    for source, field in fields:
        inner: dict[str, Any] = {}
        for each in [] if field.annotation is None else ast.walk(field.annotation):
            definition = class_named(source, each)
            if definition is not None and definition.node not in seen:
                seen.append(definition.node)
                inner |= _properties(_fields_of(definition), seen)
        name = field.arg if isinstance(field, ast.arg) else ast.unparse(field.target)
        found[_alias(source, field) or name] = {"properties": inner}
    return found


def _alias(source: Source, node: ast.AST) -> str | None:
    """Return the alias that `pydantic.Field` gives to a parameter or a field."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and source.dotted(call.func) == "pydantic.Field":
            for each in call.keywords:
                if each.arg == "alias" and isinstance(each.value, ast.Constant):
                    return str(each.value.value)
    return None
