"""Every built function with its layer in AWS's Runtime Interface Emulator with AWS's runtime client.

ministack provides KMS and DynamoDB. support/lambda_emulator.py describes how the emulator differs from Lambda
and how the code is made read-only. SnapStart and streamed responses are not emulated.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import pytest

from mcp_roundtrip.protocol.constants import META_PROTOCOL_VERSION, PROTOCOL_VERSION
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.sam_local.command import Invoke
from mcp_roundtrip_tools.template.yaml_reader import load
from support import dynamodb_clients, kms_clients, lambda_emulator, skips
from support.extension_schemas import assert_valid
from support.lambda_emulator import Artefact, Environment, started
from support.lambda_runtime import runtime
from support.layers import layer_of_runtime
from support.project import ROOT, logical_ids
from support.sam_build import NATIVE_RUNTIME, Built
from support.sample_events import (
    ROUNDS,
    SETTINGS,
    STABLE,
    Outcome,
    function_of,
    handler_of,
    outcome,
    rounds_of,
    stable_events,
)

RUNTIMES = load(ROOT / "template.yaml")["Parameters"]["PythonRuntime"]["AllowedValues"]

LOGICAL_IDS = logical_ids()

LONGEST = "provision/call.json"
"""Two questions, and then a task."""


def artefact(built: Built, function: str) -> Artefact:
    found = runtime(built.runtime)
    if found is None:
        skips.skip(skips.RUNTIME, built.runtime)
    handler = f"app.{handler_of(function)[1]}"
    return Artefact(built.function(LOGICAL_IDS[function]), built.layer, handler, found)


@pytest.fixture(scope="module")
def variables(account):
    """Yield a configuration with new keys and tables and stand-ins of services, without functions."""
    keys, tables = account.client("kms"), account.client("dynamodb")
    with serve_stand_ins(ROOT / "template.yaml") as services:
        yield {
            **services,
            **SETTINGS,
            "MCP_STATE_KEY_ARN": kms_clients.signing_key(keys),
            "MCP_STATE_ENCRYPTION_KEY_ARN": kms_clients.mac_key(keys),
            "MCP_TASK_TABLE": dynamodb_clients.new_table(tables),
            "APPROVAL_TABLE": dynamodb_clients.new_table(tables),
            **account.variables,
        }


@pytest.fixture(scope="module")
def cold(built, variables):
    """Return a function that invokes a built function in a new execution environment."""

    def invoke(function: str, event: Any) -> Any:
        with started(artefact(built, function), variables) as environment:
            return environment.invoke(event)

    return invoke


@contextmanager
def warm_environments(built: Built, variables: Mapping[str, str]) -> Iterator[Invoke]:
    """Yield a function that invokes a built function in its only execution environment."""
    with ExitStack() as stack:

        @cache
        def environment(function: str) -> Environment:
            return stack.enter_context(started(artefact(built, function), variables))

        yield lambda function, event: environment(function).invoke(event)


def assert_outcomes(
    played: Mapping[str, Sequence[tuple[Any, Any]]], table: Mapping[str, tuple[Outcome, ...]]
) -> None:
    """Compare the outcomes of the events of each file. `played` has the events with their responses."""
    found = {file: tuple(outcome(answer) for _, answer in rounds) for file, rounds in played.items()}
    assert found == table
    for event, answer in chain.from_iterable(played.values()):
        for message in messages(answer) if is_modern(event) else ():
            assert_valid(body_of(event)["method"], {"id": 0, **message})


def body_of(event: Any) -> Any:
    return json.loads(event["body"]) if "body" in event else event


def is_modern(event: Any) -> bool:
    """Return whether a message is of the revision of the models."""
    try:
        return bool(body_of(event)["params"]["_meta"][META_PROTOCOL_VERSION] == PROTOCOL_VERSION)
    except (ValueError, LookupError):
        return False


def messages(answer: Any) -> list[Any]:
    match answer:
        case {"body": str(body), "headers": {"content-type": "application/json"}}:
            return [json.loads(body)]
        case {"jsonrpc": _}:
            return [answer]
    return []


def test_a_state_is_resumed_in_another_execution_environment(cold):
    assert_outcomes({LONGEST: rounds_of(cold, LONGEST)}, {LONGEST: ROUNDS[LONGEST]})


def test_every_function_responds_to_all_events_from_its_cold_start_on(built, variables):
    assert {*map(function_of, STABLE)} == LOGICAL_IDS.keys()
    with warm_environments(built, variables) as warm:
        played = {file: [(event, warm(function_of(file), event))] for file, event in stable_events().items()}
        rounds = {file: rounds_of(warm, file) for file in ROUNDS}
    assert_outcomes(played, {file: (expected,) for file, expected in STABLE.items()})
    assert_outcomes(rounds, ROUNDS)


@pytest.mark.parametrize("name", [name for name in RUNTIMES if name != NATIVE_RUNTIME])
def test_other_runtimes_complete_a_call_of_their_own(name, built, variables):
    if runtime(name) is None:
        skips.skip(skips.RUNTIME, name)
    # sam copies functions for each runtime alike.
    with warm_environments(replace(built, runtime=name, layer=layer_of_runtime(name)), variables) as warm:
        assert_outcomes({LONGEST: rounds_of(warm, LONGEST)}, {LONGEST: ROUNDS[LONGEST]})


IMPORT = "import app, jwt, cryptography, pydantic, mcp_roundtrip.aws.kms"


def test_a_cold_start_compiles_no_module_of_the_layer(built):
    verbose = lambda_emulator.run_inside(artefact(built, "weather"), IMPORT, "-v")
    assert verbose.returncode == 0, verbose.stderr
    compiled = re.findall(r"# code object from '?([^'\n]+)", verbose.stderr)
    of_the_layer = [path for path in compiled if "mcp_roundtrip" in path or "pydantic" in path]
    assert len(of_the_layer) > 50
    assert [path for path in of_the_layer if not path.endswith(".pyc")] == []
