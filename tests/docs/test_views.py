"""The views of docs/guides/views.md, in a browser, inside a host made with the official app-bridge."""

from pathlib import Path

from mcp_roundtrip.protocol.constants import UI_MIME_TYPE
from mcp_roundtrip_testing import Player
from support.documents import code_blocks, run_blocks
from support.question_app import Show

pytest_plugins = ["support.question_app"]


def test_the_view_of_the_guide_shows_the_result_of_its_tool(show: Show, tmp_path: Path) -> None:
    apps, [document] = (code_blocks("docs/guides/views.md", language) for language in ("python", "html"))
    for name in ("forecast.html", "map.html"):
        (tmp_path / name).write_text(document, "utf-8")
    play = Player(run_blocks(*apps, __file__=str(tmp_path / "app.py"))["server"])
    [shared] = play.read("ui://weather/map").contents
    assert (shared["mimeType"], shared["_meta"]["ui"].keys()) == (UI_MIME_TYPE, {"csp", "permissions"})
    [shown] = play.read("ui://weather/forecast").contents
    result = play.call("forecast", {"city": "Oslo"}).result
    themed = (("context", {"theme": "dark"}), ("evaluate", "getComputedStyle(root).colorScheme"))
    log = show(("result", result), ("see", "3.5 °C"), *themed, ("teardown",), view=shown["text"])
    assert (log["values"], log["complaints"]) == (["dark", {}], [])
    assert 0 < log["heights"][-1] < 100
