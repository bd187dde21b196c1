"""Play an MCP client through all rounds of a tool, in a few lines of pytest.

::

    def test_a_large_database_is_confirmed():
        play = Player(server)                        # or the path of a function's app.py
        asked = play.call("provision_database", {"name": "orders"})
        assert "How large" in asked.question("size")
        confirm = asked.answer(size={"vcpus": 16})
        done = confirm.answer(keep=True)
        assert done.structured["vcpus"] == 16

Every round is an environment of its own: a request goes in, JSON comes back,
and nothing but `requestState` passes from one to the next.
"""

from mcp_roundtrip.testing.clock import FakeClock
from mcp_roundtrip.testing.environment import Sealed, make_ports
from mcp_roundtrip.testing.modules import load_module
from mcp_roundtrip.testing.player import CANCEL, DECLINE, NotReplayable, Player, Round

__all__ = [
    "CANCEL",
    "DECLINE",
    "FakeClock",
    "NotReplayable",
    "Player",
    "Round",
    "Sealed",
    "load_module",
    "make_ports",
]
