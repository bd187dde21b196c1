"""The pages that are made from docstrings are up to date, and every public name is on some page."""

from __future__ import annotations

import os
import re

import pytest

import mcp_roundtrip
from support.docstring_pages import PAGES, render
from support.project import ROOT

REFERENCE = ROOT / "docs/reference"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_docstrings(name: str) -> None:
    page, made = REFERENCE / name, render(PAGES[name])
    if os.environ.get("WRITE_TABLES"):
        page.write_text(made, "utf-8")
    assert page.read_text("utf-8") == made, "make reference"


def test_every_public_name_has_a_place_in_the_reference() -> None:
    generated = {name for page in PAGES.values() for names in page.sections.values() for name in names}
    written = "\n".join(page.read_text("utf-8") for page in (REFERENCE / "api").glob("*.md"))
    explained = set(re.findall(r"^class (\w+)", written, re.MULTILINE)) | generated
    assert set(mcp_roundtrip.__all__) - explained == set()
