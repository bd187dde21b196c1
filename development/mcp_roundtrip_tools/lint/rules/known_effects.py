"""Calls that change something outside of the process: clients of HTTP and AWS, processes, mail and files."""

from __future__ import annotations

import ast
from typing import Final

from mcp_roundtrip_tools.lint.definitions import imported_value, only_value
from mcp_roundtrip_tools.lint.source import Source

_CALLS: Final = frozenset(
    {
        *(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")),
        *("os.system", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
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
_THREAD: Final = "asyncio.to_thread"
PATH: Final = "pathlib.Path"
_PATH_ONLY_METHODS: Final = frozenset({"rename", "replace", "touch"})
"""Methods of `pathlib.Path` whose names other types have, too."""

_HTTP_METHODS: Final = frozenset({"post", "put", "patch", "delete"})
_AWS_FACTORIES: Final = frozenset(
    {"boto3.client", "boto3.resource", "boto3.Session", "boto3.session.Session", "aioboto3.Session"}
)
_AWS_VERBS: Final = frozenset(
    {
        *("add", "associate", "attach", "cancel", "complete", "copy", "create", "delete"),
        *("deregister", "detach", "disable", "disassociate", "enable", "import", "invoke", "modify"),
        *("publish", "purge", "put", "reboot", "register", "remove", "restore", "revoke", "run"),
        *("send", "set", "start", "stop", "tag", "terminate", "transact", "untag", "update"),
        *("upload", "write"),
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


_MAX_PARTS: Final = 50
"""Parts of expressions that are followed to what made an object. Variables may refer to each other."""


def effect_of(source: Source, call: ast.Call) -> str | None:
    """Return the function that changes something, as the author wrote it; None if a call changes nothing."""
    if source.dotted(call.func) == _THREAD and call.args:
        call = ast.Call(func=call.args[0], args=call.args[1:], keywords=call.keywords)
    return ast.unparse(call.func) if _is_client_call(source, call) or changed_path(source, call) else None


def can_read(source: Source, call: ast.Call) -> bool:
    """Return whether such a call may only read: a process, or a POST, with which APIs search and log in."""
    name = source.dotted(call.func) or ""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else name.rpartition(".")[2]
    return (
        name in _CALLS
        or name.startswith("urllib.")
        or method in ("post", "request", _THREAD.rpartition(".")[2])
    )


def _is_client_call(source: Source, call: ast.Call) -> bool:
    """Return whether a call starts a process, or sends a request that changes something."""
    name = source.dotted(call.func) or ""
    if name in _CALLS:
        return name.partition(".")[0] in source.imports
    if name in ("urllib.request.urlopen", "urllib.request.Request"):
        return _sends(call)
    module, _, method = name.rpartition(".")
    if module in _HTTP_MODULES & {each.partition(".")[0] for each in source.imports.values()}:
        return method in _HTTP_METHODS or (method == "request" and _names_changing_method(call))
    if not isinstance(call.func, ast.Attribute):
        return False
    method, origin = call.func.attr, origin_of(source, call.func.value)
    if origin in _HTTP_CLIENTS:
        return method in _HTTP_METHODS or (method == "request" and _names_changing_method(call))
    if origin in _AWS_FACTORIES:
        return _changes_aws(method)
    return origin in ("smtplib.SMTP", "smtplib.SMTP_SSL") and method in ("send_message", "sendmail")


def changed_path(source: Source, call: ast.Call) -> ast.expr | None:
    """Return the path of the file or folder that a call changes, if it is not in the scratch folder."""
    path = _target(source, call)
    return None if path is None or _is_scratch(source, path) else path


def _target(source: Source, call: ast.Call) -> ast.expr | None:
    name = source.dotted(call.func) or ""
    if name in _FILE_CALLS | _COPYING_CALLS:
        if name.partition(".")[0] not in source.imports:
            return None
        places = call.args[1:2] if name in _COPYING_CALLS else call.args
        return next((each for each in places if not _is_scratch(source, each)), None)
    if name in ("open", "io.open"):
        return call.args[0] if call.args and _writes(call, mode=1) else None
    if not isinstance(call.func, ast.Attribute):
        return None
    method, receiver = call.func.attr, call.func.value
    if method in _PATH_METHODS:
        return receiver
    if method in _PATH_ONLY_METHODS or (method == "open" and _writes(call, mode=0)):
        return receiver if origin_of(source, receiver) == PATH else None
    return None


def origin_of(source: Source, node: ast.AST) -> str | None:
    """Return the function that made an object, such as `boto3.client`."""
    for _ in range(_MAX_PARTS):
        match node:
            case ast.Await(value=value) | ast.Attribute(value=value) | ast.Subscript(value=value):
                imported = _imported(source, node) if isinstance(node, ast.Attribute) else None
                source, node = imported or (source, value)
            case ast.BinOp(left=left, op=ast.Div()):  # Path("/mnt") / "reports"
                node = left
            case ast.Call(func=function):
                name = source.dotted(function)
                if name in _AWS_FACTORIES | _HTTP_CLIENTS | {"smtplib.SMTP", "smtplib.SMTP_SSL", PATH}:
                    return name
                node = function
            case ast.Name(id=name):
                assigned = only_value(source, node, name)
                imported = _imported(source, node) if assigned is None else (source, assigned)
                if imported is None:
                    return None
                source, node = imported
            case _:
                return None
    return None


def _imported(source: Source, node: ast.expr) -> tuple[Source, ast.expr] | None:
    """Return the value of a variable that another module of the folder defines."""
    name = source.dotted(node)
    return imported_value(source, name) if name is not None and "." in name else None


def _changes_aws(method: str) -> bool:
    if method in _AWS_READS:
        return False
    return method in _AWS_BATCH_VERBS or method.partition("_")[0] in _AWS_VERBS


def _names_changing_method(call: ast.Call) -> bool:
    return any(map(_is_changing_method, _given(call, "method", place=0)))


def _is_changing_method(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and str(node.value).lower() in _HTTP_METHODS


def _given(call: ast.Call, name: str, *, place: int | None) -> list[ast.expr]:
    """Return the argument of a call, by its place or its name."""
    by_place = [] if place is None else call.args[place : place + 1]
    return [*by_place, *(each.value for each in call.keywords if each.arg == name)]


def _sends(call: ast.Call) -> bool:
    """Return whether a request of urllib has a body, or a method that changes something."""
    data = _given(call, "data", place=1)
    has_body = any(not (isinstance(each, ast.Constant) and each.value is None) for each in data)
    return has_body or any(map(_is_changing_method, _given(call, "method", place=None)))


def _writes(call: ast.Call, *, mode: int) -> bool:
    """Return whether a call of `open`, whose mode has this place, can change the file."""
    return any(
        isinstance(each, ast.Constant) and set(str(each.value)) & _WRITING_MODES
        for each in _given(call, "mode", place=mode)
    )


def is_known_path(
    source: Source, path: ast.AST, given: frozenset[str], variables: int = _MAX_VARIABLES
) -> bool:
    """Return whether a path is independent of the parameters of its function."""
    for node in ast.walk(path):
        if isinstance(node, ast.Name) and node.id in given:
            return False
        if isinstance(node, ast.Name):
            value = only_value(source, node, node.id)
            if value is not None and not (variables and is_known_path(source, value, given, variables - 1)):
                return False
    return True


def _is_scratch(source: Source, path: ast.AST, variables: int = _MAX_VARIABLES) -> bool:
    """Return whether a path begins in Lambda's scratch folder: by its text, its variables, or `tempfile`."""
    for node in ast.walk(path):
        match node:
            case ast.Constant(value=str(text)) if text.startswith(_SCRATCH):
                return True
            case ast.Call(func=function) if (source.dotted(function) or "").startswith("tempfile."):
                return True
            case ast.Name(id=name) if variables:
                value = only_value(source, node, name)
                if value is not None and _is_scratch(source, value, variables - 1):
                    return True
    return False
