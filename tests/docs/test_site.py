import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from support.interpreters import run
from support.project import ROOT

MKDOCS = ROOT / ".venv-docs/bin/mkdocs"
CONFIG = ROOT / "development/mkdocs.yml"
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

LINK = re.compile(r"\]\(([^)#]+)")

FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
MAX_WIDTH = 130

COUNTED = frozenset({"h2", "h3", "li", "ul", "ol", "pre", "table", "tr", "td", "strong", "blockquote"})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the built site. A warning, such as a dead link, is a failure."""
    folder = tmp_path_factory.mktemp("site")
    command: list[str | Path] = [MKDOCS, "build", "--strict", "--config-file", CONFIG, "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = run(*command, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Documentation built" in done.stderr  # --quiet would also hide warnings from --strict
    return folder


def location(page: Path) -> Path:
    name = page.relative_to(DOCS).with_suffix("")
    return name.parent if name.name == "index" else name


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in COUNTED:
            self.counts[tag] += 1


def test_each_page_has_what_github_shows_and_loads_nothing_from_another_host(site):
    """Python-Markdown, which the site uses, differs from CommonMark in how lists are indented."""
    github = MarkdownIt("commonmark").enable("table")
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)'
        r'|<link rel="(?:stylesheet|preconnect)[^>]*href="(https?:[^"]+)'
    )
    different = {}
    for page in PAGES:
        html = (site / location(page) / "index.html").read_text("utf-8")
        assert loaded.findall(html) == [], page  # nothing is of another host
        [article] = re.findall(r"<article.*?</article>", html, re.DOTALL)
        content = re.sub(r"<aside.*?</aside>", "", article, flags=re.DOTALL)
        ours, theirs = Elements(content).counts, Elements(github.render(page.read_text("utf-8"))).counts
        if ours != theirs:
            different[str(page.relative_to(DOCS))] = {"site": ours - theirs, "GitHub": theirs - ours}
    assert different == {}


def test_no_line_of_prose_is_long():
    long = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in [ROOT / "README.md", *PAGES]
        for line in FENCE.sub("", page.read_text("utf-8")).splitlines()
        if len(line) > MAX_WIDTH and not line.lstrip().startswith("|")
    ]
    assert long == []


def test_the_index_of_a_folder_links_to_all_its_pages():
    for folder in ("guides", "explanation", "reference", "reference/api"):
        index = DOCS / folder / "index.md"
        linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text("utf-8"))}
        pages = {*index.parent.glob("*.md"), *index.parent.glob("identity/*.md")} - {index}
        assert pages - linked == set(), folder


def test_the_search_finds_every_page(site):
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    assert found == {str(location(page)).removeprefix(".").rstrip("/") + "/" for page in PAGES} - {"/"} | {""}
