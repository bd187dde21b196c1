"""A user with a browser who opens the link of a question page and answers there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from support.html_form import BrowserForm, Element
from support.sam_applications import http

PROGRAM: Final = Path(__file__).with_name("question_page.mjs")

LINK: Final = re.compile(r"https?://[^\s\"'<>\\)\]]+/questions\?token=[\w-]+")

HEADERS: Final = {
    "content-type": "application/x-www-form-urlencoded",
    "origin": "null",
    "sec-fetch-site": "same-origin",
    "sec-fetch-mode": "navigate",
}
"""What Chromium, Firefox and Safari send with a form of a page that has `no-referrer`."""


def link_in(text: str) -> str:
    """Return the link of the question page that a tool's result names."""
    links = set(LINK.findall(text))
    assert len(links) == 1, f"{len(links)} links in {text!r}"
    return str(links.pop())


def answer_page(link: str, *answers: str) -> None:
    """Choose what a user reads beside a button of each field, in their order, and send the form."""
    form = _open(link)
    for name, answer in zip(_visible_names(form), answers, strict=True):
        form.choose(name, [_options(form, name)[answer]])
    _post(link, form.body())


def choose_first_on_page(link: str) -> None:
    """Choose the first option of each field, and send the form."""
    form = _open(link)
    for name in _visible_names(form):
        [first, *_] = filter(None, (value for each in form.named(name) for value in _values(each)))
        form.choose(name, [first])
    _post(link, form.body())


def visit_page(
    run_in_browser: Callable[[Path, Any], Any], *steps: Any, tamper: str = "", **options: Any
) -> Any:
    """Follow steps in Chromium: verbs of question_page.mjs, or pairs of a verb and its argument.

    Return what the steps saw in their order, and the complaints and requests of the browser.
    """
    pairs = [each if isinstance(each, tuple) else (each, None) for each in steps]
    return run_in_browser(PROGRAM, {"options": options, "tamper": tamper, "steps": pairs})


def _open(link: str) -> BrowserForm:
    return BrowserForm(http(link).body.decode())


def _post(link: str, body: str) -> None:
    answer = http(link.partition("?")[0], method="POST", body=body.encode(), headers=HEADERS)
    assert answer.status == 200, answer.body


def _visible_names(form: BrowserForm) -> list[str]:
    shown = (each for each in form.controls if each.attributes.get("type") != "hidden")
    return list(dict.fromkeys(each.attributes["name"] or "" for each in shown))


def _values(control: Element) -> list[str]:
    """The values of what can be chosen."""
    options = control.find("option") if control.tag == "select" else [control]
    return [each.attributes["value"] or "" for each in options]


def _options(form: BrowserForm, name: str) -> dict[str, str]:
    """The values of radio buttons and check boxes by the texts beside them."""
    values = {}
    for control in form.named(name):
        label = control.parent
        assert label is not None
        assert label.tag == "label"
        values[label.text.strip()] = control.attributes["value"] or ""
    return values
