"""`sam local invoke`, up to the start of a container.

sam's own classes say which variables it passes. Each function then runs in a process that has these variables
and no others of this project, with the template's layer from the source.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_testing.serving import LocalApp
from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest
from mcp_roundtrip_tools.run.execution.runtime_process import ProcessEnvironment
from mcp_roundtrip_tools.sam_local.command import (
    LIVE,
    Invoke,
    addresses,
    container_variables,
    invoke_in,
    live_events,
)
from support.forked_programs import python_of_functions, python_of_sam
from support.project import ROOT, logical_ids
from support.sam_build import run
from support.sample_events import ASKS, DONE, EVENTS, ONE_OF_EACH, ROUNDS, STABLE, TASK, outcome
from support.served_application import serve

SCRIPT = Path(__file__).with_name("sam_local.py")

HOST = "localhost"
"""In place of the container that leads connections to this computer."""

LOGICAL_IDS = logical_ids()


def variables_of_sam(template: Path, env_vars: Mapping[str, Any], folder: Path) -> dict[str, dict[str, str]]:
    file = folder / "env.json"
    file.write_text(json.dumps(env_vars))
    done = run(python_of_sam(), "-P", SCRIPT, template, file, "{}")
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def start(app: LocalApp, name: str, variables: Mapping[str, str]) -> ProcessEnvironment:
    """Start a function with the variables of sam, and nothing else of this project's settings."""
    [function] = [each for each in app.functions().values() if each.logical_id == name]
    runtime = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, function.path))}
    given = {key: str(value) for key, value in variables.items()}
    return ProcessEnvironment(function, {**given, **runtime}, python=python_of_functions(), log=print)


@pytest.fixture(scope="module")
def app():
    parameters = {"AuthMode": "none"}
    with serve(ROOT / "template.yaml", parameters=parameters, container_host=HOST) as running:
        yield running


@contextmanager
def functions(app: LocalApp, env_vars: Mapping[str, Any], folder: Path) -> Iterator[Invoke]:
    """Yield an invoker of functions with the variables that sam passes."""
    variables = variables_of_sam(ROOT / "template.yaml", env_vars, folder)
    processes: dict[str, ProcessEnvironment] = {}

    def invoke(folder: str, event: Any) -> Any:
        name = LOGICAL_IDS[folder]
        if name not in processes:
            processes[name] = start(app, name, variables[name])
        payload = json.dumps(event).encode()
        return json.loads(processes[name].invoke(InvokeRequest(name, payload)).payload)

    yield invoke
    for process in processes.values():
        process.stop()


@pytest.fixture(scope="module")
def prepared(app, tmp_path_factory):
    """Yield an invoker of functions with the variables that `sam-local` writes."""
    env_vars = container_variables(app, addresses(app, HOST))
    with functions(app, env_vars, tmp_path_factory.mktemp("prepared")) as invoke:
        yield invoke


def event(file: str) -> Any:
    return json.loads((EVENTS / file).read_text("utf-8"))


NEEDS_NOTHING = [
    "front_door/list.json",
    "provision/bad_arguments.json",
    "summarize/without_capabilities.json",
    "weather/discover.json",
    "work_items/prompts.json",
]


def test_an_event_that_needs_nothing_has_its_outcome_without_preparation(app, tmp_path):
    with functions(app, {}, tmp_path) as invoke:
        outcomes = {file: outcome(invoke(Path(file).parent.name, event(file))) for file in NEEDS_NOTHING}
    assert outcomes == {file: STABLE[file] for file in NEEDS_NOTHING}


def test_an_event_of_each_function_has_its_outcome_with_what_sam_local_prepares(prepared):
    outcomes = {file: outcome(prepared(function, event(file))) for function, file in ONE_OF_EACH.items()}
    assert outcomes == {file: STABLE[file] for file in ONE_OF_EACH.values()}


def test_live_events_continue_the_calls_until_they_are_complete(app, prepared):
    live = live_events(partial(invoke_in, app), EVENTS)
    asking = {file for file, expected in STABLE.items() if expected.what == ASKS}
    # A round after a page would wait for the person there.
    assert {file.removeprefix(f"{LIVE}/").partition(".")[0] for file in live} >= {
        file.removesuffix(".json") for file in asking if not file.startswith("approval/")
    }
    answered = {file: outcome(prepared(Path(file).parent.name, live[file])) for file in sorted(live)}
    assert {found.what for found in answered.values()} <= {DONE, ASKS, TASK}
    for file, rounds in ROUNDS.items():
        nexts = [answered[f"{LIVE}/{file.removesuffix('.json')}.{n}.json"] for n in range(2, len(rounds) + 1)]
        assert nexts == list(rounds[1:]), "as if the call had not been played before"
