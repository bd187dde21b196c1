"""The same parked call, made by several processes at once on an emulated DynamoDB."""

from pathlib import Path

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.question_page_links import QuestionLinks
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.client_requests import TOKEN, accepted
from support.dynamodb_clients import new_table
from support.one_table import order
from support.processes import run_at_once
from support.question_links import answer_link

pytest_plugins = ["support.ministack"]

NOW_MS = 1_795_000_000_000


def test_of_many_processes_one_runs_the_call_and_all_get_its_result(
    ministack, ministack_dynamodb, tmp_path: Path
):
    table, effects = new_table(ministack_dynamodb), tmp_path / "effects"
    [asked] = run_at_once(1, order, ministack, table, effects)
    [token] = TOKEN.findall(asked)
    tasks = Tasks(DynamoStore(ministack_dynamodb, table), RecordingDispatcher(), lambda: NOW_MS)
    assert answer_link(QuestionLinks(tasks), token, {"sure": accepted(True)}) == "stored"
    assert run_at_once(4, order, ministack, table, effects) == ["ordered"] * 4
    assert len(effects.read_text().splitlines()) == 1
