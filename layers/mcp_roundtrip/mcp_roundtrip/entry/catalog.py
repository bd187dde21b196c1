"""The catalog of a front door: the features of all owners, as a build step writes them to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.server.invocation import definition_digest
from mcp_roundtrip.server.model import TaskSupport

if TYPE_CHECKING:
    from mcp_roundtrip.engine.channels import Fallback


class CatalogEntry(Struct, frozen=True, dict=True):  # dict: the digest is computed at most once
    """A feature in the catalog: its owner, its definition, and the options that lists depend on.

    `asks`: whether it is a tool that may ask. `channels`: the fallbacks of its questions.
    `view_uri`: the URI of the author's own view of a tool's results.
    """

    owner: str
    members: Mapping[str, Any]
    task: TaskSupport | None = None
    channels: tuple[Fallback, ...] = ()
    asks: bool = False
    scopes: tuple[str, ...] = ()
    signature_digest: str | None = None
    view_uri: str | None = None

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> CatalogEntry:
        """Read a row of the catalog file."""
        return cls(
            row["owner"],
            row["definition"],
            row.get("task"),
            tuple(row.get("channels", ())),
            row.get("asks") is True,
            tuple(row.get("scopes", ())),
            row.get("signatureDigest"),
            row.get("view"),
        )

    @property
    def asks_in_app(self) -> bool:
        """Whether a view may show the questions of the tool."""
        return self.asks and "app" in self.channels

    @property
    def name(self) -> str:
        """The name, URI or URI template that identifies the feature."""
        identity: str = self.members.get("uriTemplate") or self.members.get("uri") or self.members["name"]
        return identity

    @cached_property
    def definition_digest(self) -> str:
        """The digest of the definition, which the owner compares with its own."""
        return definition_digest(self.members)

    def definition(self) -> Mapping[str, Any]:
        """Return the object that lists contain."""
        return self.members


class Catalog(Struct, frozen=True):
    """The features of all owners, by name, URI or template.

    `scopes`: which narrower scopes a scope implies.
    `hides_unauthorized`: whether owners hide features that the caller may not use.
    """

    tools: Mapping[str, CatalogEntry]
    prompts: Mapping[str, CatalogEntry]
    resources: Mapping[str, CatalogEntry]
    templates: Mapping[str, CatalogEntry]
    scopes: Mapping[str, Sequence[str]]
    hides_unauthorized: bool = False

    @classmethod
    def read(cls, text: str) -> Catalog:
        """Read a catalog file; the lists keep their order. Raises ValueError for any other text."""
        content = parse_json(text)
        try:
            tools, prompts, resources, templates = (
                {row["definition"][key]: CatalogEntry.read(row) for row in content.get(member, ())}
                for member, key in CATALOG_KEYS.items()
            )
            scopes = {name: tuple(narrower) for name, narrower in content.get("scopes", {}).items()}
            hides = content.get("hideUnauthorized") is True
        except (KeyError, TypeError, AttributeError):
            raise ValueError("this is no catalog; write one with `make catalog`") from None
        return cls(tools, prompts, resources, templates, scopes, hides)

    @property
    def required_scopes(self) -> set[str]:
        """The scopes that any feature requires."""
        kinds = (self.tools, self.prompts, self.resources, self.templates)
        return {scope for kind in kinds for each in kind.values() for scope in each.scopes}


CATALOG_KEYS: Final = {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}
"""The lists of a catalog file, and the member that identifies a definition in each."""
