"""What a user is shown of a URL before opening it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.question_ui.controls import parse_web_address


@pytest.mark.parametrize(
    ("url", "host", "shown"),
    [
        ("https://id.example/login?next=%2F#top", "id.example", "https://id.example/login?next=%2F#top"),
        ("HTTPS://ID.EXAMPLE", "id.example", "https://id.example"),
        ("http://127.0.0.1:3000/x", "127.0.0.1:3000", "http://127.0.0.1:3000/x"),
        ("https://[2001:db8::1]:8443/", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"),
        ("https://bank.example@evil.example/", "evil.example", "https://bank.example@evil.example/"),
        ("https://evil.example\\@bank.example/", "evil.example", "https://evil.example/@bank.example/"),
        ("https://раураl.example/ü", "xn--l-7sba6dbr.example", None),
        ("https://evil.example/\u202egnp.exe", "evil.example", "https://evil.example/%E2%80%AEgnp.exe"),
        ("https://evil.example。bank.example/", "evil.example.bank.example", None),
    ],
)
def test_a_web_address_is_shown_with_the_host_that_a_browser_opens(
    url: str, host: str, shown: str | None
) -> None:
    link = parse_web_address(url)
    assert link is not None
    assert link.host == host
    assert link.url.isascii()
    assert shown is None or link.url == shown


@pytest.mark.parametrize(
    "url",
    [
        "javascript://%0aalert(1)",
        "data:text/html,<script>alert(1)</script>",
        "app://open/this",
        "https://",
        "https://[broken/",
        "https://evil\t.example/",
        "https://evil.example\n.bank.example/",
        "https://host:99999/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://faß.example/",
        "https://a b.example/",
        "https://a<b>.example/",
    ],
)
def test_any_other_url_is_no_link(url: str) -> None:
    assert parse_web_address(url) is None


@given(st.text(max_size=40))
def test_no_url_gives_a_link_to_another_scheme_or_with_markup(rest: str) -> None:
    link = parse_web_address(f"https://{rest}")
    if link is not None:
        assert link.url.startswith("https://")
        assert link.url.isascii()
        assert not set(link.url) & set('<>"\\ \n')
        assert link.host in link.url
