"""Cursors: every item is listed once and in order; only issued cursors are accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.server.lists import find_page

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
