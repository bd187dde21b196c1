"""Tasks: calls of DynamoDB, the cost of a resume, and how many get done beside FastMCP's.

DynamoDB is an emulator in another process on 127.0.0.1.
"""

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import boto3

import measure
from emulator import ministack

OURS, OURS_IN_MEMORY, FASTMCP = "mcp-roundtrip, DynamoDB", "mcp-roundtrip, memory", "FastMCP, memory"
SCRIPTS = {
    OURS: ("task_rate.py", "dynamodb"),
    OURS_IN_MEMORY: ("task_rate.py", "memory"),
    FASTMCP: ("task_fastmcp.py",),
}
# In an environment of its own: every package that is installed costs the others' cold starts something,
# since pydantic looks for plugins in all of them.
PYTHONS = {FASTMCP: str(measure.HERE.parent / ".venv-bench-fastmcp/bin/python")}

SETTLED = 20
"""Tasks that are not timed: processes start, connections are made."""
PAUSE_S = 0.005
"""Between two polls of a task that is not completed."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """`calls` of each operation by kind, `resume_ms` by store for each length, `rates` in tasks per second.

    `entries` are in the journal of the task that is created, `answers` in the update.
    """

    calls: Mapping[str, Mapping[str, int]]
    entries: int
    answers: int
    resume_ms: Mapping[str, Sequence[float]]
    rates: Mapping[str, Sequence[float]]


def figures(lengths: Sequence[int], runs: int, count: int) -> Tasks:
    """Measure everything; `runs` times `count` tasks for each contender, in turns. Raises DidNotRun."""
    with _deployment() as variables:
        counted = measure.process("task_calls.py", variables=variables)
        resumes = measure.process("task_resume.py", *map(str, lengths), variables=variables)["resumes"]
        rates = _rates(runs, count, variables)
    return Tasks(counted["calls"], counted["entries"], counted["answers"], resumes, rates)


def _rates(runs: int, count: int, variables: Mapping[str, str]) -> dict[str, list[float]]:
    given = {"settled": SETTLED, "count": count, "pause_s": PAUSE_S}
    found: dict[str, list[float]] = {title: [] for title in SCRIPTS}
    for run in range(runs):
        for title in SCRIPTS if run % 2 else reversed(SCRIPTS):
            python = PYTHONS.get(title, sys.executable)
            measured = measure.process(*SCRIPTS[title], given=given, variables=variables, python=python)
            found[title].append(measured["rate"])
    return found


def medians(rates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of the runs of each contender."""
    return {title: median(of_runs) for title, of_runs in rates.items()}


@contextmanager
def _deployment() -> Iterator[dict[str, str]]:
    """The variables that lead to a new table."""
    with ministack() as url:
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
        yield {
            **{variable.upper(): value for variable, value in account.items()},
            "AWS_DEFAULT_REGION": region,
            "AWS_ENDPOINT_URL_DYNAMODB": url,
            "MCP_TASK_TABLE": name,
        }
