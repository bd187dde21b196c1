"""Returned models and dataclasses conform to the output schema, although pydantic trusts instances."""

from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, ClassVar

import jsonschema
import pytest
from annotated_types import Ge, Len
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    computed_field,
    field_serializer,
)

from mcp_roundtrip.errors import UsageError
from support.interpreters import run_program
from support.servers import output_of

Positive = Annotated[int, Ge(1)]


@dataclass(frozen=True)
class Plain:
    n: Positive


class Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    n: Positive = Field(alias="num")
    other: int = Field(1, alias="n")  # an alias that is another field's name


class Holder(BaseModel):
    plain: Plain | None = None
    models: list[Model] = []
    excluded: Any = Field(None, exclude=True)


BAD = Model.model_construct(n=-5)


@pytest.mark.parametrize(
    ("annotation", "value", "where"),
    [
        (Plain, Plain(-5), "n"),
        (tuple[Plain, int], (Plain(-5), 1), "[0].n"),
        (list[int], [1, None], "[1]"),
        (dict[str, Annotated[list[int], Len(0, 1)]], {"a": [1, 2]}, "a"),
        (Model, BAD, "num"),
        (Holder, Holder(models=[BAD]), "models[0].num"),
        (Holder, {"plain": Plain(-5)}, "plain.n"),
    ],
)
def test_an_instance_that_violates_the_output_schema_is_refused_by_place(annotation, value, where):
    with pytest.raises(UsageError) as caught:
        output_of(annotation).dump(value)
    lines = str(caught.value).splitlines()[1:]
    place = f"result.{where}".replace(".[", "[")
    assert place in [line.partition(": ")[0] for line in lines]
    assert "-5" not in str(caught.value)


class Split(BaseModel):
    tags: Annotated[list[str], BeforeValidator(lambda text: text.split(","))]


class Written(BaseModel):
    n: int
    secret: str = Field(exclude=True)
    _cache: int = PrivateAttr(1)

    @field_serializer("n")
    def as_text(self, n: int) -> str:
        return f"{n} pieces"

    @computed_field
    @property
    def twice(self) -> int:
        return 2 * self.n


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class Wider(Closed):
    more: int = 1


@dataclass
class Made:
    n: Positive
    given: InitVar[int]
    kind: ClassVar[str] = "made"
    total: int = field(init=False, default=0)

    def __post_init__(self, given: int) -> None:
        self.total = self.n + given


CIRCULAR = Holder()
CIRCULAR.excluded = CIRCULAR  # excluded, so it is never serialized


@pytest.mark.parametrize(
    ("annotation", "value", "written"),
    [
        (Split, Split(tags="a,b"), {"tags": ["a", "b"]}),
        (Written, Written(n=1, secret="s"), {"n": "1 pieces", "twice": 2}),
        (Closed, Wider(n=1), {"n": 1}),
        (Made, Made(1, given=2), {"n": 1, "total": 3}),
        (Model | Plain, Plain(1), {"n": 1}),
        (Holder, CIRCULAR, {"plain": None, "models": []}),
        (Annotated[Plain, PlainSerializer(lambda plain: plain.n, return_type=int)], Plain(1), 1),
    ],
)
def test_a_valid_instance_is_serialized_for_any_input_type_of_its_validators(annotation, value, written):
    assert output_of(annotation).dump(value)["structuredContent"] == written


@given(st.integers(-2, 2), st.integers(-2, 2))
def test_a_result_conforms_to_the_output_schema_or_is_refused_and_is_not_mutated(n, other):
    output = output_of(list[Plain | Model])
    value = [Plain(n), Model.model_construct(n=other, other=1)]
    try:
        _, data = output.dump(value).values()
    except UsageError:
        assert n < 1 or other < 1
    else:
        jsonschema.validate(data, output.json_schema())
    assert value == [Plain(n), Model.model_construct(n=other, other=1)]


PROGRAM = """
import sys
from mcp_roundtrip.content.tool_results import Output

def tool() -> dict[str, list[int]]: ...

assert Output.from_function(tool).dump({"a": [1]})["structuredContent"] == {"a": [1]}
print("jsonschema_rs" in sys.modules)
"""


def test_a_result_of_plain_types_does_not_import_the_engine_of_json_schemas():
    assert run_program(PROGRAM).stdout.strip() == "False"
