"""An author's serializer runs once for a result, and what JSON cannot hold is found in its text."""

import math
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, PlainSerializer, field_serializer

from mcp_roundtrip import Context, PromptMessage, ResourceContents, Text, UsageError
from mcp_roundtrip_testing import Player
from support.servers import output_of, server_of

serialized: list[str] = []


@pytest.fixture(autouse=True)
def no_serialized_values() -> None:
    serialized.clear()


def write(number: str) -> str:
    serialized.append(number)
    return number


class Order(BaseModel):
    number: str
    note: str | None = None

    @field_serializer("number")
    def write(self, number: str) -> str:
        return write(number)


Number = Annotated[str, PlainSerializer(write)]
ORDER = Order(number="A")


def typed() -> Order:
    return ORDER


def numbers() -> list[Number]:
    return ["A"]


def mapped() -> dict[int | str, Order]:
    return {1: ORDER}


def untyped():  # type: ignore[no-untyped-def]  # the case
    return {"orders": [ORDER]}


def anything() -> Any:
    return ORDER


@pytest.mark.parametrize("tool", [typed, numbers, mapped, untyped, anything])
def test_a_serializer_runs_once_for_the_result_of_a_tool(tool):
    result = Player(server_of(tool)).call(tool.__name__)
    assert "A" in result.text
    assert "A" in str(result.structured)
    assert serialized == ["A"]


def test_a_serializer_runs_once_for_a_prompt():
    def message() -> list[PromptMessage]:
        return [PromptMessage(Text("Hello", meta={"a/order": ORDER}))]

    [said] = Player(server_of(prompts=[message])).prompt("message").messages
    assert said["content"]["_meta"]["a/order"]["number"] == "A"
    assert serialized == ["A"]


@pytest.mark.parametrize("value", [ORDER, [ORDER], ResourceContents(text="A", meta={"a/order": ORDER})])
def test_a_serializer_runs_once_for_a_resource(value):
    server = server_of()
    server.resource("test://order", name="order")(lambda: value)
    [contents] = Player(server).read("test://order").contents
    assert "A" in contents["text"]
    assert serialized == ["A"]


@pytest.mark.parametrize("step", [typed, numbers, anything])
def test_a_serializer_runs_once_for_a_step(step):
    def tool(ctx: Context) -> str:
        return str(ctx.step("step", step))

    assert "A" in Player(server_of(tool)).call("tool").text
    assert serialized == ["A"]


class Reading(BaseModel):
    celsius: float | None = None
    hidden: float = Field(math.nan, exclude=True)


class Clean(BaseModel):
    celsius: float

    @field_serializer("celsius")
    def write(self, celsius: float) -> float | None:
        return celsius if math.isfinite(celsius) else None


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Reading, Reading(celsius=math.nan)),
        (list[Any], [Reading(celsius=math.nan)]),
        (float | None, math.nan),
        (dict[str, int], {"\ud800": 1}),
        pytest.param(list[int], [10**5000], id="5001 digits"),
    ],
)
def test_a_value_that_pydantic_would_replace_is_an_error(annotation, value):
    with pytest.raises(UsageError, match=r"NaN|surrogate|digits"):
        output_of(annotation).dump(value)


@pytest.mark.parametrize(
    ("annotation", "value"), [(Reading, Reading()), (Any, [Reading()]), (Any, Clean(celsius=math.nan))]
)
def test_a_value_that_is_not_serialized_may_be_beyond_json(annotation, value):
    assert "None" in str(output_of(annotation).dump(value)["structuredContent"])


class Readings(BaseModel):
    items: list[float | None]

    def __iter__(self) -> Iterator[float | None]:  # type: ignore[override]  # as authors write it
        return iter(self.items)


def test_a_model_may_iterate_over_something_else_than_its_members():
    assert output_of(Readings).dump(Readings(items=[None]))["structuredContent"] == {"items": [None]}
    with pytest.raises(UsageError, match=r"items\[1\]: NaN"):
        output_of(Readings).dump(Readings(items=[None, math.nan]))
