"""Skills: folders of instructions for an agent, which clients list, get and read (SEP-2640).

`make catalog` reads the folders and writes the entries of their skills: for an owner into a manifest beside
each folder, for a front door into the catalog. A file is served only if a manifest lists it, and only with
the content that the manifest describes, so that no request chooses a path.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypedDict
from urllib.parse import unquote

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.constants import RESOURCES_DIRECTORY_READ, RESOURCES_READ, SKILLS_GET, SKILLS_LIST
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.resource_uris import spelling_key
from mcp_roundtrip.server.admission import authorize, read_uri, unknown_resource
from mcp_roundtrip.server.lists import FeatureList, Listable, ListItem, find_page
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext

DIRECTORY_MIME_TYPE: Final = "inode/directory"
"""The MIME type of a directory resource (SEP-2640)."""

# The table of the standard library depends on Python's version, and on the computer's /etc/mime.types.
_MIME_TYPES: Final = {
    "css": "text/css",
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "py": "text/x-python",
    "sh": "application/x-sh",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "txt": "text/plain",
    "webp": "image/webp",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
}


def file_resource(uri: str) -> dict[str, Any]:
    kind = _mime_type(uri)
    return {"uri": uri, "name": _name(uri), **({} if kind is None else {"mimeType": kind})}


def file_contents(uri: str, content: bytes) -> dict[str, Any]:
    """Return a file as an item of `contents`: as text if it is UTF-8, otherwise as a blob."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        mime_type = _mime_type(uri) or "application/octet-stream"
        return {"uri": uri, "mimeType": mime_type, "blob": b64encode(content).decode("ascii")}
    return {"uri": uri, "mimeType": _mime_type(uri) or "text/plain", "text": text}


def _mime_type(uri: str) -> str | None:
    return _MIME_TYPES.get(_name(uri).rpartition(".")[2].lower())


def _name(uri: str) -> str:
    return unquote(uri.rpartition("/")[2])


SCHEME: Final = "skill://"
SKILL_FILE: Final = "/SKILL.md"


class SkillEntry(TypedDict):
    """The Skill object of SEP-2640."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[dict[str, Any]]


class _Manifest(Struct):
    skills: list[SkillEntry]


_MANIFEST: Final = Decoder(_Manifest)


class OwnSkill(Struct, frozen=True, dict=True):  # dict: the files are indexed once
    folder: Path
    entry: SkillEntry
    scopes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.entry["uri"]

    def definition(self) -> Mapping[str, Any]:
        return self.entry

    @cached_property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """The SkillResource objects by the key of their URI."""
        return {spelling_key(each["uri"]): each for each in self.entry["resources"]}

    def read(self, file: Mapping[str, Any]) -> bytes:
        """Return the content of a file. Raises DefinitionError if it is not the one in the manifest."""
        uri: str = file["uri"]
        try:
            path = (self.folder / unquote(uri.removeprefix(SCHEME))).resolve(strict=True)
            is_own = path.is_relative_to(self.folder.resolve())
            # To read a pipe is to wait for its writer, and a device may have no end.
            if is_own and path.is_file() and path.stat().st_size == file["size"]:
                content = path.read_bytes()
                if f"sha256:{hashlib.sha256(content).hexdigest()}" == file["digest"]:
                    return content
        except (OSError, RuntimeError):  # it is missing; or a link to itself, before Python 3.13
            pass
        raise DefinitionError(f"{uri} differs from its manifest; run `make catalog`, and deploy again")


def manifest_path(folder: Path) -> Path:
    """Return the path of the manifest of a folder: `skills.json` beside `skills`."""
    return folder.with_name(f"{folder.name}.json")


def read_manifests(folders: Mapping[Path, tuple[str, ...]]) -> dict[str, OwnSkill]:
    """Return the skills of folders by URI. The values are the required scopes. Raises DefinitionError."""
    return {
        entry["uri"]: OwnSkill(folder, entry, scopes)
        for folder, scopes in folders.items()
        for entry in _entries(manifest_path(folder))
    }


def _entries(manifest: Path) -> list[SkillEntry]:
    try:
        if manifest.is_file():
            return _MANIFEST.decode(manifest.read_bytes()).skills
    except (OSError, MsgspecError):
        pass
    raise DefinitionError(f"{manifest} is missing or no manifest; run `make catalog`")


class SkillMethods(Struct, frozen=True, dict=True):  # dict: the index is built once
    """The handlers of skills. `skills` are by the URI of SKILL.md. `forward`: see `Features`."""

    skills: Mapping[str, Listable]
    forward: Callable[[Any, RequestContext], HttpResponse] | None = None

    @cached_property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            SKILLS_LIST: FeatureList("skills", self.skills),
            SKILLS_GET: self._get,
            RESOURCES_DIRECTORY_READ: self._read_directory,
        }

    def skill_files(self) -> dict[str, ListItem]:
        """Return each SKILL.md for the list of resources, where clients without the extension find it."""
        return {uri: ListItem(partial(_skill_file, each), each.scopes) for uri, each in self.skills.items()}

    def read(self, context: RequestContext) -> Reply | HttpResponse | None:
        """Return the result with a file of a skill; None for another URI. Raises InsufficientScope."""
        uri = read_uri(context.params)
        skill = self._find(context, uri, unknown_resource(uri, context))
        return None if skill is None else self._reply(skill, context, uri)

    def _reply(self, skill: Any, context: RequestContext, uri: str) -> Reply | HttpResponse | None:
        """Return the reply for a URI of a skill; None if the skill has no such file."""
        if self.forward is not None:
            return self.forward(skill, context)
        return serve_own_skill(skill, context, uri)

    @cached_property
    def _roots(self) -> Mapping[str, Listable]:
        return {spelling_key(name.removesuffix(SKILL_FILE)): skill for name, skill in self.skills.items()}

    def _find(self, context: RequestContext, uri: str, unknown: ProtocolError) -> Listable | None:
        """Return the innermost skill that contains a URI. Raises `unknown` or InsufficientScope."""
        at = spelling_key(uri)
        while at and at not in self._roots:
            at = at.rpartition("/")[0]
        return authorize(self._roots[at], context, lambda: unknown) if at else None

    def _get(self, context: RequestContext) -> Reply | HttpResponse:
        uri = read_uri(context.params)
        unknown = ProtocolError(INVALID_PARAMS, f"No skill is served at {uri[:128]}")
        root = spelling_key(uri.removesuffix(SKILL_FILE)) if uri.endswith(SKILL_FILE) else ""
        return self._serve(authorize(self._roots.get(root), context, lambda: unknown), context, uri, unknown)

    def _read_directory(self, context: RequestContext) -> Reply | HttpResponse:
        uri = read_uri(context.params)
        unknown = ProtocolError(INVALID_PARAMS, f"{uri[:128]} is not a directory resource")
        return self._serve(self._find(context, uri, unknown), context, uri, unknown)

    def _serve(
        self, skill: Listable | None, context: RequestContext, uri: str, unknown: ProtocolError
    ) -> Reply | HttpResponse:
        reply = None if skill is None else self._reply(skill, context, uri)
        if reply is None:
            raise unknown
        return reply


def _skill_file(skill: Listable) -> dict[str, Any]:
    entry = skill.definition()
    return file_resource(entry["uri"]) | {
        name: entry["frontmatter"][name] for name in ("name", "description")
    }


def serve_own_skill(skill: OwnSkill, context: RequestContext, uri: str) -> Reply | None:
    """Return a skill of this function, a file of it, or a page of the children of a directory."""
    method = context.request.method
    if method == SKILLS_GET:
        members: dict[str, Any] = {"skill": skill.entry}
    elif method == RESOURCES_READ:
        if (file := skill.files.get(spelling_key(uri))) is None:
            return None
        members = {"contents": [file_contents(file["uri"], skill.read(file))]}
    else:
        children = _children(spelling_key(uri), (each["uri"] for each in skill.entry["resources"]))
        if not children:
            return None
        cursor, size = context.params.get("cursor"), context.options.page_size
        part, following = find_page("directory", list(children), cursor, size)
        members = {"resources": list(children.values())[part], **following}
    # SEP-2640 asks for no caching hints of a directory, but MCP Inspector 2.12 refuses a result without them.
    ttl_ms, is_private = context.options.list_ttl_ms, bool(skill.scopes)
    result = results.cacheable(context.server_info, ttl_ms, is_private=is_private, **members)
    return Reply(result, log_fields={"skill": skill.name})


def _children(directory: str, files: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the Resource objects of the direct children of a directory by URI; none for other URIs."""
    children: dict[str, Mapping[str, Any]] = {}
    for file in files:
        if file.startswith(f"{directory}/"):
            name, is_directory, _ = file.removeprefix(f"{directory}/").partition("/")
            uri = f"{directory}/{name}"
            children[uri] = file_resource(uri) | ({"mimeType": DIRECTORY_MIME_TYPE} if is_directory else {})
    return children
