"""Registration of tools, prompts and resources, and the errors for invalid ones."""

from functools import partial
from typing import Annotated, Any, Optional

import pytest

from mcp_roundtrip import AsyncContext, Context, DefinitionError, Server
from mcp_roundtrip_testing import Player


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Adder:
    """Adds to a number."""

    def __init__(self, held: int) -> None:
        self.held = held

    def __call__(self, b: int) -> int:
        """Add a number."""
        return self.held + b

    def method(self, b: int) -> int:
        """Add another number."""
        return self.held + b

    @staticmethod
    def static(b: int) -> int:
        """Add to one."""
        return 1 + b

    @classmethod
    def of_class(cls, b: int) -> int:
        """Add to the number of a new instance."""
        return cls(1)(b)

    @staticmethod
    async def static_async(ctx: AsyncContext, b: int) -> int:
        """Add to one, later."""
        await ctx.log("info", "adding")
        return 1 + b


@pytest.mark.parametrize(
    ("function", "name", "description"),
    [
        (partial(add, 1), "add", "Add two numbers."),
        (partial(add, a=1), "add", "Add two numbers."),
        (partial(partial(add), a=1), "add", "Add two numbers."),
        (Adder(1), "Adder", "Add a number."),
        (Adder(1).method, "method", "Add another number."),
        (vars(Adder)["static"], "static", "Add to one."),
        (partial(vars(Adder)["static_async"]), "static_async", "Add to one, later."),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_tool_may_be_any_callable(function, name, description):
    server = Server("x")
    assert server.tool(function) is function
    (listed,) = Player(server).request("tools/list")["result"]["tools"]
    assert (listed["name"], listed["description"]) == (name, description)
    assert list(listed["inputSchema"]["properties"]) == ["b"], "a bound value is no argument"
    assert Player(server).call(name, {"b": 2}).structured == 3
    assert Player(server).call(name, {"a": 5, "b": 2}).failed


NO_FUNCTIONS = [len, max, print, "".join, Adder, vars(Adder)["of_class"], Adder.method, 42, ["a"], object()]


@pytest.mark.parametrize("function", NO_FUNCTIONS, ids=lambda value: type(value).__name__)
def test_an_unsupported_callable_is_refused_with_the_remedy(function):
    server = Server("x")
    for register in (server.tool, server.tool(name="a"), server.prompt, server.resource("docs://{a}")):
        with pytest.raises(DefinitionError, match=r"; (write|register) "):
            register(function)


ALIAS = Annotated[Context | None, "documented"]


@pytest.mark.parametrize(
    "annotation",
    [
        Context | None,
        Optional[Context],  # noqa: UP045 - the spelling that is tested
        Annotated[Context | None, "documented"],
        Annotated[Context, "documented"] | None,
        "Context | None",
        "ALIAS",
        list[Context],
        dict[str, tuple[Context, ...]],
        type[Context],
        Context | AsyncContext,
    ],
    ids=str,
)
def test_a_context_inside_another_type_is_refused_at_registration(annotation):
    def tool(ctx: Any = None) -> None: ...

    tool.__annotations__["ctx"] = annotation
    server = Server("x")
    for register in (server.tool, server.prompt, server.resource("docs://{ctx}")):
        with pytest.raises(DefinitionError, match="write `ctx: Context`"):
            register(tool)
