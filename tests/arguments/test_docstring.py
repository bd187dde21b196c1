"""The three docstring styles, and docstrings that have none of them."""

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcp_roundtrip.arguments.docstring import parse_docstring
from mcp_roundtrip.arguments.signature import Signature
from mcp_roundtrip_testing import Player
from support.servers import server_of

GOOGLE = """Create a database.

    It takes a minute.

    Args:
        name: What to call it,
            in lower case.
        size (dict[str, tuple[int, int]], optional): How large: vcpus
        plain:

    Returns:
        The address.
    """

NUMPY = """Create a database.

    It takes a minute.

    Parameters
    ----------
    name : str
        What to call it,
        in lower case.
    size, other : dict, optional
        How large: vcpus

    Returns
    -------
    str
        The address.
    """

REST = """Create a database.

    It takes a minute.

    :param name: What to call it,
        in lower case.
    :type name: str
    :param dict size: How large: vcpus
    :returns: The address.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST])
def test_every_style_yields_the_same_descriptions_and_the_prose_has_the_rest(text):
    prose, found = parse_docstring(text)
    assert found["name"] == "What to call it, in lower case."
    assert found["size"] == "How large: vcpus"
    assert "plain" not in found
    assert prose.startswith("Create a database.\n\nIt takes a minute.\n\n")
    assert "The address." in prose
    assert not any(word in prose for word in ("lower case", "vcpus", "Args", "Parameters", "type name"))


def test_a_section_without_entries_stays_in_the_prose():
    text = "Count.\n\nParameters:\n    none of importance\n"
    assert parse_docstring(text)[0] == text.strip()


@pytest.mark.parametrize("text", ["", "   \n  "])
def test_an_empty_docstring_has_no_prose(text):
    assert parse_docstring(text) == ("", {})


def test_every_section_on_parameters_is_read():
    google = "Do.\n\nArgs:\n    x: It.\n\nKeyword Args:\n    y: That.\n\nOther Parameters:\n    z: More.\n"
    numpy = (
        "Do.\n\nParameters\n----------\nx\n    It.\n\nOther Parameters\n----------------\ny, z\n    That.\n"
    )
    assert parse_docstring(google)[1] == {"x": "It.", "y": "That.", "z": "More."}
    assert parse_docstring(numpy)[1] == {"x": "It.", "y": "That.", "z": "That."}
    assert parse_docstring(google)[0] == parse_docstring(numpy)[0] == "Do."


def test_a_text_that_the_field_replaces_in_the_schema_is_in_the_description():
    def tool(
        name: str,
        own: Annotated[int, Field(description="A")],
        two: int = Field(2, description="B"),
        same: int = Field(3, description="C"),
    ):
        """Do it.

        Args:
            name: The name.
            own: Count from 0,
                not from 1.
            two: Even.
            same: C
        """

    kept = "Do it.\n\nArgs:\n    own: Count from 0, not from 1.\n    two: Even."
    [definition] = Player(server_of(tool)).request("tools/list")["result"]["tools"]
    assert definition["description"] == kept


def test_a_description_of_a_default_value_replaces_no_text():
    def tool(found: Any = SimpleNamespace(description="a default")):  # noqa: B008 - no call of each request
        """Do it.

        Args:
            found: The item.
        """

    assert Signature.from_function(tool).replaced_texts == {}
