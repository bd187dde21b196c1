"""The events of the following rounds of a call, and the variables of the functions, for sam local."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.call.questions import GivenAnswers
from mcp_roundtrip_tools.client.sample_values import sample_answer
from mcp_roundtrip_tools.invoke.rounds import Requests, next_event, requests_of
from mcp_roundtrip_tools.run.app import LocalApp

AWS: Final = "AWS_ENDPOINT_URL"

_SERVER: Final = re.compile(r"http://127\.0\.0\.1:\d+")


def addresses(app: LocalApp, host: str) -> dict[str, str]:
    """Return the URLs of the services and stand-ins of the run, with their URLs for containers."""
    assert app.addresses.container_url is not None
    values = [value for name in app.functions() for value in app.environment(name).values()]
    servers = {url for value in values for url in _SERVER.findall(value)} - {app.url("")}
    in_network = {url: f"http://{host}:{urlsplit(url).port}" for url in servers}
    return {**in_network, app.addresses.aws_url: app.addresses.container_url}


def container_variables(app: LocalApp, in_network: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the content of the file for `--env-vars`: logical id -> the function's variables.

    `in_network` has the URLs for containers by the URLs for this computer.
    """

    def moved(value: str) -> str:
        return _SERVER.sub(lambda url: in_network.get(url[0], url[0]), value)

    return {
        function.logical_id: {
            name: moved(value) for name, value in {**app.environment(function.name), **app.endpoints}.items()
        }
        for function in app.functions().values()
    }


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
