"""The events of the following rounds of a call, with the `requestState` that this run's keys have signed.

For `events/weather/call.json`, whose response asks, `live/weather/call.2.json` has an answer. The answers are
those of `events/answers.json` by key, and otherwise values that fit the schema of the question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.call.given_answers import GivenAnswers
from mcp_roundtrip_tools.events.of_application import answer
from mcp_roundtrip_tools.invoke.rounds import Requests, next_event, requests_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.template.function_references import find_function

LIVE: Final = "live"
ANSWERS: Final = "answers.json"

MAX_ROUNDS: Final = 5


def live_events(app: LocalApp, folder: Path) -> dict[str, Any]:
    """Return the events by their paths in `folder`, which has the sample events by functions' folders."""
    given = _given_answers(folder)
    found = {}
    for path in sorted(folder.glob("**/*.json")):
        place = path.relative_to(folder)
        if place.parts[0] != LIVE and len(place.parts) > 1:
            event = _read(path)
            for number, following in _following_rounds(app, place.parent.name, event, given):
                found[f"{LIVE}/{place.with_suffix('')}.{number}.json"] = following
    return found


def _following_rounds(
    app: LocalApp, function: str, event: Any, given: GivenAnswers
) -> Iterator[tuple[int, Any]]:
    """Yield the events of the rounds after the first, while the responses ask."""
    name = find_function(app.current(), function).name
    for number in range(2, MAX_ROUNDS + 1):
        response = json.loads(app.run(name, json.dumps(event).encode()).payload)
        if not (requests := requests_of(response)) or _opens_page(requests):
            return
        event = next_event(event, response, lambda asked: _answers(asked, given))
        yield number, event


def _opens_page(requests: Requests) -> bool:
    """Return whether a round with the answers would wait for a person at a page."""
    return any(request.get("params", {}).get("mode") == "url" for request in requests.values())


def _answers(requests: Requests, given: GivenAnswers) -> dict[str, Any]:
    return {key: given.find(key, request) or answer(request) for key, request in requests.items()}


def _given_answers(folder: Path) -> GivenAnswers:
    path = folder / ANSWERS
    return GivenAnswers(_read(path) if path.is_file() else {})


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))
