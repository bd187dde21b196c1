"""``mcp-roundtrip call``: call a tool of a running server, and answer its questions here."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_roundtrip_tools.call.calls import Caller
from mcp_roundtrip_tools.call.errors import CallFailed, Status, usage_error
from mcp_roundtrip_tools.call.fields import read_arguments, split_words
from mcp_roundtrip_tools.call.questions import Questions, add_answer_options, given_answers
from mcp_roundtrip_tools.call.server import McpServer
from mcp_roundtrip_tools.call.terminal import Terminal, describe_result, describe_tools
from mcp_roundtrip_tools.client.http import is_trustworthy
from mcp_roundtrip_tools.client.terminal_text import printable, printable_json
from mcp_roundtrip_tools.template.model import hint

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
        raise usage_error(f"{options.url} is no https URL, and no URL of this computer.")
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
