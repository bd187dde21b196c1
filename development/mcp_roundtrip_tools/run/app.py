"""A running template: invokes its functions, and reloads it when its sources change."""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.settings import read_variables
from mcp_roundtrip_tools.run.api_gateway.routing import shortest_path
from mcp_roundtrip_tools.run.execution.debugged_runtime import NO_LIMIT_S
from mcp_roundtrip_tools.run.execution.pools import (
    Environments,
    Pools,
    RecordedEnvironment,
    affected_functions,
)
from mcp_roundtrip_tools.run.execution.requirements import install_requirements
from mcp_roundtrip_tools.run.execution.runtime_api import Fault, InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.execution.runtime_process import process_variables
from mcp_roundtrip_tools.run.fresh_catalogs import FreshCatalogs
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.observation.recorder import Listener, RunRecorder
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, walk
from mcp_roundtrip_tools.run.options import Addresses, Options
from mcp_roundtrip_tools.run.project import Project
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials
from mcp_roundtrip_tools.run.services.kms import DEVELOPMENT_KEYS, FakeKms, KeySet
from mcp_roundtrip_tools.run.services.ministack import Emulator
from mcp_roundtrip_tools.template.functions import has_settings
from mcp_roundtrip_tools.template.local_names import key_name
from mcp_roundtrip_tools.template.model import (
    REGION,
    Application,
    Function,
    FunctionFailed,
    Route,
    TemplateError,
    short_name,
)
from mcp_roundtrip_tools.template.reader import Template


class LocalApp:
    """A running template, after `open`.

    `kms` and `emulator` are the services that its functions call, `credentials` is the access key that these
    require. `recorder` has the requests and the invocations of this run, and `environments` its processes.
    `addresses` says where its servers listen: `console_url`, with a slash at the end, and `issuer`, that of
    the run's tokens, are None if they are not served, and `endpoints` are the emulated services by the
    environment variables that AWS SDKs read.
    """

    def __init__(self, template: Path, options: Options, listeners: Sequence[Listener], copies: Path) -> None:
        self.template = template
        self.folder = template.parent
        self.recorder = RunRecorder(*listeners)
        self.kms = FakeKms()
        self.emulator = Emulator(self.recorder.note)
        self.credentials = Credentials.from_variables(options.variables) or Credentials.random()
        self._options = options
        self._keys = DEVELOPMENT_KEYS if options.development_keys else KeySet()
        self.environments = Environments(self.recorder)
        self._lock = threading.Lock()
        self._serial = threading.Lock() if options.debug else nullcontext()
        self._catalogs = FreshCatalogs(copies, self.recorder.note, options.variables)
        self._pools = Pools(self._launch, self.environments, fresh=options.fresh)

    def open(self, addresses: Addresses) -> None:
        """Read the template, whose functions get these addresses. Raises TemplateError."""
        self.addresses = addresses
        self.console_url, self.issuer = addresses.console_url, addresses.issuer
        self.endpoints = {"AWS_ENDPOINT_URL": addresses.aws_url}
        self._project = Project(self._read, self._options.watch_interval_s, self.recorder.note)
        self._catalogs.build(self._project.application)

    def audience(self) -> str:
        """Return the URI of the endpoint, for which access tokens are."""
        found = {self.settings(name).get("MCP_AUDIENCE", "") for name in self.functions()}
        return min(found - {""}, default=self.addresses.url)

    @cached_property
    def aws(self) -> AwsClients:
        """Creates clients of the emulated services, whose requests are not recorded."""
        region = {"AWS_DEFAULT_REGION": REGION}
        return AwsClients(environment={**self.credentials.variables(), **region, **self.endpoints})

    @cached_property
    def dynamodb(self) -> AwsClient:
        """A client of the emulated DynamoDB."""
        return self.aws.client("dynamodb")

    def function_variables(self, function: str) -> dict[str, str]:
        """Return the variables of a function: the template's, and those given to it. Raises KeyError."""
        return {**self.functions()[function].environment, **self._options.variables}

    def settings(self, function: str) -> Mapping[str, str]:
        """Return the variables of a function with the settings that functions share. Raises KeyError."""
        return read_variables(self.function_variables(function))

    def code_folder(self, function: str) -> Path:
        """Return the folder that a function runs from: a copy, if its catalog is stale. Raises KeyError."""
        return self._catalogs.code_folder(self.functions()[function])

    def invocation_of(self, request: Request) -> RecordedInvocation | None:
        """Return the invocation that the environment serves which signed a request to an AWS service."""
        return self.environments.invocation_of(self.credentials.environment_of(request) or "")

    def key_name(self, key_id: str) -> str:
        """Return the name of a KMS key of the template."""
        return key_name(key_id, self._keys.name)

    def url(self, path: str = "/mcp") -> str:
        """Return the URL of a path of the HTTP API."""
        return self.addresses.url + path

    def endpoint_path(self) -> str:
        """Return the path of the MCP endpoint. Other functions of the template may have routes, too."""
        application = self.current()
        servers = {name for name, each in application.functions.items() if has_settings(each.environment)}
        routes = [route for route in application.routes if route.function in servers]
        return shortest_path(routes or application.routes)

    def routes(self) -> tuple[Route, ...]:
        return self.current().routes

    def functions(self) -> Mapping[str, Function]:
        return self.current().functions

    def left_out(self) -> Mapping[str, str]:
        """Return why functions of the template do not run here, by name."""
        return self.current().left_out

    def invoke(self, function: str, event: Any, *, client_context: Any = None) -> Any:
        """Return the response to an event. Raises FunctionFailed, and KeyError for an unknown function."""
        if function not in self.functions() and function not in self.left_out():
            raise KeyError(function)
        context = None if client_context is None else json.dumps(client_context)
        result = self.run(InvokeRequest(function, json.dumps(event).encode(), client_context=context))
        if result.failed:
            raise FunctionFailed(json.loads(result.payload))
        return json.loads(result.payload)

    def run(self, invocation: InvokeRequest) -> InvocationResult:
        """Run a function; in debug mode, one at a time."""
        with self._serial:
            return self.run_nested(invocation)

    def run_nested(self, invocation: InvokeRequest) -> InvocationResult:
        """Run a function, also while another function waits for it."""
        application, function = self.current(), invocation.function
        if reason := application.left_out.get(function):
            self.recorder.note(f"[{function}] does not run here: {reason}")
            return Fault("Runtime.Unknown", reason).result()
        found = application.functions.get(function)
        if found is None:  # the template has just changed
            return Fault("Runtime.Unknown", "the function was removed from the template").result()
        try:
            code = self._catalogs.code_folder(found)
            with self._lock:
                pool = self._pools.pool_for(found, code)
            return pool.invoke(invocation)
        except OSError as error:  # the code's folder is missing, or out of memory
            self.recorder.note(f"[{function}] no process could be started: {error}")
            return Fault("Runtime.Unknown", "no process could be started").result()

    def close(self) -> None:
        """Stop every process."""
        with self._lock:
            self._pools.close()
            self._catalogs.close()

    def current(self) -> Application:
        """Return the application, reloaded if its sources have changed and are valid."""
        with self._lock:
            before = self._project.application
            if changed := self._project.reload():
                after = self._project.application
                names = affected_functions(before.functions, after.functions, changed)
                self._pools.retire([*names, *(before.functions.keys() - after.functions.keys())])
                self._catalogs.build(after)
                hint = "" if names else ". For a change of Metadata.LocalRun, start make run again"
                restarted = ", ".join(map(short_name, names)) or "no function"
                self.recorder.note(f"{min(changed)} changed: {restarted} restarted{hint}")
            return self._project.application

    def _read(self) -> Application:
        """Return the application as it is now, with requirements installed. Raises TemplateError."""
        parameters = self._options.parameters
        if self.issuer is not None:
            parameters = {"AuthMode": "bearer", **parameters, "TokenIssuer": self.issuer.url}
        template, addresses = Template(self.template, parameters), self.addresses
        found = template.application(
            self._options.variables, addresses.url, addresses.aws_url, self._keys.name
        )
        self._keys.create(self.kms, found.keys)
        python, cache = self._options.python, self.folder / ".cache/requirements"
        functions, left_out = dict[str, Function](), dict(found.left_out)
        for name, function in found.functions.items():
            try:
                functions[name] = install_requirements(function, python, cache, self.recorder.note)
            except TemplateError as error:
                left_out[name] = str(error)
        if left_out and not functions:
            reasons = "\n".join(left_out.values())
            raise TemplateError(f"no function of {self.template} can run on this computer:\n{reasons}")
        self.emulator.declare(found.storage)
        return replace(found, functions=functions, left_out=left_out)

    def _launch(self, function: Function) -> RecordedEnvironment:
        suffix, terminal = self.environments.new_suffix(), None
        variables = self._process_variables(function, suffix)
        if self._options.debug:
            function = replace(function, timeout_s=NO_LIMIT_S)
            terminal = os.ttyname(0) if os.isatty(0) else None
        return RecordedEnvironment(
            function, variables, self.environments, suffix, python=self._options.python, terminal=terminal
        )

    def _process_variables(self, function: Function, access_key_suffix: str) -> dict[str, str]:
        """Return the variables of a process of a function."""
        credentials = self.credentials.for_environment(access_key_suffix).variables()
        return process_variables(function, self.endpoints, credentials, self._options.variables)


@dataclass(frozen=True, slots=True)
class Invoked:
    """`payload` is JSON: the response, or the error. `log_lines` are also those of functions it called."""

    function: str
    payload: str
    failed: bool
    log_lines: list[str]


def invoke_with_log(app: LocalApp, function: str, event: str) -> Invoked:
    """Run a function once; return also what it printed."""
    invocation = InvokeRequest(function, event.encode())
    result, recorded = app.run(invocation), app.recorder.invocation(invocation.request_id)
    lines = [] if recorded is None else [line for each in walk(recorded) for line in each.log_lines]
    return Invoked(
        function,
        result.payload.decode(),
        result.failed,
        [line.text for line in sorted(lines, key=lambda line: line.at_ms)],
    )
