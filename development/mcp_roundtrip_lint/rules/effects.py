"""MRT006: known side effects that every round repeats, because they are in no step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_lint.contexts import Module
from mcp_roundtrip_lint.reachability import runs_again
from mcp_roundtrip_lint.source import Source, own_nodes

_CALLS: Final = frozenset(
    {
        *(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")),
        "os.system",
    }
)
_FILE_CALLS: Final = frozenset(
    {
        *(f"os.{name}" for name in ("remove", "unlink", "rename", "replace", "rmdir")),
        *(f"shutil.{name}" for name in ("rmtree", "move")),
    }
)
_COPYING_CALLS: Final = frozenset(f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree"))
_HTTP_MODULES: Final = frozenset({"requests", "httpx"})
_HTTP_CLIENTS: Final = frozenset(
    {"requests.Session", "requests.session", "httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession"}
)
_HTTP_METHODS: Final = frozenset({"post", "put", "patch", "delete"})
_AWS_FACTORIES: Final = frozenset(
    {"boto3.client", "boto3.resource", "boto3.Session", "boto3.session.Session", "aioboto3.Session"}
)
_AWS_VERBS: Final = frozenset(
    {
        *(
            "add",
            "associate",
            "attach",
            "cancel",
            "complete",
            "copy",
            "create",
            "delete",
            "deregister",
            "detach",
        ),
        *(
            "disable",
            "disassociate",
            "enable",
            "import",
            "invoke",
            "modify",
            "publish",
            "purge",
            "put",
            "reboot",
        ),
        *(
            "register",
            "remove",
            "restore",
            "revoke",
            "run",
            "send",
            "set",
            "start",
            "stop",
            "tag",
            "terminate",
        ),
        *("transact", "untag", "update", "upload", "write"),
    }
)
_AWS_BATCH_VERBS: Final = frozenset({"batch_write_item", "batch_delete", "batch_execute_statement"})
_AWS_READS: Final = frozenset({"start_query", "set_stream_logger"})
_PATH_METHODS: Final = frozenset({"write_text", "write_bytes", "unlink", "rmdir"})
"""Methods of `pathlib.Path` whose names no other common type has."""

_WRITING_MODES: Final = frozenset("wax+")
_SCRATCH: Final = "/tmp"  # noqa: S108  # Lambda's folder for scratch files: writing there again is harmless

_MAX_VARIABLES: Final = 3
"""Variables that are followed from a path to the scratch folder."""


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find side effects after which a call of the context can end the round."""
    for function in module.functions:
        context = next(iter(function.names))
        for node in own_nodes(function.node):
            if not isinstance(node, ast.Call) or not _is_effect(module.source, node):
                continue
            if runs_again(module, function, node):
                shown = ast.unparse(node.func)
                message = (
                    f"{shown}(…) runs in every round, because a later call ends the round: move it into a "
                    f'step, as in `{context}.step("…", {shown}, …)`, or behind the last call of the context'
                )
                yield node, message


def _is_effect(source: Source, call: ast.Call) -> bool:
    name = source.dotted(call.func) or ""
    if name in _CALLS | _FILE_CALLS | _COPYING_CALLS and name.partition(".")[0] not in source.imports:
        return False
    if name in _CALLS:
        return True
    if name in _FILE_CALLS:
        return not all(_is_scratch(source, path) for path in call.args)
    if name in _COPYING_CALLS:
        return not any(_is_scratch(source, target) for target in call.args[1:2])
    if name in ("open", "io.open"):
        return _writes(source, call)
    if name in ("urllib.request.urlopen", "urllib.request.Request"):
        return _sends(call)
    if not isinstance(call.func, ast.Attribute):
        return False
    method, receiver = call.func.attr, call.func.value
    if method in _PATH_METHODS:
        return not _is_scratch(source, receiver)
    origin = _origin(source, receiver)
    if origin in _HTTP_CLIENTS or name.partition(".")[0] in _HTTP_MODULES & set(source.imports.values()):
        return method in _HTTP_METHODS or (method == "request" and _names_changing_method(call))
    if origin in _AWS_FACTORIES:
        return _changes_aws(method)
    return origin in ("smtplib.SMTP", "smtplib.SMTP_SSL") and method in ("send_message", "sendmail")


def _origin(source: Source, node: ast.AST) -> str | None:
    """Return the function that made an object, such as `boto3.client`."""
    while True:
        match node:
            case ast.Await(value=value) | ast.Attribute(value=value) | ast.Subscript(value=value):
                node = value
            case ast.Call(func=function):
                name = source.dotted(function)
                if name in _AWS_FACTORIES | _HTTP_CLIENTS | {"smtplib.SMTP", "smtplib.SMTP_SSL"}:
                    return name
                node = function
            case ast.Name(id=name):
                assigned = _only_value(source, node, name)
                if assigned is None:
                    return None
                node = assigned
            case _:
                return None


def _only_value(source: Source, use: ast.AST, name: str) -> ast.expr | None:
    """Return what a variable of the function or of the module is assigned, if that is one expression."""
    for scope in [*source.ancestors(use)]:
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            continue
        values = [value for node in own_nodes(scope) for value in _values_of(node, name)]
        if values:
            return values[0] if len(values) == 1 and use not in ast.walk(values[0]) else None
    return None


def _values_of(node: ast.AST, name: str) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        if any(isinstance(each, ast.Name) and each.id == name for each in node.targets):
            yield node.value
    elif isinstance(node, ast.AnnAssign):
        if isinstance(node.target, ast.Name) and node.target.id == name and node.value is not None:
            yield node.value
    elif isinstance(node, ast.withitem):
        variable = node.optional_vars
        if isinstance(variable, ast.Name) and variable.id == name:
            yield node.context_expr


def _changes_aws(method: str) -> bool:
    if method in _AWS_READS:
        return False
    return method in _AWS_BATCH_VERBS or method.partition("_")[0] in _AWS_VERBS


def _names_changing_method(call: ast.Call) -> bool:
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "method")]
    return any(isinstance(each, ast.Constant) and str(each.value).lower() in _HTTP_METHODS for each in given)


def _sends(call: ast.Call) -> bool:
    """Return whether a request of urllib has a body, or a method that changes something."""
    data = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "data")]
    has_body = any(not (isinstance(each, ast.Constant) and each.value is None) for each in data)
    by_name = [each for each in call.keywords if each.arg == "method"]
    return has_body or any(
        isinstance(each.value, ast.Constant) and str(each.value.value).lower() in _HTTP_METHODS
        for each in by_name
    )


def _writes(source: Source, call: ast.Call) -> bool:
    """Return whether a call of `open` can change a file outside of the scratch folder."""
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    writes = any(isinstance(each, ast.Constant) and set(str(each.value)) & _WRITING_MODES for each in modes)
    return writes and not (call.args and _is_scratch(source, call.args[0]))


def _is_scratch(source: Source, path: ast.AST, variables: int = _MAX_VARIABLES) -> bool:
    """Return whether a path begins in Lambda's scratch folder: by its text, its variables, or `tempfile`."""
    for node in ast.walk(path):
        match node:
            case ast.Constant(value=str(text)) if text.startswith(_SCRATCH):
                return True
            case ast.Call(func=function) if (source.dotted(function) or "").startswith("tempfile."):
                return True
            case ast.Name(id=name) if variables:
                value = _only_value(source, node, name)
                if value is not None and _is_scratch(source, value, variables - 1):
                    return True
    return False
