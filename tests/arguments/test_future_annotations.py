"""A module whose annotations are all strings."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from mcp_roundtrip import Context, UsageError
from mcp_roundtrip.arguments.typed_arguments import Arguments
from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.engine.step_values import UNRESOLVED, return_annotation, round_trip

if TYPE_CHECKING:
    from collections import OrderedDict


class Size(BaseModel):
    vcpus: int


def tool(ctx: Context, size: Size, name: str | None = None) -> Size:
    return size


def checked(x: OrderedDict[str, int]) -> OrderedDict[str, int]:
    return x


def test_context_arguments_and_result_are_resolved():
    arguments = Arguments.from_function(tool)
    assert arguments.signature.context_parameter == "ctx"
    assert arguments.validate({"size": {"vcpus": 1}}) == {"size": Size(vcpus=1), "name": None}
    schema = Output.from_function(tool).json_schema()
    assert schema is not None
    assert schema["properties"] == {"vcpus": {"type": "integer"}}
    assert return_annotation(tool) is Size


def test_a_step_may_call_a_function_with_such_a_name_if_it_returns_json_data():
    assert return_annotation(checked) is UNRESOLVED
    assert round_trip({"x": (1, None)}, UNRESOLVED)[0] == {"x": [1, None]}
    with pytest.raises(UsageError, match=r"result\.x\[0\]"):
        round_trip({"x": (Decimal(1), None)}, UNRESOLVED)
