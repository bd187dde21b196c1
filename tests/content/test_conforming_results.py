"""Returned models and dataclasses conform to the output schema, although pydantic trusts instances."""

from collections import deque
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import jsonschema
import pytest
from annotated_types import Ge, Len
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    computed_field,
    field_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import UsageError
from support.interpreters import run_program

Positive = Annotated[int, Ge(1)]


@dataclass
class Plain:
    n: Positive


@dataclass(frozen=True)
class Frozen:
    n: Positive


@pydantic_dataclass
class Checked:
    n: Positive


class Model(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    n: Positive = Field(alias="num")
    other: int = Field(1, alias="n")  # an alias that is another field's name


class Holder(BaseModel):
    plain: Plain | None = None
    models: list[Model] = []
    named: dict[str, Model] = {}
    excluded: Plain | None = Field(None, exclude=True)


class StrictHolder(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    models: list[Model] = []
    plain: Plain | None = None
    frozen: set[Frozen] = set()


class Root(RootModel[list[Model]]): ...


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Positive]


class Pair(NamedTuple):
    plain: Plain


class Row(TypedDict):
    plain: Plain


class Choice(BaseModel):
    kind: Literal["plain"] = "plain"
    size: Annotated[str, Len(1, 2)] = "a"


def changed(model: Any, **members: Any) -> Any:
    for name, value in members.items():
        setattr(model, name, value)
    return model


def returning(annotation: Any) -> Output:
    def tool(): ...

    tool.__annotations__["return"] = annotation
    return Output.from_function(tool)


BAD = changed(Model(n=1), n=-5)

BROKEN = [
    (Plain, Plain(-5), "n"),
    (Plain | None, Plain(-5), "n"),
    (list[Plain], [Plain(1), Plain(-5)], "[1].n"),
    (dict[str, Plain], {"a": Plain(-5)}, "a.n"),
    (tuple[Plain, int], (Plain(-5), 1), "[0].n"),
    (set[Frozen], {Frozen(-5)}, "[0].n"),
    (deque[Plain], deque([Plain(-5)]), "[0].n"),
    (Checked, changed(Checked(1), n=-5), "n"),
    (list[int], [1, None], "[1]"),
    (dict[str, Annotated[list[int], Len(0, 1)]], {"a": [1, 2]}, "a"),
    (list[Annotated[float, Ge(1)]], [0.5], "[0]"),
    (Choice, changed(Choice(), size="abc"), "size"),
    (dict[str, bool], {"a": None}, "a"),
    (Choice, changed(Choice(), size=None), "size"),
    (Model, BAD, "num"),
    (Model, Model.model_construct(n=-5, other=2), "num"),
    (Model, Model.model_construct(), "num"),
    (Holder, Holder(plain=Plain(-5)), "plain.n"),
    (Holder, Holder(models=[BAD]), "models[0].num"),
    (Holder, Holder.model_construct(named={"a": BAD}), "named.a.num"),
    (Holder, {"plain": Plain(-5)}, "plain.n"),
    (StrictHolder, StrictHolder(models=[BAD]), "models[0].num"),
    (StrictHolder, StrictHolder(frozen={Frozen(-5)}), "frozen[0].n"),
    (Root, Root.model_construct([BAD]), "[0].num"),
    (Open, changed(Open(a=1), a=-5), "a"),
    (list[Pair], [Pair(Plain(-5))], "[0][0].n"),
    (Row, {"plain": Plain(-5)}, "plain.n"),
]


@pytest.mark.parametrize(("annotation", "value", "where"), BROKEN)
def test_an_instance_that_violates_the_output_schema_is_refused_by_place(annotation, value, where):
    with pytest.raises(UsageError) as caught:
        returning(annotation).dump(value)
    lines = str(caught.value).splitlines()[1:]
    assert f"result.{where}".replace(".[", "[") in [line.partition(": ")[0] for line in lines]
    assert "-5" not in str(caught.value)


class Split(BaseModel):
    tags: Annotated[list[str], BeforeValidator(lambda text: text.split(","))]


class Named(BaseModel):
    name: str

    @model_validator(mode="before")
    @classmethod
    def from_text(cls, data: Any) -> Any:
        return {"name": data["raw"]}


def _text_alone(value: Any) -> Any:
    if not isinstance(value, str):
        raise PydanticCustomError("no_text", "text is expected")
    return [value]


class Texts(BaseModel):
    texts: Annotated[list[str], BeforeValidator(_text_alone)]


class Refusing(BaseModel):
    n: Annotated[int, AfterValidator(lambda n: n), Field(ge=1)]


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


@dataclass
class Counted:
    n: Positive
    kind: ClassVar[str] = "counted"
    total: int = field(init=False, default=0)


class Node(BaseModel):
    n: Positive
    next: "Node | None" = None


class Holding(BaseModel):
    own: InstanceOf[Model]
    any: Any = None


SHARED = Model(n=1)
CIRCULAR = Holder(excluded=Plain(1))
CIRCULAR.excluded.n = CIRCULAR  # excluded, so it is never serialized


def number(plain: Plain) -> int:
    return plain.n


FITTING = [
    (Split, Split(tags="a,b"), {"tags": ["a", "b"]}),
    (Named, Named.model_validate({"raw": "a"}), {"name": "a"}),
    (Texts, Texts(texts="a"), {"texts": ["a"]}),
    (Refusing, Refusing(n=1), {"n": 1}),
    (Written, Written(n=1, secret="s"), {"n": "1 pieces", "twice": 2}),
    (Closed, Wider(n=1), {"n": 1}),
    (Made, Made(1, given=2), {"n": 1, "total": 3}),
    (Counted, Counted(1), {"n": 1, "total": 0}),
    (Node, Node(n=1, next=Node(n=2)), {"n": 1, "next": {"n": 2, "next": None}}),
    (list[Model], [SHARED, SHARED], [{"num": 1, "n": 1}] * 2),
    (Holding, Holding(own=SHARED, any=Plain(-5)), {"own": {"num": 1, "n": 1}, "any": {"n": -5}}),
    (Model | Plain, Plain(1), {"n": 1}),
    (StrictHolder, StrictHolder(models=[SHARED], plain=Plain(1), frozen={Frozen(1)}),
     {"models": [{"num": 1, "n": 1}], "plain": {"n": 1}, "frozen": [{"n": 1}]}),
    (Holder, CIRCULAR, {"plain": None, "models": [], "named": {}}),
    (Annotated[Plain, PlainSerializer(number)], Plain(1), 1),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "value", "written"), FITTING)
def test_a_valid_instance_is_serialized_for_any_input_type_of_its_validators(annotation, value, written):
    assert returning(annotation).dump(value)[1] == written


@given(st.integers(-2, 2), st.integers(-2, 2))
def test_a_result_conforms_to_the_output_schema_or_is_refused(n, other):
    output = returning(list[Plain | Model])
    value = [Plain(n), Model.model_construct(n=other, other=1)]
    try:
        _, data = output.dump(value)
    except UsageError:
        assert n < 1 or other < 1
    else:
        jsonschema.validate(data, output.json_schema())


def test_the_instance_of_the_author_is_not_mutated():
    holder = Holder(plain=Plain(1), models=[SHARED])
    returning(Holder).dump(holder)
    assert holder == Holder(plain=Plain(1), models=[SHARED])
    assert holder.models[0] is SHARED


PROGRAM = """
import sys
from mcp_roundtrip.content.tool_results import Output

def tool() -> dict[str, list[int]]: ...

assert Output.from_function(tool).dump({"a": [1]})[1] == {"a": [1]}
print("jsonschema_rs" in sys.modules)
"""


def test_a_result_of_plain_types_does_not_import_the_engine_of_json_schemas():
    done = run_program(PROGRAM)
    assert done.stdout.strip() == "False"


def test_none_is_no_number() -> None:
    with pytest.raises(UsageError):
        returning(int).dump(None)
