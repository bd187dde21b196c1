from pathlib import Path

from mcp_roundtrip_testing import DECLINE, Player

APP = Path(__file__).parents[1] / "functions/server/app.py"


def test_the_user_chooses_the_order():
    play = Player(APP, always_replay=True)
    assert play.call("order_status", number="A-1002").text == "A-1002 is being packed."


def test_a_declined_question_is_a_tool_error():
    assert Player(APP).call("order_status", number=DECLINE).failed
