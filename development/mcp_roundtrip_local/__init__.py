"""Run a SAM template on this computer: real Lambda runtime processes, without Docker and without AWS.

``python -m mcp_roundtrip_local`` is the command, `serve` the same as a library.
"""

from mcp_roundtrip_local.app import LocalApp, serve
from mcp_roundtrip_local.template.model import FunctionFailed, TemplateError

__all__ = ["FunctionFailed", "LocalApp", "TemplateError", "serve"]
