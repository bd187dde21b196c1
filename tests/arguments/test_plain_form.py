"""A form of a type that JSON has is, and reads, what pydantic's form of the type is, and reads."""

from collections.abc import Callable
from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.arguments.plain_form import PlainForm, form_of
from mcp_roundtrip.internal_errors import InvalidAnswer
from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from support.json_values import any_json

MODELS = st.sampled_from([bool, int, float, str])
VALUES = any_json(finite=True) | st.sampled_from(["\ud800", "", None, 2.0, 10**30])
CONTENTS = VALUES.map(lambda value: {SINGLE_FIELD: value}) | st.dictionaries(
    st.sampled_from([SINGLE_FIELD, "other"]), VALUES
)


def outcome(parse: Callable[[Any], Any], content: Any) -> Any:
    try:
        value = parse(content)
    except InvalidAnswer as error:
        return error.reason
    return type(value), value


@given(MODELS, CONTENTS)
def test_an_answer_is_read_as_pydantic_reads_it(model: Any, content: Any) -> None:
    plain, by_pydantic = form_of(model), Form.from_model(model)
    assert isinstance(plain, PlainForm)
    assert outcome(plain.parse, content) == outcome(by_pydantic.parse, content)
    assert plain.requested_schema == by_pydantic.requested_schema
    assert list(plain.requested_schema) == list(by_pydantic.requested_schema)
    assert plain.is_confirmation is by_pydantic.is_confirmation


def test_a_type_with_metadata_without_a_hash_has_a_form() -> None:
    assert isinstance(form_of(Annotated[str, []]), Form)
