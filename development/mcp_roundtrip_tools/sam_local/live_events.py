"""The events of the following rounds of a call, with the `requestState` that this run's keys have signed.

For `events/weather/call.json`, whose response asks, `live/weather/call.2.json` has an answer. The answers are
those of `events/answers.json` by key, and otherwise values that fit the schema of the question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.call.given_answers import GivenAnswers
from mcp_roundtrip_tools.client.sample_values import sample_answer
from mcp_roundtrip_tools.invoke.rounds import Requests, next_event, requests_of

LIVE: Final = "live"
ANSWERS: Final = "answers.json"

MAX_ROUNDS: Final = 5


Invoke = Callable[[str, Any], Any]
"""Takes the folder name of a function and an event; returns the function's response."""


def live_events(invoke: Invoke, folder: Path) -> dict[str, Any]:
    """Return the events by their paths in `folder`, which has the sample events by functions' folders."""
    given = given_answers(folder)
    found = {}
    for path in sorted(folder.glob("**/*.json")):
        place = path.relative_to(folder)
        if place.parts[0] != LIVE and len(place.parts) > 1:
            rounds = play_rounds(invoke, place.parent.name, _read(path), given)
            for number, (event, _) in enumerate(rounds, 1):
                if number > 1:
                    found[f"{LIVE}/{place.with_suffix('')}.{number}.json"] = event
    return found


def play_rounds(invoke: Invoke, function: str, event: Any, given: GivenAnswers) -> Iterator[tuple[Any, Any]]:
    """Yield the event of each round of a call, with its response, while the responses ask."""
    for _ in range(MAX_ROUNDS):
        response = invoke(function, event)
        yield event, response
        if not (requests := requests_of(response)) or _opens_page(requests):
            return
        event = next_event(event, response, lambda asked: _answers(asked, given))


def _opens_page(requests: Requests) -> bool:
    """Return whether a round with the answers would wait for a person at a page."""
    return any(request.get("params", {}).get("mode") == "url" for request in requests.values())


def _answers(requests: Requests, given: GivenAnswers) -> dict[str, Any]:
    return {key: given.find(key, request) or sample_answer(request) for key, request in requests.items()}


def given_answers(folder: Path) -> GivenAnswers:
    """Return the answers that are written beside the events, by key."""
    path = folder / ANSWERS
    return GivenAnswers(_read(path) if path.is_file() else {})


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))
