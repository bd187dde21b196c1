"""The program of `make run DEBUG=1`: runs the handlers of all functions, with the terminal as standard input.

For each event, the function's environment variables, import path, modules and working folder are swapped in,
and swapped out at its end. Each function has its own copy of the layer, so this program must not import it.
Other packages are shared.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from awslambdaric.lambda_context import LambdaContext  # type: ignore[import-untyped]
from awslambdaric.lambda_runtime_marshaller import to_json  # type: ignore[import-untyped]

LAYER_PACKAGE = "mcp_roundtrip"

NO_LIMIT = 24 * 3600

LIMITS: dict[str, tuple[str, Any]] = {
    f"{LAYER_PACKAGE}.entry.handler": ("request_deadline_ms", lambda now_ms, *_: now_ms + NO_LIMIT * 1000),
    f"{LAYER_PACKAGE}.server.invocation": ("MAX_OWNER_TIMEOUT_S", NO_LIMIT),
}
"""The layer's time limits, which a person at the debugger's prompt would exceed."""


LOG_TEXT = Path(__file__).with_name("log_text.py")


class ReadableOutput:
    """Standard output whose JSON lines of the library are readable, as in `make run` without DEBUG=1."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # By its path, because importing the package would import the layer.
        spec = spec_from_file_location("mcp_roundtrip_log_text", LOG_TEXT)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[spec.name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        self._readable = module.readable

    def write(self, text: str) -> int:
        """Write a text; a JSON object that is a line as what a person should see of it."""
        if not text.startswith("{") or not text.endswith("\n"):
            return self._stream.write(text)
        if found := self._readable(text.rstrip("\n")):
            self._stream.write(f"{found.level} {found.text}\n".lstrip())
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LoadedFunction:
    """A function with its own modules, variables and import path."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.import_key = import_key(message)
        self.code: str = message["code"]
        self.own: list[str] = message["own"]
        self.variables: dict[str, str] = message["variables"]
        self.path = self.variables["PYTHONPATH"].split(os.pathsep)
        self.modules: dict[str, ModuleType] = {}
        self.handler: Callable[[Any, Any], Any] | None = None

    def owns(self, name: str, module: ModuleType) -> bool:
        """Return whether another function may have a different module of this name."""
        if name.partition(".")[0] == LAYER_PACKAGE:
            return True
        places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        return any(place.startswith(own + os.sep) for place in places for own in self.own)

    def load(self, handler: str) -> Callable[[Any, Any], Any]:
        """Import the handler if necessary, and return it."""
        if self.handler is None:
            module, _, name = handler.rpartition(".")
            invalidate_caches()
            self.handler = getattr(import_module(module.replace("/", ".")), name)
            for limited, (attribute, value) in LIMITS.items() if LAYER_PACKAGE in sys.modules else ():
                module_with_limit = import_module(limited)
                getattr(module_with_limit, attribute)  # fails if the layer renames it
                setattr(module_with_limit, attribute, value)
        return self.handler


def import_key(message: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a message that require a new import when they change."""
    return message["handler"], message["code"], message["variables"]


class Process:
    """Runs handlers. Of nested invocations, the innermost one runs."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._path = list(sys.path)
        self._functions: dict[str, LoadedFunction] = {}
        self._running: list[LoadedFunction] = []

    def serve(self) -> None:
        """Handle messages until the other side closes the connection."""
        with self._connection.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "forget" in message:
                    self._functions.pop(message["forget"], None)
                else:
                    threading.Thread(target=self._run, args=(message,), daemon=True).start()

    def _run(self, message: dict[str, Any]) -> None:
        function = self._functions.get(message["function"])
        if function is None or function.import_key != import_key(message):
            function = self._functions[message["function"]] = LoadedFunction(message)
        failed = False
        with self._swapped_in(function):
            try:
                payload = to_json(
                    function.load(message["handler"])(json.loads(message["event"]), lambda_context(message))
                )
            except BaseException as error:  # including SystemExit
                traceback.print_exc()
                failed = True
                payload = json.dumps({"errorType": type(error).__name__, "errorMessage": str(error)})
        # Sent only after the swap: the waiting function resumes with its own modules.
        answer = {"id": message["id"], "payload": payload, "failed": failed}
        with self._sending:
            self._connection.sendall(json.dumps(answer).encode() + b"\n")

    @contextmanager
    def _swapped_in(self, function: LoadedFunction) -> Iterator[None]:
        self._swap_out()
        self._running.append(function)
        self._swap_in()
        try:
            yield
        finally:
            self._swap_out()
            self._running.pop()
            self._swap_in()

    def _swap_in(self) -> None:
        if self._running:
            function = self._running[-1]
            sys.modules.update(function.modules)
            sys.path[:] = [*function.path, *self._path]
            os.environ.clear()
            os.environ.update(function.variables)
            os.chdir(function.code)
            level = function.variables.get("AWS_LAMBDA_LOG_LEVEL", "")
            logging.root.setLevel(level if level in logging.getLevelNamesMapping() else logging.WARNING)

    def _swap_out(self) -> None:
        if self._running:
            function = self._running[-1]
            loaded = [*sys.modules.items()]
            function.modules = {name: module for name, module in loaded if function.owns(name, module)}
            for name in function.modules:
                del sys.modules[name]


def lambda_context(message: dict[str, Any]) -> LambdaContext:
    """Return the Lambda context of an invocation."""
    given = message["client_context"]
    client_context = None if given is None else json.loads(given)
    return LambdaContext(message["request_id"], client_context, None, message["deadline_ms"], message["arn"])


def main() -> None:
    """Serve the socket whose file descriptor is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops this one
    sys.stdout = ReadableOutput(sys.stdout)
    logging.basicConfig(format="[%(levelname)s] %(name)s: %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)  # it reports each endpoint at the level INFO
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        Process(connection).serve()
    os._exit(0)  # does not wait for running handlers: their result has no reader


if __name__ == "__main__":
    main()
