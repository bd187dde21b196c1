import io
from typing import Any

import pytest

from mcp_roundtrip_tools.call.questions import GivenAnswers, Questions
from mcp_roundtrip_tools.call.terminal import Terminal

URL = f"https://pay.example/{'long/' * 40}?order=1#terms"


def answer(params: dict[str, Any], entered: str) -> tuple[dict[str, Any], str]:
    """Return the response to an elicitation, and what was shown."""
    shown = io.StringIO()
    terminal = Terminal(io.StringIO(entered), shown, is_interactive=True)
    request = {"method": "elicitation/create", "params": params}
    return Questions("make", terminal, GivenAnswers()).answer({"key": request})["key"], shown.getvalue()


@pytest.mark.parametrize(("entered", "action"), [("\n", "accept"), ("/d\n", "decline"), ("", "cancel")])
def test_a_url_is_shown_whole_and_the_user_agrees_or_refuses(entered, action):
    response, shown = answer({"mode": "url", "message": "Pay", "url": URL}, entered)
    assert response == {"action": action}
    assert f"{URL}\n" in shown


FORM = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}


def test_a_form_with_several_fields_is_reviewed_before_it_is_sent():
    response, _ = answer({"message": "?", "requestedSchema": FORM}, "Adda\n3\nn\nAda\n4\n\n")
    assert response == {"action": "accept", "content": {"name": "Ada", "size": 4}}
