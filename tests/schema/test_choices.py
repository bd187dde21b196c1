"""Forms whose options are known at run time alone."""

from __future__ import annotations

import pytest

from mcp_roundtrip import one_of
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import InvalidAnswer
from mcp_roundtrip.schema.forms import Form


def test_the_options_are_offered_in_their_order_and_one_is_the_answer() -> None:
    form = Form.of(one_of(["b", "a"], description="Which?"))
    assert form.requested_schema["properties"] == {
        "value": {"type": "string", "enum": ["b", "a"], "description": "Which?"}
    }
    assert form.parse({"value": "a"}) == "a"


def test_anything_else_is_no_answer() -> None:
    with pytest.raises(InvalidAnswer):
        Form.of(one_of({"a": 1, "b": 2})).parse({"value": "c"})


@pytest.mark.parametrize("options", [[], ["a", "a"]])
def test_a_choice_that_is_none_is_refused(options: list[str]) -> None:
    with pytest.raises(DefinitionError):
        one_of(options)
