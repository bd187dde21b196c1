"""What an endpoint serves: the features of a server, or those in a front door's catalog, and their views.

A view is an HTML document in which hosts show results (MCP Apps, SEP-1865), with a `ui://` URI. Clients that
show views read it with `resources/read`; lists of resources omit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.constants import RESOURCES_READ, UI_MIME_TYPE
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.request_validation import unknown_method
from mcp_roundtrip.server.admission import authorize, read_uri, unknown_resource
from mcp_roundtrip.server.options import QUESTIONS_URI
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext

if TYPE_CHECKING:
    from mcp_roundtrip.server.lists import Listable, ListedTool
    from mcp_roundtrip.server.skills import SkillMethods


class Features(Struct, frozen=True, dict=True):  # dict: the skills are read once
    """The features of an endpoint. `tools`, `prompts`, `resources`, `templates`: the items of the lists.

    `calls`: the handlers of the methods that name a feature, which `entry.server` or `entry.front_door` has.
    `skill_folders`: the folders of skills of a server, with the required scopes.
    `catalog_skills`: the skills in a catalog, by URI.
    `forward`: on a front door, forwards a request to the owner of a catalog entry. The entry may be stale, so
    the owner decides about the request.
    """

    tools: Mapping[str, ListedTool]
    prompts: Mapping[str, Listable]
    resources: Mapping[str, Listable]
    templates: Mapping[str, Listable]
    calls: Mapping[str, Handler]
    skill_folders: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    catalog_skills: Mapping[str, Listable] = field(default_factory=dict)
    forward: Callable[[Any, RequestContext], HttpResponse] | None = None

    @cached_property
    def skills(self) -> SkillMethods:
        from mcp_roundtrip.server.skills import SkillMethods, read_manifests  # few have any

        if self.forward is not None:
            return SkillMethods(self.catalog_skills, self.forward)
        return SkillMethods(read_manifests(self.skill_folders))

    @property
    def has_skills(self) -> bool:
        return bool(self.skill_folders or self.catalog_skills)

    @property
    def has_resources(self) -> bool:
        return bool(self.resources or self.templates or self.has_skills)

    @property
    def has_tasks(self) -> bool:
        return any(each.task for each in self.tools.values())

    def serves_tasks(self, context: RequestContext) -> bool:
        """Whether a client can have a task, perhaps of a tool that was one before the last deployment."""
        return self.has_tasks or context.ports.settings.task_table is not None

    @property
    def has_views(self) -> bool:
        """Whether any tool has results, or may ask questions, that a view shows."""
        return any(each.view_uri or (each.asks and "app" in each.channels) for each in self.tools.values())

    @property
    def page_tools(self) -> list[str]:
        """The names of the tools that may ask on the question page."""
        return [name for name, each in self.tools.items() if each.asks and "page" in each.channels]

    @cached_property
    def call_handlers(self) -> Mapping[str, Handler]:
        """The handlers in `calls`, with the views and the files of skills among the resources."""
        if not self.has_skills and not self.has_views:
            return self.calls
        return {**self.calls, RESOURCES_READ: self._read_resource}

    def _read_resource(self, context: RequestContext) -> Reply | HttpResponse:
        found = self._read_view(context)
        if found is None and self.has_skills:
            found = self.skills.read(context)
        if found is not None:
            return found
        if RESOURCES_READ in self.calls:
            return self.calls[RESOURCES_READ](context)
        if not self.has_skills:
            raise unknown_method(RESOURCES_READ)
        raise unknown_resource(read_uri(context.params), context)

    def _read_view(self, context: RequestContext) -> Reply | HttpResponse | None:
        """Return the result with a view, or None for another URI. Raises InsufficientScope."""
        uri = context.params.get("uri")
        if not (isinstance(uri, str) and uri.startswith("ui://") and self.has_views):
            return None
        if uri == QUESTIONS_URI:
            return _view_result(context, uri, read_question_app())
        for tool in self.tools.values():
            if tool.view_uri == uri:
                authorize(tool, context, lambda: unknown_resource(uri, context))
                if self.forward is not None:
                    return self.forward(tool, context)
                own: Any = tool
                return _view_result(context, uri, own.view, is_private=bool(tool.scopes))
        return None


def read_question_app() -> str:
    """Return the document of the question app: `view.html` with `form.js` inlined, as it may load no file."""
    folder = Path(__file__).parents[1] / "question_ui"
    document, form = ((folder / name).read_text(encoding="utf-8") for name in ("view.html", "form.js"))
    return document.replace("//= form.js\n", form.replace("\nexport ", "\n"))


def _view_result(context: RequestContext, uri: str, document: str, *, is_private: bool = False) -> Reply:
    """Build the ReadResourceResult. A view declares no `csp`: it may load nothing from other origins."""
    contents = {
        "uri": uri,
        "mimeType": UI_MIME_TYPE,
        "text": document,
        # A view without a question has no height, and should have no border either.
        "_meta": {"ui": {"prefersBorder": False}},
    }
    ttl_ms = context.options.list_ttl_ms
    return Reply(results.cacheable(context.server_info, ttl_ms, is_private=is_private, contents=[contents]))
