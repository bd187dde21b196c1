import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import mcp_roundtrip
from support import message_pages
from support.docstring_pages import PAGES, render
from support.project import ROOT

REFERENCE = ROOT / "docs/reference"


MADE: dict[Path, Callable[[], str]] = {
    REFERENCE / name: partial(render, page) for name, page in PAGES.items()
}
MADE[message_pages.PAGE] = message_pages.render


@pytest.mark.parametrize("page", MADE, ids=lambda page: page.name)
def test_the_page_has_the_docstrings_or_the_table_that_it_is_made_from(page):
    made = MADE[page]()
    if os.environ.get("WRITE_TABLES"):
        page.write_text(made, "utf-8")
    assert page.read_text("utf-8") == made, "make reference"


def test_every_public_name_has_a_place_in_the_reference():
    generated = {name for page in PAGES.values() for names in page.sections.values() for name in names}
    written = "\n".join(page.read_text("utf-8") for page in (REFERENCE / "api").glob("*.md"))
    explained = set(re.findall(r"^class (\w+)", written, re.MULTILINE)) | generated
    assert set(mcp_roundtrip.__all__) - explained == set()


def test_the_page_of_messages_has_every_module_of_the_table():
    modules = {path.stem for path in (ROOT / "tests/messages").glob("*.py")} - {"cases", "functions"}
    assert modules == message_pages.SECTIONS.keys()


def test_the_messages_that_clients_and_operators_see_are_in_the_code():
    code, shown = message_pages.sources(), message_pages.shown_messages()
    assert len(shown) > 30
    assert [message for message in shown if message not in code] == []
