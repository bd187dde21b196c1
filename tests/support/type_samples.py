"""Types of every kind that pydantic describes, each of which accepts what its JSON Schema says."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID

from pydantic import (
    AliasChoices,
    AnyUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    RootModel,
    SecretStr,
    StringConstraints,
    WithJsonSchema,
    WrapValidator,
    field_validator,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from mcp_roundtrip import McpHeader


class Color(Enum):
    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # an alias


class Level(Enum):
    LOW = 1
    HIGH = 2


class Odd(Enum):
    YES = True
    THREE = 3
    NOTHING = None


class Rights(Flag):
    READ = 1
    WRITE = 2


class Guess(Enum):
    A = "a"
    B = "b"

    @classmethod
    def _missing_(cls, value: object) -> "Guess":
        return cls.A


class Pair(NamedTuple):
    x: int
    y: str = "s"


@dataclass
class Point:
    x: int
    y: float = 0.0
    names: list[str] = field(default_factory=list)


class Options(TypedDict, total=False):
    verbose: bool
    count: int


class Size(BaseModel):
    vcpus: int = Field(ge=1, le=16)
    label: str | None = Field(None, min_length=1, max_length=3)
    kind: Literal["a", "b"] = "a"


@dataclass
class Machine:
    vcpus: Annotated[int, Field(ge=1, le=16)]
    on: bool
    share: float = 0.5
    kind: Literal["a", "b"] = "a"
    tags: list[Literal["x", "y"]] = field(default_factory=list)


class Node(BaseModel):
    value: int
    children: "list[Node]" = []


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    a: int = Field(alias="b")


class Choices(BaseModel):
    x: int = Field(validation_alias=AliasChoices("a", "b"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int] = Field(init=False)
    a: int = 1


class Shut(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    day: date
    a: float = 1


class Loose(BaseModel):
    model_config = ConfigDict(strict=False, coerce_numbers_to_str=True)
    a: int = 1
    text: str = ""
    flag: bool = Field(False, strict=False)


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: str = Field("a", max_length=2)
    other: str = ""


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    x: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    y: int


class Leaf(BaseModel):
    kind: Literal["leaf"]
    value: int


class Tree(BaseModel):
    kind: Literal["tree"]
    parts: "list[Annotated[Leaf | Tree, Field(discriminator='kind')]]"


class Cleaned(BaseModel):
    day: date
    flag: bool = False
    color: Color = Color.RED

    @model_validator(mode="before")
    @classmethod
    def clean(cls, value: Any) -> Any:
        return value

    @field_validator("day", "color", mode="wrap")
    @classmethod
    def wrapped(cls, value: Any, handler: Any) -> Any:
        return handler(value)


class Extra(BaseModel):
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})
    a: int = Field(1, json_schema_extra={"unit": "ms"})


class Kelvin(RootModel[Annotated[float, Field(ge=0)]]):
    pass


def yes(value: Any) -> Any:
    return value in ("yes", True)


def split(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


Json = TypeAliasType("Json", "int | str | list[Json] | dict[str, Json]")
Id = NewType("Id", int)

ZOO: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "None": None,
    "Any": Any,
    "NewType": Id,
    "lax int": Annotated[int, Field(strict=False)],
    "limits": Annotated[int, Field(ge=1, lt=5)],
    "multiple": Annotated[int, Field(multiple_of=3)],
    "fraction": Annotated[float, Field(multiple_of=0.25)],
    "Decimal": Decimal,
    "pattern": Annotated[str, Field(pattern="^a+$")],
    "length": Annotated[str, Field(min_length=1, max_length=2)],
    "stripped": Annotated[str, StringConstraints(strip_whitespace=True, max_length=2)],
    "bytes": bytes,
    "SecretStr": SecretStr,
    "date": date,
    "time": time,
    "datetime": datetime,
    "timedelta": timedelta,
    "UUID": UUID,
    "url": AnyUrl,
    "ip": IPv4Address | IPv6Address,
    "enum": Color,
    "int enum": Level,
    "odd enum": Odd,
    "Flag": Rights,
    "_missing_": Guess,
    "Literal": Literal["a", "b"],
    "bool Literal": Literal[True],
    "mixed Literal": Literal[1, True, "1", None],
    "const": Literal["a"],
    "list": list[int],
    "set": set[int],
    "set of enums": set[Color],
    "set of pairs": set[tuple[int, str]],
    "tuple": tuple[int, str],
    "NamedTuple": Pair,
    "Iterable": Iterable[int],
    "dict": dict[str, int],
    "Counter": Counter[str],
    "Counter of numbers": Counter[int],
    "OrderedDict": OrderedDict[int, str],
    "int keys": dict[int, str],
    "float keys": dict[float, str],
    "bool keys": dict[bool, int],
    "pattern keys": dict[Annotated[str, Field(pattern="^x")], int],
    "date keys": dict[date, int],
    "members": Annotated[dict[str, int], Field(min_length=1, max_length=2)],
    "model": Size,
    "models": list[Size],
    "dataclass": Point,
    "TypedDict": Options,
    "recursive": Node,
    "RootModel": Kelvin,
    "alias": Aliased,
    "two aliases": Choices,
    "extra allowed": Open,
    "extra forbidden": Shut,
    "not strict": Loose,
    "config strips": Stripped,
    "json_schema_extra": Extra,
    "JsonValue": JsonValue,
    "alias of types": Json,
    "Optional": int | None,
    "int | str": int | str,
    "int | float": int | float,
    "models in a union": Size | Point,
    "lists in a union": list[int] | dict[str, int] | bool,
    "discriminated": Annotated[Cat | Dog, Field(discriminator="kind")],
    "discriminated tree": Tree,
    "before": Annotated[bool, BeforeValidator(yes)],
    "before, advertised": Annotated[
        list[str], BeforeValidator(split, json_schema_input_type=str | list[str])
    ],
    "wrap": Annotated[int, WrapValidator(lambda value, handler: handler(value))],
    "plain": Annotated[int, PlainValidator(lambda value: value)],
    "validators in a model": Cleaned,
    "WithJsonSchema": Annotated[
        Any, WithJsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    ],
    "header": Annotated[int, McpHeader("Count")],
    "enum header": Annotated[Color, McpHeader("Color")],
}  # fmt: skip
"""All differ in how pydantic describes or reads them."""

FORMS: dict[str, Any] = {
    name: ZOO[name]
    for name in (
        *("int", "float", "str", "bool", "Decimal", "date", "datetime", "url", "enum", "Literal"),
        *("limits", "length", "_missing_", "set of enums", "before", "const"),
    )
}  # fmt: skip
FORMS["list of choices"] = Annotated[list[Color], Field(min_length=1, max_length=2)]
FORMS["titled"] = Annotated[Literal["a"], Field(title="A")] | Annotated[Literal["b"], Field(title="B")]
FORMS["model"] = Options
FORMS["dataclass"] = Machine
FORMS["not strict"] = Loose
FORMS["alias"] = Aliased
