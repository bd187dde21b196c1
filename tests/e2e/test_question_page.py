"""The question page in Chromium: keyboard, phone, light and dark, and hostile texts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mcp_roundtrip import Server
from support.authorized_server import http_api
from support.deployment import Deployment
from support.page_user import visit_page
from support.question_page import PATH
from support.stored_tasks import StoredTasks, form, url

if TYPE_CHECKING:
    from support.browser import RunProgram

pytest_plugins = ["support.browser"]

WIDE = {"viewport": {"width": 760, "height": 640}}
PHONE = {"viewport": {"width": 360, "height": 740}, "isMobile": True, "hasTouch": True}
SIZE = {
    "type": "object",
    "properties": {
        "vcpus": {
            "type": "integer",
            "title": "Virtual CPUs",
            "description": "More can be added later.",
            "minimum": 1,
            "maximum": 16,
            "default": 2,
        },
        "region": {"type": "string", "title": "Region", "enum": ["eu-west-1", "us-east-1"]},
        "backups": {
            "type": "array",
            "title": "Backups",
            "items": {"type": "string", "enum": ["Daily", "Weekly"]},
        },
        "owner": {"type": "string", "title": "Owner", "format": "email"},
    },
    "required": ["vcpus", "region", "owner"],
}
MESSAGE = "How large should the database “orders” be?"


@dataclass
class ServedPage:
    """Where the page is, the calls that wait, and a browser."""

    url: str
    calls: StoredTasks
    run_in_browser: RunProgram

    def link(self, token: str) -> str:
        return f"{self.url}?token={token}"

    def visit(self, token: str, *steps: Any, **options: Any) -> Any:
        """Open the link and follow these steps, as `visit_page` does."""
        return visit_page(self.run_in_browser, ("goto", self.link(token)), *steps, **{**WIDE, **options})


@pytest.fixture
def page(run_in_browser):
    """Serve the page of a server in this process."""
    deployment = Deployment(Server("databases", title="Acme databases"), user=None)

    with closing(http_api(deployment.invoke).start()) as http:
        yield ServedPage(http.url + PATH, StoredTasks(deployment.table), run_in_browser)


def texts(result: Any) -> list[str]:
    """Return what steps saw that is text."""
    return [each for each in result["seen"] if isinstance(each, str)]


def test_a_user_answers_with_the_keyboard_alone(page):
    token, task = page.calls.ask({"size": form(SIZE, MESSAGE)})
    result = page.visit(
        token,
        *(("press", "Tab"), "focused", ("press", "Control+A"), ("type", "4")),
        *(("press", "Tab"), "focused", ("press", "ArrowDown")),
        *(("press", "Tab"), "focused", ("press", "Space")),
        *(("press", "Tab Tab"), "focused", ("type", "ada@example.com")),
        *(("submit", "Enter"), "url", ("text", "h1")),
    )
    focused = ["input Virtual CPUs", "input eu-west-1", "input Daily", "input Owner"]
    assert texts(result) == [*focused, page.link(token), "Thank you"]
    assert result["complaints"] == []
    content = {"vcpus": 4, "region": "us-east-1", "backups": ["Daily"], "owner": "ada@example.com"}
    assert page.calls.responses(task) == {"size": {"action": "accept", "content": content}}
    [post] = [headers for method, _, headers in result["requests"] if method == "POST"]
    assert post["origin"] == "null"
    assert "referer" not in post


def test_the_keyboard_reaches_the_buttons_in_their_order(page):
    token, task = page.calls.ask({"size": form(SIZE, MESSAGE)})
    tabs = [step for _ in range(7) for step in (("press", "Tab"), "focused")]
    result = page.visit(token, *tabs, ("press", "Tab"), ("submit", "Space"))
    assert texts(result)[-3:] == ["input Owner", "button Send", "button Decline"]
    assert page.calls.responses(task) == {"size": {"action": "cancel"}}


def test_errors_have_the_focus_first_and_lead_to_their_fields(page):
    token, _ = page.calls.ask({"size": form(SIZE, MESSAGE)})
    result = page.visit(
        token,
        *(("press", "Tab Control+A"), ("type", "seventeen"), ("submit", "Enter"), "focused"),
        *(("press", "Tab"), "focused", ("press", "Enter"), ("evaluate", "location.hash"), "focused"),
        ("evaluate", "document.activeElement.value"),
    )
    summary, link, *field = texts(result)
    assert summary.startswith("div ")
    assert link.startswith("a Virtual CPUs: ")
    assert field == ["#f0-0", "input Virtual CPUs", "seventeen"]


HOSTILE = """</title></textarea><script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">
"' onfocus=window.pwned=3 autofocus x='"""


def test_hostile_texts_run_nothing_and_are_shown(page):
    schema = {
        "type": "object",
        "properties": {
            HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE},
            "choice": {"type": "string", "enum": [HOSTILE, "b"], "title": HOSTILE, "default": HOSTILE},
        },
    }
    requests = {HOSTILE: form(schema, HOSTILE), "link": url("javascript://x/%0awindow.pwned=4", HOSTILE)}
    token, task = page.calls.ask(requests, tool=HOSTILE)
    accept = "[...document.querySelectorAll('[value=accept][type=radio]')].forEach((e) => e.checked = true)"
    result = page.visit(
        token,
        ("evaluate", "window.pwned ?? 'nothing'"),
        *(("text", "h1"), ("count", "script, img, a")),
        ("evaluate", "document.querySelector('textarea').value"),
        *(("click", "Send"), ("evaluate", "window.pwned ?? 'nothing'")),
        *(("evaluate", accept), ("click", "Send")),
    )
    _, before, heading, scripts, default, _, after, *_ = result["seen"]
    assert (before, after, scripts, default) == ("nothing", "nothing", 0, HOSTILE)
    assert heading.split() == f"Question from {HOSTILE}".split()
    assert "Content Security Policy" not in " ".join(result["complaints"]), "there was nothing to block"
    content = {HOSTILE: HOSTILE, "choice": HOSTILE}
    assert page.calls.responses(task) == {
        HOSTILE: {"action": "accept", "content": content},
        "link": {"action": "accept"},
    }


def test_the_policy_blocks_a_script_even_if_one_were_in_the_page(page):
    token, _ = page.calls.ask({"size": form(SIZE, MESSAGE)})
    injected = (
        "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
        "<a id=bad href='javascript:window.pwned=3'>x</a><style>h1 { display: none }</style>"
        "<form id=away action='https://evil.example/'></form>"
    )
    result = page.visit(
        token,
        ("evaluate", "document.getElementById('bad').click(), document.getElementById('away').submit()"),
        *(("evaluate", "window.pwned ?? 'nothing'"), ("text", "h1"), "url"),
        tamper=injected,
    )
    assert result["seen"][2:] == ["nothing", "Question from provision", page.link(token)]
    blocked = " ".join(result["complaints"])
    for directive in ("script-src", "img-src", "style-src", "form-action"):
        assert directive in blocked or "default-src" in blocked
    assert not [to for _, to, _ in result["requests"] if "evil.example" in to]


def test_a_url_question_opens_a_new_tab_that_learns_nothing(page):
    target = page.url.replace("/mcp/questions", "/elsewhere?a=1")
    token, task = page.calls.ask({"login": url(target, "Sign in to continue.")})
    opening = (("text", "code"), ("open", "in a new tab"), ("click", "I have finished"))
    result = page.visit(token, *opening, ("text", "h1"))
    _, shown, opened, _, title = result["seen"]
    assert (shown, opened, title) == (target, [target, [True, ""]], "Thank you")
    assert page.calls.responses(task) == {"login": {"action": "accept"}}


def test_a_form_of_another_origin_is_refused_by_what_the_browser_sends(page):
    token, task = page.calls.ask({"size": form({"type": "object", "properties": {"x": {"type": "string"}}})})
    attack = (
        "(() => { const form = document.createElement('form'); form.method = 'post';"
        f" form.action = '{page.url}'; form.innerHTML = '<input name=token value={token}>"
        "<input name=action value=accept>'; document.body.append(form); form.submit(); })()"
    )
    elsewhere = page.url.replace("127.0.0.1", "localhost").replace("/mcp/questions", "/evil")
    steps = (("goto", elsewhere), ("evaluate", attack), ("press", "Tab"), ("text", "body"))
    result = visit_page(page.run_in_browser, *steps)
    posts = [headers for method, _, headers in result["requests"] if method == "POST"]
    assert len(posts) == 1
    assert page.calls.responses(task) == {}


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_axe_finds_no_violation_of_accessibility(page, color_scheme):
    more = {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time", "title": "When"},
            "city": {"type": "string", "enum": [f"City {number}" for number in range(20)], "title": "City"},
            "tags": {"type": "array", "items": {"type": "string", "enum": [f"T{n}" for n in range(40)]}},
            "note": {"type": "string"},
        },
        "required": ["when", "city"],
    }
    requests = {"size": form(SIZE, MESSAGE), "more": form(more), "login": url("https://id.example/")}
    token, _ = page.calls.ask(requests)
    sent = ("audit", ("click", "Send"), ("count", ".error"), "audit", ("click", "Cancel"), "audit")
    result = page.visit(token, *sent, colorScheme=color_scheme)
    _, (open_form, passed), _, errors, (form_with_errors, _), _, (notice, _) = result["seen"]
    assert (open_form, form_with_errors, notice) == ([], [], [])
    assert passed > 20
    assert errors > 3


LARGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        **{f"f{number}": {"type": "string", "title": f"Field {number}"} for number in range(199)},
        "city": {"type": "string", "title": "City", "enum": [f"City {number}" for number in range(5_000)]},
    },
    "required": ["city"],
}


RIGHT_TO_LEFT = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "الاسم", "maxLength": 40, "default": "مرحبا 👩‍🚀"}},
    "required": ["name"],
}
NARROW = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
@pytest.mark.parametrize("schema", [SIZE, RIGHT_TO_LEFT, LARGE], ids=["size", "rtl", "large"])
def test_a_phone_scrolls_in_one_direction_in_both_color_schemes(page, color_scheme, schema):
    long = "Averyveryverylongwordwithoutanyspaceinit" * 3
    token, _ = page.calls.ask(
        {"q": form(schema, f"{MESSAGE} {long}"), "u": url(f"https://id.example/{long}")}
    )
    scheme = (
        "getComputedStyle(document.documentElement).colorScheme"
        " + matchMedia('(prefers-color-scheme: dark)').matches"
    )
    direction = "getComputedStyle(document.querySelector('legend, .label')).direction"
    looks = [("evaluate", expression) for expression in (NARROW, scheme, direction)]
    result = page.visit(token, *looks, **PHONE, colorScheme=color_scheme)
    _, fits, seen_scheme, direction = result["seen"]
    assert fits is True
    assert seen_scheme == f"light dark{str(color_scheme == 'dark').lower()}"
    assert direction == ("rtl" if schema is RIGHT_TO_LEFT else "ltr")


def test_the_list_of_errors_fits_a_phone_and_each_text_in_it_has_its_own_direction(page):
    fields = {"a": {"type": "integer", "title": "العدد"}, "b": {"type": "integer", "title": "long" * 40}}
    token, _ = page.calls.ask({"q": form({"type": "object", "properties": fields, "required": ["a"]}, "?")})
    texts_of_list = "[...document.querySelectorAll('.summary a, .summary bdi')]"
    directions = f"{texts_of_list}.map((each) => getComputedStyle(each).direction)"
    looks = [("evaluate", expression) for expression in (NARROW, directions)]
    mistakes = "document.getElementsByName('0.1')[0].value = 'x'"
    result = page.visit(token, ("evaluate", mistakes), ("click", "Send"), *looks, **PHONE)
    assert result["seen"][-2:] == [True, ["ltr", "rtl", "ltr", "ltr", "ltr", "ltr"]]


def test_screenshots_of_the_documentation(page, tmp_path, request):
    """Run with --basetemp to keep the images; docs/images has copies."""
    token, _ = page.calls.ask({"size": form(SIZE, MESSAGE)})
    shots = {"light": WIDE, "dark": PHONE}
    for scheme, options in shots.items():
        target = tmp_path / f"question-page-{scheme}.png"
        page.visit(token, ("screenshot", str(target)), **options, colorScheme=scheme)
        assert target.stat().st_size < 60_000
