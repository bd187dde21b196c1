"""Run template.yaml in tests, as `make run` does, and write its stand-ins. It needs the extra ``local``."""

from mcp_roundtrip_tools.catalog.skill_folders import manifest_text
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response
from mcp_roundtrip_tools.run.issuer.issuer import make_users
from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.template.model import FunctionFailed, TemplateError

__all__ = [
    "FunctionFailed",
    "LocalApp",
    "Request",
    "Response",
    "TemplateError",
    "json_response",
    "make_users",
    "manifest_text",
    "serve",
    "serve_stand_ins",
]
