"""A template, running: gateway, functions, Lambda's Invoke API, KMS, DynamoDB and SQS, all on 127.0.0.1."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_roundtrip.local.cors import Cors
from mcp_roundtrip.local.credentials import Credentials
from mcp_roundtrip.local.dynamodb import FakeDynamoDb
from mcp_roundtrip.local.dynamodb import serve as serve_dynamodb
from mcp_roundtrip.local.environment import Environment, Outcome, process_variables
from mcp_roundtrip.local.gateway import INTEGRATION_TIMEOUT_S, MAX_BODY, Gateway
from mcp_roundtrip.local.http_server import HttpServer
from mcp_roundtrip.local.keys import LocalKeys
from mcp_roundtrip.local.kms import FakeKms
from mcp_roundtrip.local.kms import serve as serve_kms
from mcp_roundtrip.local.lambda_api import MAX_PAYLOAD, LambdaApi
from mcp_roundtrip.local.model import (
    Application,
    Function,
    FunctionFailed,
    Queue,
    Route,
    TemplateError,
    function_arn,
)
from mcp_roundtrip.local.pool import Pool
from mcp_roundtrip.local.sqs import MAX_BODY as MAX_MESSAGE
from mcp_roundtrip.local.sqs import Queues
from mcp_roundtrip.local.template import Template
from mcp_roundtrip.local.watch import Watcher

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a template: see `serve`."""

    parameters: Mapping[str, str]
    fresh: bool
    python: str
    log: Log
    watch_interval_s: float


@dataclass(frozen=True, slots=True)
class _Generation:
    """What one state of the sources came to."""

    application: Application
    pools: Mapping[str, Pool]
    watcher: Watcher


class LocalApp:
    """What `serve` yields; `kms` and `dynamodb` are those that the functions call."""

    def __init__(
        self,
        template: Path,
        url: str,
        endpoints: Mapping[str, str],
        credentials: Credentials,
        kms: FakeKms,
        dynamodb: FakeDynamoDb,
        options: Options,
    ) -> None:
        self.kms = kms
        self.dynamodb = dynamodb
        self._template = template
        self._url = url
        self._endpoints = endpoints
        self._credentials = credentials
        self._options = options
        self._python_version = _version(options.python)
        self._keys = LocalKeys(kms)
        self._lock = threading.Lock()
        self._started: list[str] = []
        self._retired: list[Pool] = []
        self._generation = self._generate(self._read(Template(template, options.parameters)))

    @property
    def endpoints(self) -> Mapping[str, str]:
        """The addresses of the stand-ins, as the environment variables that AWS SDKs read."""
        return self._endpoints

    @property
    def processes_started(self) -> int:
        return len(self._started)

    def url(self, path: str = "/mcp") -> str:
        """The URL of a path of the HTTP API."""
        return self._url + path

    def routes(self) -> tuple[Route, ...]:
        return self._current().application.routes

    def cors(self) -> Cors | None:
        """What its HTTP API allows pages of other origins to do."""
        return Cors.of(self._current().application.cors_configuration)

    def functions(self) -> Mapping[str, Function]:
        return self._current().application.functions

    def queues(self) -> Mapping[str, Queue]:
        return self._current().application.queues

    def invoke(self, function: str, event: Any, *, client_context: Any = None) -> Any:
        """Run a function with an event and return its response.

        Raises FunctionFailed, or KeyError where there is no such function.
        """
        if function not in self.functions():
            raise KeyError(function)
        context = None if client_context is None else json.dumps(client_context)
        outcome = self.run(function, json.dumps(event).encode(), client_context=context)
        if outcome.failed:
            raise FunctionFailed(json.loads(outcome.payload))
        return json.loads(outcome.payload)

    def run(
        self, function: str, payload: bytes, qualifier: str | None = None, client_context: str | None = None
    ) -> Outcome:
        """Run a function with an event in JSON."""
        pool = self._current().pools.get(function)
        if pool is None:  # a change of the template has just removed it
            return _failed("there is no such function any more")
        try:
            arn = function_arn(function, qualifier)
            return pool.invoke(payload, function_arn=arn, client_context=client_context)
        except OSError as error:  # the folder of the code is gone, or the computer has no room for a process
            self._options.log(f"[{function}] no process could be started: {error}")
            return _failed("no process could be started")

    def close(self) -> None:
        """Stop every process."""
        with self._lock:
            for pool in (*self._retired, *self._generation.pools.values()):
                pool.close()

    def _current(self) -> _Generation:
        with self._lock:
            if changed := self._generation.watcher.changed():
                self._options.log(f"{changed} changed: functions start again")
                self._reload()
            return self._generation

    def _reload(self) -> None:
        self._retired += self._generation.pools.values()
        for pool in self._generation.pools.values():
            pool.retire()
        application = self._generation.application
        try:
            application = self._read(Template(self._template, self._options.parameters))
        except TemplateError as error:
            self._options.log(f"the template cannot be used, the one before it goes on: {error}")
        self._generation = self._generate(application)

    def _read(self, template: Template) -> Application:
        self._keys.create(template.keys())
        return template.application(self._keys.arns, self._url, self._endpoints["AWS_ENDPOINT_URL_SQS"])

    def _generate(self, application: Application) -> _Generation:
        pools = {function.name: self._pool(function) for function in application.functions.values()}
        watcher = Watcher(application.sources, time.monotonic, interval_s=self._options.watch_interval_s)
        return _Generation(application, pools, watcher)

    def _pool(self, function: Function) -> Pool:
        variables = process_variables(function, self._endpoints, self._python_version, self._credentials)

        def launch() -> Environment:
            self._started.append(function.name)  # appending is atomic, counting up is not
            return Environment(function, variables, python=self._options.python, log=self._options.log)

        return Pool(launch, fresh=self._options.fresh)


@contextmanager
def serve(
    template: Path,
    *,
    port: int = 0,
    fresh: bool = False,
    parameters: Mapping[str, str] | None = None,
    python: str = sys.executable,
    log: Log = print,
    watch_interval_s: float = 1.0,
    integration_timeout_s: float = INTEGRATION_TIMEOUT_S,
) -> Iterator[LocalApp]:
    """Run a SAM template until the block ends.

    `port` 0 takes a free one. With `fresh`, every invocation gets a process of its own. `parameters` are the
    template's. `python` is the interpreter the functions run on; it needs awslambdaric. `log` takes the lines
    that the functions print, one line per request, and what goes wrong. Sources are looked at before an
    invocation, at most once every `watch_interval_s`. Raises TemplateError, and OSError if the port is taken.
    """
    options = Options(parameters or {}, fresh, python, log, watch_interval_s)
    credentials = Credentials.random()
    app: LocalApp
    with ExitStack() as stack:
        gateway = Gateway(
            lambda: app.routes(),
            lambda *call: app.run(*call),
            log,
            cors=lambda: app.cors(),
            timeout_s=integration_timeout_s,
        )
        stack.callback(gateway.close)
        lambda_api = LambdaApi(lambda: app.functions(), lambda *call: app.run(*call))
        lambda_server = HttpServer(credentials.guard(lambda_api.respond), max_body=MAX_PAYLOAD)
        stack.callback(lambda_server.close)
        front = HttpServer(gateway.respond, port=port, max_body=MAX_BODY)
        stack.callback(front.close)
        queues = Queues(lambda: app.queues(), lambda *call: app.run(*call), log)
        stack.callback(queues.close)
        sqs_server = HttpServer(credentials.guard(queues.respond), max_body=MAX_MESSAGE)
        stack.callback(sqs_server.close)
        kms, dynamodb = FakeKms(), FakeDynamoDb()
        endpoints = {
            # Whatever is not here ends at a refusal, not at AWS.
            "AWS_ENDPOINT_URL": lambda_server.url,
            "AWS_ENDPOINT_URL_LAMBDA": lambda_server.url,
            "AWS_ENDPOINT_URL_KMS": stack.enter_context(serve_kms(kms, credentials=credentials)).endpoint_url,
            "AWS_ENDPOINT_URL_DYNAMODB": stack.enter_context(
                serve_dynamodb(dynamodb, credentials=credentials)
            ),
            "AWS_ENDPOINT_URL_SQS": sqs_server.url,
        }
        app = LocalApp(template.resolve(), front.url, endpoints, credentials, kms, dynamodb, options)
        stack.callback(app.close)
        atexit.register(app.close)  # for whoever leaves the block open
        stack.callback(atexit.unregister, app.close)
        lambda_server.start()
        sqs_server.start()
        front.start()
        yield app


def _failed(message: str) -> Outcome:
    return Outcome(
        json.dumps({"errorType": "Runtime.Unknown", "errorMessage": message}).encode(), failed=True
    )


def _version(python: str) -> str:
    if python == sys.executable:
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    # The interpreter is whatever the caller of `serve` chose to run the functions on.
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
