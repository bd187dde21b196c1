import base64
import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import boto3
import jsonschema
import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.aws.audit_log import derive_audit_key
from mcp_roundtrip.observing.audit_records import hashed_caller
from mcp_roundtrip_testing import DECLINE, Player
from mcp_roundtrip_testing.player import WITH_TASKS
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.audit_lines import AuditLines
from support.documents import blocks_of, run_blocks
from support.project import ROOT

REFERENCE = (ROOT / "docs/reference/audit.md").read_text()
GUIDE = (ROOT / "docs/guides/auditing.md").read_text()


SCHEMA = json.loads((ROOT / "docs/reference/audit-record.schema.json").read_text())

server = Server("audited")


@server.tool(channels=["app", "page", "default"])
def order(ctx: Context, fails: bool = False) -> str:
    address = ctx.elicit("address", "Where to?", str, default="here")
    ctx.step("charge", lambda: None)
    if fails:
        raise RuntimeError
    return address


@server.tool(task="required")
def lasting(ctx: Context) -> str:
    ctx.run_as_task()
    return ctx.elicit("address", "Where to?", str)


@pytest.fixture(scope="module")
def lines():
    log = AuditLines()
    for client in ("claude-code", "cursor", "chatgpt", "python-sdk-initialize"):
        Player(server, client=client, ports={"audit": log.log}).call("order", {"fails": True})
    Player(server, ports={"audit": log.log}).call("order", address=DECLINE)
    Player(server, client="claude-desktop", ports={"audit": log.log}).call("order", address="here")
    player = Player(server, WITH_TASKS, ports={"audit": log.log})
    task_id = player.call("lasting").result["taskId"]
    player.task(task_id)
    player.request("tasks/cancel", taskId=task_id)
    expiring = Player(server, WITH_TASKS, ports={"audit": log.log})
    task_id = expiring.call("lasting").result["taskId"]
    expiring.clock.now += 3_600
    expiring.request("tasks/get", taskId=task_id)
    player.request("tools/call", name="unknown")
    Player(server, {}, ports={"audit": log.log}).call("order")
    return log.lines


def test_every_line_of_real_flows_is_valid(lines):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert [error.message for line in lines for error in validator.iter_errors(line)] == []
    assert len(lines) > 15


def test_the_table_has_the_members_of_the_schema():
    table = REFERENCE.partition("## Members")[2].partition("## JSON Schema")[0]
    named = {name for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE) for name in row.split("`, `")}
    documented = {name.strip("`").partition(".")[0] for name in named}
    assert SCHEMA["properties"].keys() <= documented


def test_every_outcome_of_workers_and_refusals_is_in_the_table(lines):
    outcomes = {
        line["outcome"]
        for line in lines
        if line["phase"] == "ended"
        and (line.get("worker") or line.get("code") or line.get("method") == "task_end")
    }
    assert "expired" in outcomes
    assert [outcome for outcome in outcomes if f"`{outcome}`" not in REFERENCE] == []


QUERIES = blocks_of(GUIDE, "text")
COMMANDS = {"filter", "fields", "stats", "sort", "display", "dedup"}
FUNCTIONS = {
    *("count", "count_distinct", "concat", "strcontains", "min", "max", "latest", "sortsLast", "ispresent"),
}
WORDS = {"and", "or", "not", "in", "as", "by", "asc", "desc"}


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_uses_commands_and_members_that_exist(query):
    given = re.findall(r"\bas (\w+)", query)
    for command in query.split("\n| "):
        first, _, rest = command.strip().partition(" ")
        assert first in COMMANDS
        for name in re.findall(r"@?[A-Za-z_][\w.]*", re.sub(r'"[^"]*"', "", rest)):
            is_function = name in FUNCTIONS and f"{name}(" in rest
            if is_function or name in WORDS or name in given or name == "@timestamp":
                continue
            assert exists(name), name
    # After dedup, AWS allows `limit` only (CWL_QuerySyntax-Dedup).
    assert "\n" not in query.partition("| dedup")[2].strip()


ENDS = {"complete", "tool_error", "failed", "cancelled", "expired", "abandoned"}


def test_the_query_for_tasks_without_an_end_knows_the_outcomes_of_the_reference():
    [grouped] = [each for each in QUERIES if "sortsLast" in each]  # a record has lines of several invocations
    assert grouped.partition(" by ")[2].partition("\n")[0] == "record"
    [query] = [each for each in QUERIES if "is_end" in each]
    [outcomes] = re.findall(r'"\|([a-z_|]+)\|"', query)
    assert set(outcomes.split("|")) == ENDS
    rows = [row for row in REFERENCE.splitlines() if "of workers:" in row or "of `task_end`:" in row]
    named = {outcome for row in rows for outcome in re.findall(r"`(\w+)`", row.split("|")[1])}
    without_end = {"input_required", "working", "worker_failed", "lease_lost", "superseded"}
    assert named == ENDS | without_end


def exists(name: str) -> bool:
    schema: Any = SCHEMA
    for part in name.split("."):
        schema = schema.get("items") if part.isdigit() else schema.get("properties", {}).get(part)
        if schema is None:
            return False
    return True


def test_the_program_of_the_guide_prints_the_hash_of_the_records(monkeypatch, capsys):
    kms = FakeKms()
    kms.CreateAlias(AliasName="alias/shop-audit", TargetKeyId=kms.import_key(bytes(32)).rpartition("/")[2])
    generate: Any = kms.GenerateMac
    monkeypatch.setattr(boto3, "client", lambda service: SimpleNamespace(generate_mac=generate))
    monkeypatch.setattr(sys, "argv", ["hash.py", "shop", "jwt", "https://id.test", "alice"])
    [program] = blocks_of(GUIDE, "python")
    run_blocks(program)
    client: Any = SimpleNamespace(call=lambda operation, **given: generate(**given))
    key = derive_audit_key(client, "alias/shop-audit", "shop")
    expected = hashed_caller(Principal("jwt", "alice", "https://id.test", "app"), key)["subject_hash"]
    assert capsys.readouterr().out.strip() == expected
    assert len(base64.urlsafe_b64decode(expected)) == 18
