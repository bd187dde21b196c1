"""The part of the conformance server that asks nothing: tools, prompts, resources and completion."""

from pathlib import Path
from typing import Annotated, Any

from samples import CONTACT_SCHEMA, PNG, WAV

from mcp_roundtrip import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    McpHeader,
    PromptMessage,
    Server,
    Text,
    ToolError,
)

server = Server("conformance")
server.skills(Path(__file__).with_name("skills"))


# The suite calls the first tool of the list without arguments.
@server.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Return an image."""
    return Image(PNG, "image/png")


@server.tool
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(WAV, "audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource with its contents."""
    return EmbeddedResource(
        "test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain"
    )


@server.tool
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return a text, an image and a resource."""
    data = EmbeddedResource(
        "test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"
    )
    return [Text("Multiple content types test:"), Image(PNG, "image/png"), data]


@server.tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
def test_tool_with_progress(ctx: Context) -> str:
    """Tell how far it is, to a client that asked for it."""
    for done in (0, 50, 100):
        ctx.progress(done, 100, f"Completed step {done} of 100")
    return "Completed."


@server.tool
def test_logging_tool(ctx: Context) -> str:
    """Log, which only a client that asked for it gets to see."""
    ctx.log("info", "This is a log message.")
    return "Logged."


@server.tool(requires=("sampling",))
def test_missing_capability() -> str:
    """Need a client that lends its model."""
    return "The client declared sampling."


@server.tool(input_schema=CONTACT_SCHEMA)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take what a JSON Schema of its author's describes."""
    return f"Contact {arguments.get('name', 'nobody')}."


@server.tool
def test_x_mcp_header(region: Annotated[str, McpHeader("Region")]) -> str:
    """Take an argument that a header mirrors."""
    return f"In {region}."


@server.prompt()
def test_simple_prompt() -> str:
    """A text."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A text with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion("test_prompt_with_arguments", "arg1")
def complete_arg1(typed: str) -> list[str]:
    """Values for the first argument."""
    return [value for value in ("test", "testing", "trial") if value.startswith(typed)]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage]:
    """A resource to process."""
    resource = EmbeddedResource(
        resourceUri, text="Embedded resource content for testing.", mime_type="text/plain"
    )
    return [PromptMessage(resource), PromptMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[PromptMessage]:
    """An image to analyze."""
    return [PromptMessage(Image(PNG, "image/png")), PromptMessage("Please analyze the image above.")]


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that stays as it is."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image that stays as it is."""
    return PNG


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:  # noqa: A002 - as the template's variable is called
    """Data by id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
