"""Answer the requests of a round: from ANSWERS, SAMPLE and folders, otherwise on the terminal."""

import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_roundtrip_testing.played_call import input_response, sampled_message
from mcp_roundtrip_tools.call.errors import usage_error
from mcp_roundtrip_tools.call.fields import NO, fields_of
from mcp_roundtrip_tools.call.terminal import HELP, Refused, Terminal, ask_fields, ask_line
from mcp_roundtrip_tools.client.sample_values import sample_answer

Request = Mapping[str, Any]
Response = dict[str, Any]


@dataclass(frozen=True)
class GivenAnswers:
    """`by_key` are answers by the key of the question, `sample` a reply for each prompt, `roots` folders."""

    by_key: Mapping[str, Any] = field(default_factory=dict)
    sample: str | None = None
    roots: Sequence[Path] = ()

    def find(self, key: str, request: Request) -> Response | None:
        """Return the response to a request, or None if none is given. Raises CallFailed."""
        method = request.get("method")
        if key in self.by_key:
            try:
                response: Response = input_response(request, self.by_key[key])
            except ValueError as error:
                raise usage_error(f"{key}: {error}.") from None
            if not isinstance(response, dict):
                raise usage_error(f"{key}: the answer to {method} must be a JSON object.")
            return response
        if method == "sampling/createMessage" and self.sample is not None:
            return sampled_message(self.sample)
        if method == "roots/list" and self.roots:
            return roots_result(self.roots)
        return None


def add_answer_options(parser: ArgumentParser) -> None:
    """Add --answers, --sample and --root, which `given_answers` reads."""
    add = parser.add_argument
    add("--answers", metavar="JSON", help='answers by the key of the question, as in \'{"place": "Tokyo"}\'')
    add("--sample", metavar="TEXT", help="the reply to each prompt for the client's model")
    add("--root", type=Path, action="append", default=[], metavar="FOLDER", help="a root of the client")


def given_answers(options: Namespace) -> GivenAnswers:
    """Return the answers of the command line. Raises CallFailed."""
    try:
        answers = json.loads(options.answers or "{}")
    except ValueError as error:
        raise usage_error(f"ANSWERS is not JSON: {error}.") from None
    if not isinstance(answers, dict):
        raise usage_error('ANSWERS must be a JSON object of answers by key, as in \'{"place": "Tokyo"}\'.')
    return GivenAnswers(answers, options.sample, options.root)


def roots_result(folders: Sequence[Path]) -> Response:
    """Return a ListRootsResult."""
    paths = [folder.resolve() for folder in folders]
    return {"roots": [{"uri": path.as_uri(), "name": path.name or "/"} for path in paths]}


class Questions:
    """Answers requests. A given answer counts once for a key: if it is refused, the user is asked."""

    def __init__(self, tool: str, terminal: Terminal, given: GivenAnswers) -> None:
        self._tool = tool
        self._terminal = terminal
        self._given = given
        self._used: set[str] = set()
        self._has_help = False

    def answer(self, requests: Mapping[str, Request]) -> dict[str, Response]:
        """Return the responses to the requests of a round by key. Raises CallFailed."""
        return {key: self._answer(key, request) for key, request in requests.items()}

    def _answer(self, key: str, request: Request) -> Response:
        found = None if key in self._used else self._given.find(key, request)
        if found is not None:
            self._used.add(key)
            self._terminal.show(f"{self._tool} asks {key}: {_message(request)}", "dim")
            return found
        if not self._terminal.is_interactive:
            raise usage_error(self._unanswered(key, request))
        try:
            return self._ask(key, request)
        except Refused as refused:
            return self._refuse(key, request, refused.action)

    def _ask(self, key: str, request: Request) -> Response:
        terminal, params = self._terminal, request.get("params") or {}
        method = request.get("method")
        terminal.show()
        terminal.show(f"{self._tool} asks {key}", "bold")
        if not self._has_help and method == "elicitation/create":
            self._has_help = True
            terminal.show(f"  {HELP}", "dim")
        match method:
            case "elicitation/create" if params.get("requestedSchema") is not None:
                return self._ask_form(params)
            case "elicitation/create":
                return self._ask_to_open(params)
            case "sampling/createMessage":
                return self._ask_for_reply(params)
            case "roots/list":
                return self._ask_for_roots()
        raise usage_error(self._unanswered(key, request))

    def _ask_form(self, params: Mapping[str, Any]) -> Response:
        self._terminal.show_indented(params.get("message") or "")
        fields = fields_of(params["requestedSchema"])
        is_single = [each.name for each in fields] == ["value"]
        while True:
            content = ask_fields(self._terminal, fields, is_single=is_single)
            # The user may want to change a field above the last one (client/elicitation).
            if len(fields) < 2 or ask_line(self._terminal, "  Send? [Y/n] > ").strip().lower() not in NO:
                return {"action": "accept", "content": content}

    def _ask_to_open(self, params: Mapping[str, Any]) -> Response:
        self._terminal.show_indented(params.get("message") or "")
        self._terminal.show(f"  Open {params.get('url') or ''}", "bold")
        ask_line(self._terminal, "  Enter when you have finished there > ")
        return {"action": "accept"}

    def _ask_for_reply(self, params: Mapping[str, Any]) -> Response:
        self._terminal.show(
            "  The tool asks a language model. Write its reply; end it with a line of one dot.", "dim"
        )
        if params.get("systemPrompt"):
            self._terminal.show_indented(f"system: {params['systemPrompt']}")
        for message in params.get("messages") or ():
            self._terminal.show_indented(f"{message.get('role')}: {_text(message.get('content'))}")
        lines: list[str] = []
        while (line := ask_line(self._terminal, "  > ")) != ".":
            lines.append(line)
        return sampled_message("\n".join(lines))

    def _ask_for_roots(self) -> Response:
        folder = Path.cwd()
        self._terminal.show("  The tool asks which folders it may know of.")
        line = ask_line(self._terminal, f"  Name {folder.as_uri()}? [Y/n] > ")
        return roots_result([] if line.strip().lower() in NO else [folder])

    def _refuse(self, key: str, request: Request, action: str) -> Response:
        method = request.get("method")
        if method == "elicitation/create":
            self._terminal.show(f"  {action}{'d' if action == 'decline' else 'led'}", "dim")
            return {"action": action}
        raise usage_error(f"The request {key} ({method}) has no answer, and it cannot be declined.")

    def _unanswered(self, key: str, request: Request) -> str:
        if key in self._used:
            return (
                f"{self._tool} asks {key} again: {_message(request)}\n"
                "The given answer was sent, and there is no terminal to answer again."
            )
        example = shlex.quote(json.dumps({key: _example(request)}, ensure_ascii=False))
        unused = ", ".join(each for each in self._given.by_key if each not in self._used)
        return (
            f"{self._tool} asks {key}: {_message(request)}\n"
            f"There is no terminal to answer at. Pass ANSWERS={example} (--answers)."
            + (f"\nSo far, the tool has not asked {unused}." if unused else "")
        )


def _message(request: Request) -> str:
    params = request.get("params") or {}
    text = params.get("message") or request.get("method")
    return f"{text} {params['url']}" if params.get("url") else str(text)


def _example(request: Request) -> Any:
    """Return an answer that fits the question, as short as ANSWERS may have it."""
    match sample_answer(request):
        case {"action": "accept", "content": dict(content)}:
            is_single = len(request["params"]["requestedSchema"].get("properties", ())) == 1
            return next(iter(content.values())) if content and is_single else content
        case {"content": {"text": text}}:
            return text
        case found:
            return found


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(
        str(block.get("text", f"[{block.get('type')}]")) for block in blocks if isinstance(block, dict)
    )
