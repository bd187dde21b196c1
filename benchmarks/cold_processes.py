"""Run Lambda functions in cold processes, and time the stages of a call.

Each function is a fresh process of Lambda's own runtime client under a CPU limit. The Runtime API, Lambda's
Invoke and KMS are emulated over HTTP by this process, outside the limit.
"""

from __future__ import annotations

import resource
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from cryptography.hazmat.primitives.asymmetric import ec

from cpu_limits import CpuLimits
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.execution.runtime_process import ProcessEnvironment, process_variables
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials
from mcp_roundtrip_tools.run.services.kms import FakeKms, respond
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import REGION, Function
from measure import BenchmarkError
from stub_server import serve_stub

TIMEOUT_S = 60
OWNER = "tool"
"""The function that the front door invokes."""

Owner = Callable[[bytes], InvocationResult]


@dataclass(frozen=True, slots=True)
class Sample:
    """The milliseconds of each stage of a call, and the user and system time of its processes."""

    stages: Mapping[str, float]
    cpu_ms: float

    @property
    def total_ms(self) -> float:
        """From the start of the first process to the response."""
        return sum(self.stages.values())


class Stopwatch:
    """Notes when the stages of a call end."""

    def __init__(self) -> None:
        self._stages: dict[str, float] = {}
        self._cpu_ms = _cpu_ms()
        self._last = perf_counter()

    def mark(self, stage: str) -> None:
        now = perf_counter()
        self._stages[stage] = (now - self._last) * 1000
        self._last = now

    def sample(self) -> Sample:
        """Return the stages. The processes must have been stopped."""
        return Sample(self._stages, _cpu_ms() - self._cpu_ms)


def _cpu_ms() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


class ColdLambda:
    """Runs each invocation in a fresh process. `endpoints` are the AWS_ENDPOINT_URL variables.

    `owner` answers Lambda's Invoke.
    """

    def __init__(self, limits: CpuLimits, endpoints: Mapping[str, str], keys: Mapping[str, str]) -> None:
        self.limits = limits
        self.owner: Owner | None = None
        self._endpoints = endpoints
        self._keys = keys
        self._credentials = Credentials.random()
        self._processes: list[ProcessEnvironment] = []
        self._output: list[str] = []

    def invoke(self, function: Function, payload: bytes, watch: Stopwatch) -> InvocationResult:
        """Initialize a process and invoke it. Raise BenchmarkError if that fails."""
        variables = process_variables(function, self._endpoints, self._credentials.variables(), self._keys)
        python = self.limits.interpreter(function.name, function.memory_mb)
        process = ProcessEnvironment(function, variables, python=python, log=self._output.append)
        self._processes.append(process)
        failure = process.start()
        watch.mark(f"{function.name} init")
        result = failure or process.invoke(InvokeRequest(function.name, payload))
        if result.failed:
            output = "\n".join(self._output)
            raise BenchmarkError(f"{function.name}: {result.payload.decode()}\n{output}")
        return result

    def invoke_owner(self, payload: bytes) -> InvocationResult:
        assert self.owner is not None
        return self.owner(payload)

    def stop(self) -> None:
        """Stop all processes."""
        for process in self._processes:
            process.stop()
        self._processes.clear()
        self._output.clear()


@contextmanager
def cold_lambda(limits: CpuLimits) -> Iterator[ColdLambda]:
    """Serve Invoke and KMS until the block ends."""
    kms = FakeKms(region=REGION)
    endpoints: dict[str, str] = {}
    found = ColdLambda(limits, endpoints, _key_variables(kms))
    function = Function(OWNER, "app.handler", Path(), (), {}, TIMEOUT_S, 0)
    api = LambdaApi(lambda: {OWNER: function}, lambda invocation: found.invoke_owner(invocation.payload))
    with serve_stub(api.respond) as invoke_url, serve_stub(partial(respond, kms)) as kms_url:
        endpoints["AWS_ENDPOINT_URL_LAMBDA"] = invoke_url
        endpoints["AWS_ENDPOINT_URL_KMS"] = kms_url
        try:
            yield found
        finally:
            found.stop()


def _key_variables(kms: FakeKms) -> dict[str, str]:
    """Create the keys of template.yaml."""
    return {
        "MCP_STATE_KEY_ARN": kms.import_key(ec.generate_private_key(ec.SECP256R1())),
        "MCP_STATE_ENCRYPTION_KEY_ARN": kms.import_key(secrets.token_bytes(32)),
    }
