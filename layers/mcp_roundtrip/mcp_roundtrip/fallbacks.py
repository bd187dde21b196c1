"""The fallbacks of a server and of its tools: where a question goes that the client cannot show."""

from __future__ import annotations

from typing import Final, Literal, get_args

Fallback = Literal["app", "page", "model", "default"]
"""A channel for questions that the client cannot show.

These are a form in an MCP App, a link to a form on the endpoint, the model, and the question's default.
"""

FALLBACKS: Final[tuple[Fallback, ...]] = get_args(Fallback)

DEFAULT_CHANNELS: Final[tuple[Fallback, ...]] = ("app", "page", "default")
"""The fallbacks of a server that chooses none."""
