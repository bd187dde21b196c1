"""The same parked call, made by several processes at once on an emulated DynamoDB."""

import json
import subprocess
import sys
from pathlib import Path

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.question_links import QuestionLinks
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support.dynamodb_clients import new_table
from support.parked_deployment import TOKEN
from support.question_links import answer_link

pytest_plugins = ["support.ministack"]

PROCESS = Path(__file__).parents[1] / "support/parked_call_process.py"
NOW_MS = 1_795_000_000_000
YES = {"action": "accept", "content": {"value": True}}


def test_of_many_processes_one_runs_the_call_and_all_get_its_result(
    ministack, ministack_dynamodb, tmp_path: Path
):
    table, effects = new_table(ministack_dynamodb), tmp_path / "effects"

    def run(processes):
        ran = subprocess.run(
            [sys.executable, PROCESS, ministack, table, str(processes), str(effects)],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={"PYTHONPATH": str(PROCESS.parents[1])},
        )
        return {json.loads(line) for line in ran.stdout.splitlines()}

    [asked] = run(1)
    [token] = TOKEN.findall(asked)
    tasks = Tasks(DynamoStore(ministack_dynamodb, table), RecordingDispatcher(), lambda: NOW_MS)
    assert answer_link(QuestionLinks(tasks), token, {"sure": YES}) == "stored"
    assert run(4) == {"ordered"}
    assert len(effects.read_text().splitlines()) == 1
