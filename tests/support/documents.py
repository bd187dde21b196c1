"""The code that the documents of this project show."""

import json
import re
from textwrap import dedent
from typing import Any

from support.project import ROOT

CONNECTING = "docs/guides/connecting.md"
LOCAL_URL = "http://127.0.0.1:3000/mcp"
"""Where `make run` serves the examples."""

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


def read_document(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def code_blocks(path: str, language: str) -> list[str]:
    """Return the fenced blocks of a language, in their order, without the indentation of a list's item."""
    return blocks_of(read_document(path), language)


def blocks_of(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language in the text of a document."""
    return [dedent(fence[3]) for fence in FENCE.finditer(text) if fence[2] == language]


def run_blocks(*blocks: str, **names: Any) -> dict[str, Any]:
    """Execute blocks of Python in one namespace, which has these names, and return it."""
    namespace = {"__name__": "page", **names}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"block {number} of the page", "exec", dont_inherit=True), namespace)
    return namespace


def inspector_configuration(url: str) -> Any:
    """Return MCP Inspector's configuration from docs/guides/connecting.md, for a server at `url`."""
    [shown] = code_blocks(CONNECTING, "json")
    assert LOCAL_URL in shown
    return json.loads(shown.replace(LOCAL_URL, url))
