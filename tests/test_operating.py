import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

import mcp_roundtrip
from mcp_roundtrip import Context, Server
from mcp_roundtrip.adapters.event_formats import ALB_MAX_RESPONSE_BYTES
from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES, MAX_JSON_VALUES, MAX_RESPONSE_BYTES
from mcp_roundtrip.protocol.jsonrpc import MAX_ID
from mcp_roundtrip.s3 import MAX_BYTES
from mcp_roundtrip.server.state_carrier import LARGE_STATE
from mcp_roundtrip.server.task_carrier import MAX_CAPABILITIES
from mcp_roundtrip.state.claims import Limits
from mcp_roundtrip.tasks.store_interface import MAX_ITEM
from mcp_roundtrip_testing import EVERYTHING, WITH_TASKS
from mcp_roundtrip_tools.template.yaml_reader import load
from support import examples as samples
from support.deployment import Deployment
from support.documents import blocks_of, run_blocks
from support.dynamodb_clients import new_table
from support.sam_applications import http, rpc
from support.served_application import serve

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/guides/operating.md").read_text("utf-8")
QUERIES = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
TABLES = re.findall(r"^\| (.+?) \| (.+?) \|", PAGE, re.MULTILINE)
SOURCE = "".join(path.read_text("utf-8") for path in Path(mcp_roundtrip.__file__).parent.rglob("*.py"))

WITH_TOKENS = {"AuthMode": "bearer", "TokenIssuer": "https://id.example"}

Line = dict[str, Any]

OF_LAMBDA: Line = {
    "type": "platform.report",
    "record": {"requestId": "6f7c1a2b", "status": "timeout", "errorType": "Sandbox.Timedout"},
}
"""A line that Lambda itself writes (Telemetry API, "platform.report"). The local runner writes none."""


@pytest.fixture(scope="module")
def lines():
    """Return the log lines of a call with a question, of a task, and of a forged state."""
    printed, changed = list[str](), threading.Condition()

    def log(line: str) -> None:
        with changed:
            printed.append(line)
            changed.notify_all()

    def has_all() -> bool:
        return all(
            any(f'"{event}"' in line for line in printed) for event in ("worker_finished", "state_refused")
        )

    with serve(ROOT / "template.yaml", parameters={"AuthMode": "none"}, log=log) as app:

        def call(name: str, arguments: Any, *values: str, tasks: bool = False, **more: Any) -> None:
            meta = {META_CLIENT_CAPABILITIES: WITH_TASKS if tasks else EVERYTHING}
            given = {"meta": meta, "name": name, "arguments": arguments}
            asked = rpc(app.url(), "tools/call", **given, **more).json()
            for value in values:
                answer = {"action": "accept", "content": {"value": value}}
                answers = dict.fromkeys(asked["result"]["inputRequests"], answer)
                state = asked["result"]["requestState"]
                again = rpc(app.url(), "tools/call", requestState=state, inputResponses=answers, **given)
                asked = again.json()

        call("get_weather", samples.HYDERABAD, "Hyderabad, India")
        call("provision_database", samples.ORDERS, "small", "eu-central-1", tasks=True)
        call("provision_database", samples.ORDERS, tasks=True)
        call("get_weather", samples.HYDERABAD, requestState=samples.FORGED)
        with changed:
            assert changed.wait_for(has_all, timeout=60)
    with serve(ROOT / "template.yaml", parameters=WITH_TOKENS, log=log) as app:
        assert http(app.url(), method="POST", body=b"{}").status == 401
    return [json.loads(line[line.index("{") :]) for line in printed if "] {" in line]


def fields_of(query: str) -> set[str]:
    """Return the field names in a query, without keywords, functions and aliases."""
    plain = re.sub(r'"[^"]*"', "", query)
    aliases = set(re.findall(r"\bas (\w+)", plain))
    functions = set(re.findall(r"(\w+)\(", plain))
    aliases |= {name for names in re.findall(r"parse .+ as (.+)", plain) for name in names.split(", ")}
    words = {"fields", "filter", "stats", "sort", "limit", "by", "as", "and", "or", "desc", "asc", "parse"}
    return set(re.findall(r"(?<![@\w.])[a-z_]\w*", plain)) - aliases - functions - words


def found(query: str, lines: list[Line]) -> list[Line]:
    condition = re.findall(r"^(?:\| )?filter (.*)$", query, re.MULTILINE)[0]
    return [line for line in lines if any(_all(terms, line) for terms in condition.split(" or "))]


def _all(terms: str, line: Line) -> bool:
    return all(_holds(term, line) for term in terms.split(" and "))


def _holds(term: str, line: Line) -> bool:
    if present := re.fullmatch(r"ispresent\((\w+)\)", term):
        return present[1] in line
    name, operator, value = re.fullmatch(r'([\w.]+) (!?=) "([^"]*)"', term).groups()
    found: Any = line
    for member in name.split("."):
        found = found.get(member) if isinstance(found, dict) else None
    return found is not None and (found == value) is (operator == "=")


@pytest.mark.parametrize("query", QUERIES, ids=[query.splitlines()[-1][:40] for query in QUERIES])
def test_a_query_uses_existing_fields_and_finds_lines(query, lines):
    optional = {"exception"}  # only ERROR lines have it
    lines = [*lines, OF_LAMBDA]
    assert fields_of(query) <= {name for line in lines for name in line} | optional
    logged = next(line for line in lines if "task" in line and "flow" in line)
    for name, placeholder in (("correlation_id", "CORRELATION-ID"), ("flow", "FLOW"), ("task", "TASK")):
        query = query.replace(f'"{placeholder}"', f'"{logged[name]}"')
    assert found(query, lines)


def test_the_page_has_all_queries():
    assert len(QUERIES) == 8


def test_a_flow_and_its_task_are_followed_from_the_first_question_to_the_worker(lines):
    [task] = {line["task"] for line in lines if line.get("message") == "worker_finished"}
    [flow] = {line["flow"] for line in lines if line.get("outcome") == "task"}
    query = next(query for query in QUERIES if "FLOW" in query)
    seen = found(query.replace("FLOW", flow).replace("TASK", task), lines)
    outcomes = [line.get("outcome", line["message"]) for line in seen]
    assert sorted(outcomes) == ["input_required", "input_required", "task", "worker_finished"]


def test_every_alarm_of_the_platform_has_a_row():
    resources = load(ROOT / "platform/template.yaml")["Resources"]
    alarms = {name for name, each in resources.items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    assert {name.split("`")[-2] for name, _ in TABLES if name.endswith("Alarm`")} == alarms


def test_every_named_log_line_is_logged():
    section = PAGE[PAGE.index("| event | `reason` |") : PAGE.index("## Crashes")]
    rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    named = {name.strip("`") for row in rows for name in row.split(", ")}
    made = {"tool_raised"}  # of the feature's kind
    assert named > made
    assert {name for name in named - made if f'"{name}"' not in SOURCE} == set()


def test_the_documented_limits_are_enforced():
    _, section = (ROOT / "docs/guides/limits.md").read_text("utf-8").split("## Sizes")
    documented = {int(number.replace(",", "")) for number in re.findall(r"\b[\d,]*,\d{3}\b", section)}
    states = Limits()
    enforced = {
        MAX_BODY_BYTES,
        MAX_JSON_VALUES,
        MAX_ID,
        MAX_RESPONSE_BYTES,
        ALB_MAX_RESPONSE_BYTES,
        MAX_ITEM,
        MAX_BYTES,
        MAX_CAPABILITIES,
    }
    assert documented == enforced | {states.max_minted, states.max_presented, LARGE_STATE}


bank = Server("bank")


@bank.tool
def open_account(ctx: Context, customer: str) -> bool:
    return ctx.confirm("sure", f"Open an account for {customer}?")


def test_the_program_erases_the_values_of_the_calls_that_contain_a_text_and_of_no_other(monkeypatch):
    clerk = Deployment(bank, capabilities={}, max_open=10)
    for customer in ("Ada Lovelace", "Zo\u00eb Quist"):
        assert "questions?token=" in clerk.text("open_account", customer=customer)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(sys, "argv", ["erase.py", "tasks", "Zo\u00eb Quist"])
    [program] = blocks_of(PAGE, "python")
    with mock_aws():
        new_table(boto3.client("dynamodb"), "tasks")
        table = boto3.resource("dynamodb").Table("tasks")
        for item in clerk.store._items.values():
            table.put_item(Item=dict(item))
        run_blocks(program)
        left = table.scan()["Items"]
    assert "Quist" not in str(left)
    # Those of the other call, and the items that keep a call from being repeated.
    assert sorted(item["sk"] for item in left) == ["A", "C", "C", "K", "M", "O"]
