"""Cursors: every item is listed once and in order; only issued cursors are accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Server
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.server.lists import find_page
from support.deployment import Deployment

NAMES = [f"tool_{number}" for number in range(10)]
SIZE = 4

lists = st.lists(st.text(max_size=20), max_size=40, unique=True)


def read_pages(kind, names, size):
    """Return the pages and the cursors between them."""
    pages = []
    cursors = []
    cursor = None
    while not pages or cursor is not None:
        part, following = find_page(kind, names, cursor, size)
        cursor = following.get("nextCursor")
        pages.append(names[part])
        cursors += [] if cursor is None else [cursor]
    return pages, cursors


def refused(cursor, names=NAMES, kind="tools", size=SIZE):
    with pytest.raises(ProtocolError) as caught:
        find_page(kind, names, cursor, size)
    return caught.value.code == INVALID_PARAMS


@given(lists, st.integers(1, 50))
def test_all_pages_together_have_every_item_once_in_order(names, size):
    pages, cursors = read_pages("tools", names, size)
    assert [name for part in pages for name in part] == names
    assert all(len(part) == size for part in pages[:-1])
    assert pages[-1] or not names
    assert len(set(cursors)) == len(cursors)
    assert (cursors == []) == (len(names) <= size)


@pytest.mark.parametrize(("hides", "scope"), [(False, "public"), (True, "private")])
def test_all_pages_of_a_list_have_one_cache_scope(hides, scope):
    server = Server("pages", page_size=1, hide_unauthorized=hides)
    for name in ("a", "b"):
        server.tool(name=name)(lambda: "")
    client = Deployment(server, user=None)
    first = client.result("tools/list")
    second = client.result("tools/list", cursor=first["nextCursor"])
    assert [first["cacheScope"], second["cacheScope"]] == [scope, scope]


def test_a_cursor_is_valid_in_any_process_and_continues_or_is_refused_after_the_page_size_changed():
    _, cursors = read_pages("tools", NAMES, SIZE)
    for _ in range(2):
        assert NAMES[find_page("tools", list(NAMES), cursors[0], SIZE)[0]] == NAMES[4:8]
    assert NAMES[find_page("tools", NAMES, cursors[0], 2)[0]] == NAMES[4:6]
    assert refused(cursors[0], size=3)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("prompts", NAMES),
        *(
            ("tools", earlier)
            for earlier in (
                NAMES[:-1],
                [*NAMES, "another"],
                [*reversed(NAMES)],
                [*NAMES[:9], "renamed"],
                ["tool_0tool_1", *NAMES[2:], "x"],
            )
        ),
    ],
)
def test_a_cursor_of_another_list_or_an_earlier_deployment_is_refused(kind, names):
    for cursor in read_pages(kind, names, SIZE)[1]:
        assert refused(cursor)


POSITIONS = ["0", "-4", "+4", "04", "4.0", "٤", " 4", "1", "5", "12", "9" * 5_000, ""]
FORGED = ["", "x", ".", "4", "4.", "4.\ud800", "eyJwYWdlIjogMn0=", "\ud800", "a" * 100_000]


@pytest.mark.parametrize(
    "cursor",
    [
        *(read_pages("tools", NAMES, SIZE)[1][0].replace("4", position, 1) for position in POSITIONS),
        *(*FORGED, 0, 4, 1.5, True, False, [], {}, ["4"]),
    ],
)
def test_a_cursor_that_was_not_issued_is_refused(cursor):
    assert refused(cursor)


@st.composite
def changed_cursors(draw):
    cursor = draw(st.sampled_from(read_pages("tools", NAMES, SIZE)[1]))
    at = draw(st.integers(0, len(cursor) - 1))
    return cursor[:at] + draw(st.characters()) + cursor[at + 1 :]


@given(st.text(max_size=60) | changed_cursors())
def test_any_other_text_is_refused_as_cursor(text):
    assert text in read_pages("tools", NAMES, SIZE)[1] or refused(text)
