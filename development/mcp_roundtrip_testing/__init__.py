"""Test tools: play an MCP client through all rounds of a call, in a few lines of pytest.

::

    def test_a_large_database_is_confirmed():
        play = Player(server)                        # or the path of a function's app.py
        asked = play.call("provision_database", {"name": "orders"})
        assert "How large" in asked.question("size")
        done = asked.answer(size={"vcpus": 16}).answer(keep=True)
        assert done.structured["vcpus"] == 16

Every round runs in a new environment, and every worker of a task: only `requestState`, and a table, pass from
one to the next. `crashes` kills workers at each of their calls of the table. Time is a `FakeClock`, so tests
do not wait.
"""

from mcp_roundtrip_testing.crashes import crashes
from mcp_roundtrip_testing.execution_environments import SettingMissing, load_module
from mcp_roundtrip_testing.played_call import CANCEL, DECLINE, CallFailed, NotReplayable, QuestionChanged
from mcp_roundtrip_testing.played_task import PlayedTask
from mcp_roundtrip_testing.player import EVERYTHING, WITH_TASKS, Player
from mcp_roundtrip_testing.ports import RecordingCodec, make_ports
from mcp_roundtrip_testing.round import Round
from mcp_roundtrip_testing.task_table import FakeClock
from mcp_roundtrip_testing.workers import Crash

__all__ = [
    "CANCEL",
    "DECLINE",
    "EVERYTHING",
    "WITH_TASKS",
    "CallFailed",
    "Crash",
    "FakeClock",
    "NotReplayable",
    "PlayedTask",
    "Player",
    "QuestionChanged",
    "RecordingCodec",
    "Round",
    "SettingMissing",
    "crashes",
    "load_module",
    "make_ports",
]
