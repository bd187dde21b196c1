"""Summarize a document with the client's model, and name the client's root that contains the document.

An RFC is fetched in a step, so that later rounds need no second request. Both requests to the client go out
in one round. A client without sampling gets an extractive summary, and a client without roots gets no
project. Clients from before 2026-07-28 get both defaults.
"""

from pydantic import BaseModel, Field

import rfc_editor
from extract import sumbasic
from mcp_roundtrip import Context, ListRoots, Retry, Root, Sample, Sampled, Server, ToolError

server = Server("summarize")

MAX_TOKENS = 300
SENTENCES = 3
RETRY = Retry(attempts=3, delay_ms=300, on=(rfc_editor.Unavailable,))


class Summary(BaseModel):
    summary: str
    model: str = Field(description='The model that wrote the summary, or "sumbasic" for an extract')
    project: str | None = Field(description="The client's root that holds the document")


@server.tool(annotations={"readOnlyHint": True}, channels=("default",))
def summarize(ctx: Context, text: str = "", uri: str = "") -> Summary:
    """Summarize a document in a few sentences.

    Args:
        text: The document's text. Leave it out for an RFC.
        uri: Where the document lies, such as file:///home/ada/engine/notes.md or
            https://www.rfc-editor.org/rfc/rfc9110.txt.
    """
    if uri and not text:
        text = ctx.step("fetch", rfc_editor.fetch, uri, retry=RETRY)
    if not text.strip():
        raise ToolError("The text is empty: there is nothing to summarize.")
    extract = Sampled("assistant", {"type": "text", "text": sumbasic(text, SENTENCES)}, "sumbasic")
    sampled, roots = ctx.ask(
        Sample(
            "summary",
            f"Summarize this document in at most {SENTENCES} sentences:\n\n{text}",
            MAX_TOKENS,
            {"systemPrompt": "You summarize documents. Reply with the summary alone."},
            default=extract,
        ),
        ListRoots(default=()),
    )
    return Summary(summary=sampled.text.strip(), model=sampled.model, project=project(uri, roots))


def project(uri: str, roots: tuple[Root, ...]) -> str | None:
    """Return the name of the innermost root that contains `uri`."""
    holding = [root for root in roots if f"{uri}/".startswith(f"{root.uri.rstrip('/')}/")]
    innermost = max(holding, key=lambda root: len(root.uri), default=None)
    if innermost is None:
        return None
    return innermost.name or innermost.uri.rstrip("/").rpartition("/")[2]


handler = server.lambda_handler
