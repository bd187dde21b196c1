"""MRT006: known side effects outside steps: calls of HTTP, AWS and mail clients, processes and files."""

import ast
from collections.abc import Iterator
from typing import Final

from mcp_roundtrip_tools.lint.contexts import Module, has_context
from mcp_roundtrip_tools.lint.control_flow import certain_calls, runs_again
from mcp_roundtrip_tools.lint.name_resolution import called_function, definition_of
from mcp_roundtrip_tools.lint.parsed_module import (
    Definition,
    FunctionNode,
    Source,
    argument,
    arguments,
    own_nodes,
    parameters,
    returned,
)

_PROCESSES: Final = frozenset(
    {
        *(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")),
        *("os.system", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    }
)
_FILE_CALLS: Final = {
    **dict.fromkeys([f"os.{name}" for name in ("remove", "unlink", "rename", "replace", "rmdir")], 0),
    **dict.fromkeys([f"shutil.{name}" for name in ("rmtree", "move")], 0),
    **dict.fromkeys([f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree")], 1),
}
"""Functions that change files, with the place of the first path that is changed."""

_REQUESTS: Final = frozenset({"urllib.request.urlopen", "urllib.request.Request"})
_HTTP_MODULES: Final = frozenset({"requests", "httpx"})
_HTTP_CLIENTS: Final = frozenset(
    {"requests.Session", "requests.session", "httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession"}
)
_MAIL: Final = frozenset({"smtplib.SMTP", "smtplib.SMTP_SSL"})
_THREAD: Final = "asyncio.to_thread"
PATH: Final = "pathlib.Path"
GENERATORS: Final = frozenset({"random.Random", "random.SystemRandom", "numpy.random.default_rng"})

_PATH_METHODS: Final = frozenset({"write_text", "write_bytes", "unlink", "rmdir"})
"""Methods of `pathlib.Path` whose names no other common type has."""

_PATH_ONLY_METHODS: Final = frozenset({"rename", "replace", "touch"})
"""Methods of `pathlib.Path` whose names other types have, too."""

_HTTP_METHODS: Final = frozenset({"post", "put", "patch", "delete"})
_AWS_FACTORIES: Final = frozenset(
    {"boto3.client", "boto3.resource", "boto3.Session", "boto3.session.Session", "aioboto3.Session"}
)
_AWS_VERBS: Final = frozenset(
    {
        *("accept", "activate", "add", "allocate", "associate", "attach", "authorize", "cancel", "change"),
        *("complete", "copy", "create", "deactivate", "delete", "deregister", "detach", "disable"),
        *("disassociate", "enable", "import", "invoke", "modify", "post", "publish", "purge", "put"),
        *("reboot", "register", "reject", "release", "remove", "replace", "request", "reset", "restart"),
        *("restore", "resume", "retry", "revoke", "rollback", "rotate", "run", "send", "set", "start"),
        *("stop", "submit", "subscribe", "tag", "terminate", "transact", "unsubscribe", "untag", "update"),
        *("upload", "write"),
    }
)
_AWS_BATCHES: Final = frozenset({"batch_write_item", "batch_delete", "batch_execute_statement"})
_AWS_READS: Final = frozenset({"start_query", "set_stream_logger", "transact_get_items", "replace"})
"""Methods that change nothing although their names begin so; `replace` is one of a time."""

_OBJECT_METHODS: Final = frozenset(
    {
        *("client", "resource", "batch_writer", "get_queue_by_name", "all", "filter", "limit", "page_size"),
        *("joinpath", "resolve", "absolute", "expanduser", "with_name", "with_suffix", "relative_to"),
    }
)
"""Methods of clients and paths that return a client, a resource or a path. Others return data."""

_ORIGINS: Final = _AWS_FACTORIES | _HTTP_CLIENTS | _MAIL | GENERATORS | {PATH}
_WRITING_MODES: Final = frozenset("wax+")
_SCRATCH: Final = "/tmp"  # noqa: S108  # Lambda's folder for scratch files: writing there again is harmless

_MAX_VARIABLES: Final = 3
"""Variables that are followed from a path to the scratch folder."""

_MAX_PARTS: Final = 50
"""Parts of expressions that are followed to what made an object. Variables may refer to each other."""


def _effect_of(source: Source, call: ast.Call) -> str | None:
    """Return the function that changes something, as the author wrote it; None if a call changes nothing."""
    if source.dotted(call.func) == _THREAD and call.args:
        call = ast.Call(func=call.args[0], args=call.args[1:], keywords=call.keywords)
    return ast.unparse(call.func) if _is_client_call(source, call) or _changed_path(source, call) else None


def _can_read(source: Source, call: ast.Call) -> bool:
    """Return whether such a call may only read: a process, or a POST, with which APIs search and log in."""
    name = source.dotted(call.func) or ast.unparse(call.func)
    is_request = name.rpartition(".")[2] in ("post", "request", "to_thread")
    return is_request or name in _PROCESSES | _REQUESTS


def _is_client_call(source: Source, call: ast.Call) -> bool:
    """Return whether a call starts a process, or sends a request that changes something."""
    name = source.dotted(call.func) or ""
    module, _, function = name.rpartition(".")
    if name in _PROCESSES:
        return True
    if name in _REQUESTS:
        return _sends(call)
    if module in _HTTP_MODULES:
        return _changes_resource(function, call)
    if not isinstance(call.func, ast.Attribute):
        return False
    method, origin = call.func.attr, origin_of(source, call.func.value)
    if origin in _HTTP_CLIENTS:
        return _changes_resource(method, call)
    if origin in _AWS_FACTORIES:
        verb = method.removeprefix("admin_").partition("_")[0]  # Cognito's admin_create_user
        return method not in _AWS_READS and (method in _AWS_BATCHES or verb in _AWS_VERBS)
    return origin in _MAIL and method in ("send_message", "sendmail")


def _changed_path(source: Source, call: ast.Call) -> ast.expr | None:
    """Return the path of the file or folder that a call changes, if it is not in the scratch folder."""
    name = source.dotted(call.func) or ""
    paths: list[ast.expr] = []
    if name in _FILE_CALLS:
        paths = call.args[_FILE_CALLS[name] : 2]
    elif name in ("open", "io.open", "aiofiles.open"):
        paths = call.args[:1] if _writes(call, mode=1) else []
    elif isinstance(call.func, ast.Attribute):
        method, receiver = call.func.attr, call.func.value
        can_change = method in _PATH_ONLY_METHODS or (method == "open" and _writes(call, mode=0))
        if method == "replace" and len(arguments(call)) > 1:
            can_change = False  # that of a text, such as the path's name
        if method in _PATH_METHODS or (can_change and origin_of(source, receiver) == PATH):
            paths = [receiver]
    return next((each for each in paths if not _is_scratch(source, each)), None)


def origin_of(source: Source, node: ast.AST) -> str | None:
    """Return the function that made an object, such as `boto3.client`, or the type of a parameter."""
    for _ in range(_MAX_PARTS):
        source, node = definition_of(source, node)
        match node:
            case ast.Await(value=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.BinOp(left=left, op=ast.Div()):  # Path("/mnt") / "reports"
                node = left
            case ast.Call(func=function) if (name := source.dotted(function)) in _ORIGINS:
                return name
            case ast.Call(func=function):
                source, node = definition_of(source, function)
                if isinstance(node, ast.Attribute) and not _returns_object(node.attr):
                    return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() if len(values := returned(node)) == 1:
                [node] = values
            case ast.arg(annotation=ast.expr() as annotation):
                name = source.dotted(annotation)
                return name if name in _ORIGINS else None
            case _:
                return None
    return None


def _returns_object(method: str) -> bool:
    return method in _OBJECT_METHODS or method[:1].isupper()  # boto3.resource("dynamodb").Table(…)


def _changes_resource(method: str, call: ast.Call) -> bool:
    return method in _HTTP_METHODS or (method == "request" and _names_changing_method(call, place=0))


def _names_changing_method(call: ast.Call, *, place: int | None) -> bool:
    method = argument(call, place, "method")
    return isinstance(method, ast.Constant) and str(method.value).lower() in _HTTP_METHODS


def _sends(call: ast.Call) -> bool:
    """Return whether a request of urllib has a body, or a method that changes something."""
    data = argument(call, 1, "data")
    has_body = data is not None and not (isinstance(data, ast.Constant) and data.value is None)
    return has_body or _names_changing_method(call, place=None)


def _writes(call: ast.Call, *, mode: int) -> bool:
    """Return whether a call of `open`, whose mode has this place, can change the file."""
    given = argument(call, mode, "mode")
    return isinstance(given, ast.Constant) and bool(set(str(given.value)) & _WRITING_MODES)


def _is_known_path(source: Source, path: ast.AST, given: frozenset[str]) -> bool:
    """Return whether a path is independent of the parameters of its function."""
    names = (each.node.id for each in _with_values(source, path) if isinstance(each.node, ast.Name))
    return given.isdisjoint(names)


def _is_scratch(source: Source, path: ast.AST) -> bool:
    """Return whether a path begins in Lambda's scratch folder: by its text, its variables, or `tempfile`."""
    for each in _with_values(source, path):
        match each.node:
            case ast.Constant(value=str(text)) if text.startswith(_SCRATCH):
                return True
            case ast.Call(func=function) if (each.source.dotted(function) or "").startswith("tempfile."):
                return True
    return False


def _with_values(
    source: Source, node: ast.AST, variables: int = _MAX_VARIABLES
) -> Iterator[Definition[ast.AST]]:
    """Yield the nodes of an expression, with what its variables are assigned in place of these."""
    made = definition_of(source, node)
    if variables and made.node is not node and isinstance(made.node, ast.expr):
        yield from _with_values(made.source, made.node, variables - 1)
    else:
        yield Definition(source, node)
        for child in ast.iter_child_nodes(node):
            yield from _with_values(source, child, variables)


_CHANGING_WORDS: Final = frozenset(
    {
        *("add", "approve", "book", "buy", "cancel", "charge", "create", "delete", "deploy"),
        *("insert", "notify", "order", "pay", "post", "publish", "refund", "register", "remove"),
        *("save", "send", "store", "submit", "transfer", "update", "upload"),
    }
)
"""First words of functions that do more than read."""


def check(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Find side effects after which a call of the context can end the round."""
    for function, node in module.calls():
        effect, shown = _effect_of(module.source, node), ast.unparse(node.func)
        inner = None if effect else _effect_inside(module.source, node, set())
        if (effect or inner) and runs_again(module, function, node):
            reason = f"{shown}(…) calls {inner}(…) and" if inner else f"{effect}(…)"
            step = f'{function.given[0]}.step("…", {effect or shown}, …)'
            message = (
                f"{reason} runs in every round, because a later call ends the round: move it into a step, "
                f"as in `{step}`, or behind the last call of the context"
            )
            yield node, message


def _effect_inside(source: Source, call: ast.Call, seen: set[ast.AST]) -> str | None:
    """Return the effect that the called function certainly has. `seen`: the functions that are followed."""
    called = called_function(source, call)
    if called is None or called.node in seen or not _runs_plainly(source, call, called):
        return None
    seen.add(called.node)
    given = frozenset(each.arg for each in parameters(called.node))
    for node in certain_calls(called.source, called.node):
        path, effect = _changed_path(called.source, node), _effect_of(called.source, node)
        if path is not None and not _is_known_path(called.source, path, given):
            continue  # the caller may pass a path in the scratch folder
        if effect is None or _only_reads(called, node):
            effect = _effect_inside(called.source, node, seen)
        if effect is not None:
            return effect
    return None


def _runs_plainly(source: Source, call: ast.Call, called: Definition[FunctionNode]) -> bool:
    """Return whether the call runs the function's body now, without a context, a cache or a generator."""
    if has_context(called.source, called.node):
        return False  # checked by itself
    if any("cache" in ast.unparse(each).lower() for each in called.node.decorator_list):
        return False
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(called.node)):
        return False
    outer = source.parents[call]
    is_scheduled = isinstance(outer, ast.Call) and (source.dotted(outer.func) or "").startswith("asyncio.")
    return isinstance(called.node, ast.FunctionDef) or isinstance(outer, ast.Await) or is_scheduled


def _only_reads(function: Definition[FunctionNode], call: ast.Call) -> bool:
    """Return whether the effect may be none: its result is used, and the function's name tells no change."""
    outer = function.source.parents[call]
    if isinstance(outer, ast.Await):
        outer = function.source.parents[outer]
    word = function.node.name.strip("_").partition("_")[0]
    is_used = not isinstance(outer, ast.Expr)
    return is_used and word not in _CHANGING_WORDS and _can_read(function.source, call)
