"""What is shown on the pages of docs/."""

import re

from support.functions import FUNCTIONS

DOCS = FUNCTIONS.parent / "docs"

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    text = (DOCS / page).read_text("utf-8")
    return [fence[2] for fence in _FENCE.finditer(text) if fence[1] == language]
