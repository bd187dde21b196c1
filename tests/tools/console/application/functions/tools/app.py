"""Tools that ask in every way, return every kind of result, and fail in every way."""

import base64
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Elicit, Image, ListRoots, ResourceLink, Sample, Server, ToolError

server = Server("console-tests")

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e&amp;"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Vcpus = Annotated[int, Field(ge=1, le=16, description="Virtual CPUs")]


class Size(BaseModel):
    vcpus: Vcpus
    disk_gb: float = Field(default=20.5, ge=1, description="Disk in GB")
    zone: Literal["a", "b", "c", "d", "e", "f"]
    encrypted: bool = True
    owner: str = Field(min_length=3, json_schema_extra={"format": "email"})
    labels: list[Literal["dev", "test", "prod"]] = []


class Address(BaseModel):
    street: str
    number: int


@server.tool
def new_database(ctx: Context, name: str) -> dict[str, str | int | bool]:
    """Create a database and return its address."""
    size = ctx.elicit("size", f"How large should {name} be?", Size)
    address = ctx.step("create", create, name, size.vcpus)
    keep = ctx.elicit("keep", f"{address} is ready. Keep it?", bool)
    return {"address": address, "vcpus": size.vcpus, "zone": size.zone, "owner": size.owner, "kept": keep}


def create(name: str, vcpus: int) -> str:
    print(f"creating {name} with {vcpus} CPUs")
    return f"{name}.db.internal"


@server.tool
def every_type(
    text: str,
    whole: int,
    decimal: float,
    flag: bool,
    choice: Literal["one", "two"],
    names: list[str],
    numbers: list[int],
    address: Address,
    note: str | None = None,
    pattern: Annotated[str, Field(pattern="^[a-z]+$", max_length=8)] = "abc",
) -> dict[str, object]:
    """Return the arguments.

    Args:
        text: Any text.
        address: Where to.
    """
    given = {"text": text, "whole": whole, "decimal": decimal, "flag": flag, "choice": choice}
    lists = {"names": names, "numbers": numbers, "address": address.model_dump()}
    return given | lists | {"note": note, "pattern": pattern}


@server.tool
def in_one_round(ctx: Context) -> dict[str, object]:
    """Ask two questions, the model and for the roots in the same round."""
    colour, number, sampled, roots = ctx.ask(
        Elicit("colour", "Which colour?", str, default="none"),
        Elicit("number", "Which number?", int),
        Sample("poem", "Write a poem.", 50, {"systemPrompt": "You are a poet."}),
        ListRoots(),
    )
    return {"colour": colour, "number": number, "poem": sampled.text, "roots": [root.uri for root in roots]}


@server.tool
def open_page(ctx: Context) -> str:
    """Ask the user to open a page."""
    ctx.elicit_url("page", "Please sign in.", "https://example.com/sign-in?x=1", done=lambda: True)
    return "signed in"


@server.tool
def hostile(ctx: Context, text: str = HOSTILE) -> dict[str, str]:
    """Ask with markup <b>and</b> return it."""
    ctx.log("warning", HOSTILE)
    ctx.progress(1, 2, HOSTILE)
    print(HOSTILE)
    ctx.elicit("sure", HOSTILE, bool)
    return {HOSTILE: text}


@server.tool
def tool_error() -> str:
    """End in an error for the model."""
    raise ToolError("There is no such order: 42.")


@server.tool
def crash() -> str:
    """Raise an exception that is no ToolError."""
    raise RuntimeError("boom")


@server.tool
def image() -> tuple[Image, ResourceLink]:
    """Return an image and a link to a resource."""
    return Image(base64.b64decode(PIXEL), "image/png"), ResourceLink("notes://index", "index")


@server.prompt(title="Greet somebody")
def greet(name: str, language: str = "English") -> str:
    """Greet in a language.

    Args:
        name: Whom.
    """
    return f"Greet {name} in {language}."


@server.completion("greet", "language")
def languages(value: str) -> list[str]:
    return [each for each in ("English", "Esperanto", "French") if each.startswith(value)]


@server.resource("notes://{folder}/{name}", title="Notes", mime_type="text/plain")
def note(folder: str, name: str) -> str:
    """A note in a folder."""
    return f"{folder} {name}: {HOSTILE}"


@server.resource("notes://index", mime_type="application/json")
def index() -> dict[str, int]:
    """How many notes there are."""
    return {"notes": 3}


handler = server.lambda_handler
