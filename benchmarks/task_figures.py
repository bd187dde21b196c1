"""Measure tasks: DynamoDB requests, the time of a resume, and tasks per second compared with FastMCP.

DynamoDB is emulated in another process on 127.0.0.1.
"""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import boto3

import measure
from mcp_roundtrip_tools.run.services.ministack import MinistackError, serve_ministack
from tables import Target, table

OURS, OURS_IN_MEMORY, FASTMCP = "mcp-roundtrip, DynamoDB", "mcp-roundtrip, memory", "FastMCP, memory"
SCRIPTS = {
    OURS: ("task_rate.py", "dynamodb"),
    OURS_IN_MEMORY: ("task_rate.py", "memory"),
    FASTMCP: ("task_rate_fastmcp.py",),
}
# FastMCP has its own virtual environment, because pydantic searches every installed package for plugins: its
# packages would slow down the cold starts of the others.
PYTHONS = {FASTMCP: str(measure.HERE.parent / ".venv-bench-fastmcp/bin/python")}

WARM_UP_TASKS = 20
"""Untimed tasks that start processes and open connections."""
PAUSE_S = 0.005
"""Pause between two polls of a task that is not completed."""
RUNS, TASKS_PER_RUN = 5, 100


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """The measured values.

    `calls` are DynamoDB requests by task operation and DynamoDB operation. `entries` is the number of
    journal entries of the created task, `answers` the number of answers in the update. `resume_ms` has a
    value for each length, by store. `rates` are in tasks per second.
    """

    calls: Mapping[str, Mapping[str, int]]
    entries: int
    answers: int
    resume_ms: Mapping[str, Sequence[float]]
    rates: Mapping[str, Sequence[float]]


def measure_tasks(lengths: Sequence[int]) -> TaskFigures:
    """Measure requests, resumes and rates. Raise BenchmarkError.

    The rates are of RUNS processes with TASKS_PER_RUN tasks for each implementation, in alternating order.
    """
    with _deployment() as variables:
        counted = measure.run_script("task_dynamodb_calls.py", variables=variables)
        resumes = measure.run_script("task_resume.py", *map(str, lengths), variables=variables)["resumes"]
        rates = _rates(variables)
    return TaskFigures(counted["calls"], counted["entries"], counted["answers"], resumes, rates)


def _rates(variables: Mapping[str, str]) -> dict[str, list[float]]:
    given = {"warm_up_tasks": WARM_UP_TASKS, "count": TASKS_PER_RUN, "pause_s": PAUSE_S}
    found: dict[str, list[float]] = {title: [] for title in SCRIPTS}
    for run in range(RUNS):
        for title in SCRIPTS if run % 2 else reversed(SCRIPTS):
            python = PYTHONS.get(title, sys.executable)
            measured = measure.run_script(*SCRIPTS[title], given=given, variables=variables, python=python)
            found[title].append(measured["rate"])
    return found


def medians(rates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median rate of each implementation."""
    return {title: median(of_runs) for title, of_runs in rates.items()}


@contextmanager
def _deployment() -> Iterator[dict[str, str]]:
    """Create a table, and yield the environment variables that configure access to it."""
    try:
        with serve_ministack({"SERVICES": "dynamodb"}) as url:
            yield create_table(url)
    except MinistackError as error:
        raise measure.BenchmarkError(str(error)) from error


def create_table(url: str) -> dict[str, str]:
    """Create a table, and return the environment variables that configure access to it."""
    name = f"tasks-{secrets.token_hex(8)}"
    region = measure.ENVIRONMENT["AWS_REGION"]
    account = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench"}
    dynamodb = boto3.client("dynamodb", region_name=region, endpoint_url=url, **account)
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    )
    dynamodb.close()
    return {
        **{variable.upper(): value for variable, value in account.items()},
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "MCP_TASK_TABLE": name,
    }


# -- report ---------------------------------------------------------------------------------------------


def task_tables(measured: TaskFigures, lengths: Sequence[int]) -> tuple[str, ...]:
    """Format the tables of DynamoDB requests, resumes and rates."""
    resume = "Tasks: reading and replaying the journal in a resume, ms, by steps (without its two updates)"
    resumes = [(store, *(f"{ms:.3f}" for ms in costs)) for store, costs in measured.resume_ms.items()]
    return _call_table(measured), table(resume, ("", *map(str, lengths)), resumes), _rate_table(measured)


def _call_table(measured: TaskFigures) -> str:
    kinds = ("GetItem", "PutItem", "UpdateItem", "TransactWriteItems", "Query")
    title = (
        f"Tasks: DynamoDB requests by operation; the created task has {measured.entries} journal entries,"
        f" the update has {measured.answers} answers"
    )
    rows = [
        (operation, *(str(calls.get(kind, 0)) for kind in kinds), str(sum(calls.values())))
        for operation, calls in measured.calls.items()
    ]
    return table(title, ("", *kinds, "total"), rows)


def _rate_table(measured: TaskFigures) -> str:
    title = (
        f"Tasks per second, from call to result: {RUNS} processes with {TASKS_PER_RUN} tasks each\n"
        f"{OURS}: DynamoDB emulator over HTTP; a worker process runs one task after the other\n"
        f"{OURS_IN_MEMORY}: nothing is stored outside the process; the worker runs within the call\n"
        f"{FASTMCP}: nothing is stored outside the process; its worker runs ten tasks at a time"
    )
    median_rates = medians(measured.rates)
    rows = [
        (
            name,
            *(f"{rate:.4g}" for rate in (median_rates[name], min(rates), max(rates))),
            f"{median_rates[name] / median_rates[FASTMCP]:.3f}",
        )
        for name, rates in measured.rates.items()
    ]
    return table(title, ("", "median", "slowest", "fastest", "relative to FastMCP"), rows)


def task_targets(measured: TaskFigures) -> list[Target]:
    calls = {operation: sum(kinds.values()) for operation, kinds in measured.calls.items()}
    answers = measured.answers
    return [
        Target(
            f"DynamoDB requests to create a task with {measured.entries} journal entries",
            calls["create"],
            3,  # the check of the limit, the journal with the arguments, and the task
        ),
        Target("DynamoDB requests of a poll", calls["poll"], 1),
        Target(f"DynamoDB requests of an update with {answers} answers", calls["update"], answers + 2),
        Target("DynamoDB requests of a resume", calls["resume"], 3),
        Target("DynamoDB requests of a resume with a journal of 2 MB", calls["resume, 2 MB"], 4),
    ]
