"""``mcp-roundtrip call``: call a tool of a running server, follow its task, and answer its questions."""

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE, TOOLS_CALL
from mcp_roundtrip_tools.call.errors import CallFailed, Status, usage_error
from mcp_roundtrip_tools.call.fields import read_arguments, split_words
from mcp_roundtrip_tools.call.questions import Questions, add_answer_options, given_answers
from mcp_roundtrip_tools.call.server import McpServer
from mcp_roundtrip_tools.call.terminal import Terminal, describe_result, describe_tools
from mcp_roundtrip_tools.client.connection import Result, next_round
from mcp_roundtrip_tools.client.http import is_trustworthy
from mcp_roundtrip_tools.client.terminal_text import printable, printable_json
from mcp_roundtrip_tools.template.model import hint

MAX_ROUNDS: Final = 100

MIN_POLL_S: Final = 0.1
MAX_POLL_S: Final = 60.0
"""The bounds of the time between polls of a task, in seconds. Within them, its `pollIntervalMs` counts."""

ENDED: Final = ("completed", "failed", "cancelled")
"""The statuses of tasks that have ended."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls tools of a server, and follows tasks. `sleep` takes seconds."""

    server: McpServer
    questions: Questions
    terminal: Terminal
    sleep: Callable[[float], None] = time.sleep

    def call(self, tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> Result:
        """Call a tool and return its result. Raises CallFailed."""
        params: Result
        params = first = {"name": tool["name"], "arguments": dict(arguments)}
        for _ in range(MAX_ROUNDS):
            result = self.server.request(TOOLS_CALL, params)
            if result.get("resultType") == "task":
                return self.follow(result)
            if result.get("resultType") != "input_required":
                return result
            requests = result.get("inputRequests") or {}
            if not requests:
                self.terminal.show("  The call takes longer than a request, and continues.", "dim")
            responses = self.questions.answer(requests)
            params = next_round(first, result, responses)
        raise CallFailed(Status.ERROR, f"{tool['name']} has not completed after {MAX_ROUNDS} rounds.")

    def follow(self, task: Result) -> Result:
        """Poll a task until it ends, and return its result. Raises CallFailed; Ctrl+C may cancel it."""
        task_id = task["taskId"]
        self.terminal.show(f"Task {task_id}. Ctrl+C stops waiting for it.", "dim")
        try:
            return self._poll(task_id)
        except KeyboardInterrupt:
            return self._leave(task_id)

    def _poll(self, task_id: str) -> Result:
        shown, answered = "", dict[str, Any]()
        while True:
            task = self.server.request(TASKS_GET, {"taskId": task_id})
            status = task["status"]
            # The message of a task that has ended is that of its last step.
            message = "" if status in ENDED else task.get("statusMessage", "")
            line = f"{status.replace('_', ' ')}{f': {message}' if message else ''}"
            if line != shown:
                self.terminal.show(f"  {line}", "dim")
                shown = line
            if status in ENDED:
                return _result_of(task)
            # Until a worker has taken the answers, polls show the same questions, also beside new ones.
            asked = task.get("inputRequests") or {}
            if requests := {key: each for key, each in asked.items() if answered.get(key) != each}:
                answered |= requests
                responses = self.questions.answer(requests)
                self.server.request(TASKS_UPDATE, {"taskId": task_id, "inputResponses": responses})
            else:
                poll_ms = 1_000 if task.get("pollIntervalMs") is None else task["pollIntervalMs"]
                self.sleep(min(max(poll_ms / 1_000, MIN_POLL_S), MAX_POLL_S))

    def _leave(self, task_id: str) -> Result:
        """Cancel the task if the user wants that. Raises CallFailed."""
        self.terminal.show()
        if self.terminal.is_interactive and self._wants_to_cancel():
            self.server.request(TASKS_CANCEL, {"taskId": task_id})
            raise CallFailed(Status.INTERRUPTED, f"Task {task_id} is cancelled.")
        raise CallFailed(
            Status.INTERRUPTED,
            f"Task {task_id} continues. To follow it, pass TASK={task_id} (--task) instead of TOOL.",
        )

    def _wants_to_cancel(self) -> bool:
        try:
            return self.terminal.ask("Cancel the task? [y/N] > ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False


def _result_of(task: Mapping[str, Any]) -> Result:
    """Return the result of a task that has ended. Raises CallFailed."""
    match task:
        case {"status": "completed", "result": dict(result)}:
            return result
        case {"status": "completed"}:
            problem = "The task completed without a result."
        case {"status": "failed"}:
            error = task.get("error") or {}
            problem = f"The task failed: {error.get('message', '')} ({error.get('code', '')})."
        case _:
            problem = "The task was cancelled."
    raise CallFailed(Status.ERROR, problem)


URL: Final = "http://127.0.0.1:3000/mcp"

DESCRIPTION: Final = "Call a tool of a running server, and answer its questions here."

EPILOG: Final = """\
Without TOOL, the tools are listed. The exit status is 0 for a result, 1 for an error of the tool or the
server, 2 for a wrong option or a question without an answer, 3 if nothing answers at the URL.
An access token is read from the environment variable TOKEN."""


def main(arguments: Sequence[str] | None = None, *, terminal: Terminal | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    terminal = terminal or Terminal()
    try:
        return _run(options, terminal)
    except CallFailed as error:
        terminal.show(f"error: {error}", "red")
        return error.status
    except KeyboardInterrupt:
        terminal.show()
        return Status.INTERRUPTED


def _run(options: argparse.Namespace, terminal: Terminal) -> int:
    if not is_trustworthy(options.url):
        raise usage_error(f"{options.url} is no valid https URL, and no http URL of this computer.")
    questions = Questions(options.tool or "The task", terminal, given_answers(options))
    with McpServer(
        options.url,
        lambda line: terminal.show(line, "dim"),
        token=os.environ.get("TOKEN") or None,
        user=options.user,
        scopes=options.scopes,
    ) as server:
        return _call(options, server, Caller(server, questions, terminal), terminal)


def _call(options: argparse.Namespace, server: McpServer, caller: Caller, terminal: Terminal) -> int:
    if options.task:
        return _print_result(caller.follow({"taskId": options.task}), terminal, as_json=options.json)
    tools = server.tools()
    if not options.tool:
        listed = [*tools.values()]
        print(printable_json(listed) if options.json else printable(describe_tools(listed), kept="\n"))
        return Status.RESULT
    tool = _find(options.tool, tools)
    words = [*options.arguments, *(split_words(options.args) if options.args else ())]
    arguments = read_arguments(words, tool.get("inputSchema") or {})
    return _print_result(caller.call(tool, arguments), terminal, as_json=options.json)


def _find(name: str, tools: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    if name not in tools:
        raise usage_error(f"The server has no tool {name}; {hint(name, [*tools])}")
    return tools[name]


def _print_result(result: Mapping[str, Any], terminal: Terminal, *, as_json: bool) -> int:
    if as_json:
        print(printable_json(result))
    elif result.get("isError"):
        terminal.show(f"tool error: {describe_result(result)}", "red")
    else:
        print(printable(describe_result(result), kept="\n\t"))
    return Status.ERROR if result.get("isError") else Status.RESULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip call",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("tool", nargs="?", metavar="TOOL")
    add("arguments", nargs="*", metavar="NAME=VALUE", help="arguments of the tool, or one JSON object")
    add("--args", help="the arguments in one text, as make call ARGS=… passes them")
    add("--url", default=URL, help=f"the MCP endpoint (default: {URL})")
    add("--user", help="sign in as this user at the local issuer of make run")
    add("--scopes", help="the scopes to sign in with, separated by spaces")
    add_answer_options(parser)
    add("--task", metavar="ID", help="follow this task instead of calling a tool")
    add("--json", action="store_true", help="print the result, or the list of the tools, as JSON")
    return parser
