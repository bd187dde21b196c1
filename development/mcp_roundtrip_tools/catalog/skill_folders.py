"""Skills: the folders of their files, their front matter, and their entries in the catalog."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES
from mcp_roundtrip.server.skills import SCHEME, SKILL_FILE, file_contents, manifest_path

MAX_FRONTMATTER: Final = 16_384
"""Characters of the frontmatter, as YAML and as JSON."""

_BLOCK: Final = re.compile(
    rf"\A---[ \t]*\r?\n(.{{0,{MAX_FRONTMATTER}}}?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL
)

_PLAIN: Final = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
"""The plain scalars of the core schema that are no text: tag, pattern, first characters."""


class _CoreLoader(yaml.SafeLoader):
    """A loader of the core schema that refuses duplicate keys, anchors and aliases.

    With aliases of aliases, a short document has any size.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's class attribute

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs have no type
        if event.anchor is not None:
            raise yaml.composer.ComposerError(
                None, None, "anchors and aliases are not supported", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(map(str, keys))) != len(keys) or not all(isinstance(key, str) for key in keys):
            raise yaml.constructor.ConstructorError(
                None, None, "keys must be different texts", node.start_mark
            )
        return super().construct_mapping(node, deep=True)


for _tag, _pattern, _first in _PLAIN:
    _CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first, *([""] * (_tag == "null"))]
    )


def _integer(loader: _CoreLoader, node: yaml.ScalarNode) -> int:
    text = node.value
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


_CoreLoader.add_constructor("tag:yaml.org,2002:int", _integer)

# PyYAML raises the last two for a text that its tag does not fit, such as `!!bool x`.
_MALFORMED: Final = (yaml.YAMLError, TypeError, ValueError, RecursionError, KeyError, AttributeError)


def read_frontmatter(text: str) -> dict[str, Any]:
    """Return the frontmatter at the start of a SKILL.md. Raises ValueError with the reason."""
    found = _BLOCK.match(text.removeprefix("\ufeff"))
    if found is None:
        raise ValueError(
            f"it does not begin with YAML frontmatter of at most {MAX_FRONTMATTER:,} characters between two "
            "lines ---; move longer texts below it"
        )
    try:
        members = yaml.load(found[1], _CoreLoader)  # noqa: S506 - a subclass of SafeLoader
        json.dumps(members, allow_nan=False, ensure_ascii=False).encode()
    except _MALFORMED as error:
        reason = " ".join(str(error).split())
        remedy = "; put a text with a colon into quotes" if "mapping values" in reason else ""
        raise ValueError(f"its frontmatter is no YAML that JSON can hold: {reason}{remedy}") from None
    if not isinstance(members, dict):
        raise ValueError("its frontmatter has no members")
    return members


MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""Limits of one skill (SEP-2640, "Limits")."""

MAX_CONTENTS: Final = MAX_RESPONSE_BYTES - 50_000
"""Bytes of a file as JSON within the JSON text of a response."""

MAX_DESCRIPTION: Final = 1_024
"""Characters of a description (agentskills.io)."""

NAME: Final = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
"""The name of a skill (agentskills.io, "name field")."""

RESERVED_KEYS: Final = "io.modelcontextprotocol/"
"""Keys of `metadata` that begin with this are reserved."""


class SkillError(McpRoundtripError):
    """A folder does not hold valid skills; the message has a line for each mistake."""


def skill_entries(folder: Path) -> list[dict[str, Any]]:
    """Return the Skill objects of a folder, sorted by URI. Raises SkillError."""
    if not folder.is_dir():
        raise SkillError(f"{folder} is no folder; create it, or remove server.skills(...)")
    problems: list[str] = []
    files = dict(_files(folder, problems))
    roots = [path.removesuffix("SKILL.md") for path in files if f"/{path}".endswith(SKILL_FILE)]
    problems += [
        f"{path} belongs to no skill; move it into the folder of one, which has a SKILL.md"
        for path in files
        if not path.startswith(tuple(roots))
    ]
    entries = [_entry(root.removesuffix("/"), files, problems) for root in sorted(roots)]
    if problems:
        raise SkillError("\n".join(f"{folder}: {problem}" for problem in problems))
    return entries


def manifest_text(folder: Path) -> str:
    """Return the text of the manifest. It is deterministic. Raises SkillError."""
    return json.dumps({"skills": skill_entries(folder)}, indent=2, ensure_ascii=False) + "\n"


def _files(folder: Path, problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file, in an order that is the same on every computer."""
    for at, directories, names in os.walk(folder):
        found = (_wrong_file(Path(at, name), folder) for name in (*directories, *names))
        problems += [problem for problem in found if problem is not None]
        directories[:] = sorted(filter(_is_visible, directories))
        for name in sorted(filter(_is_visible, names)):
            path = Path(at, name)
            if _wrong_file(path, folder) is None:
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _wrong_file(path: Path, folder: Path) -> str | None:
    if not _is_utf8(path.name):
        return f"the name {os.fsencode(path.name)!r} is not UTF-8; rename it"
    name = path.relative_to(folder).as_posix()
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return f"{name} is no regular file; replace it by one"
    if "\\" in path.name:  # clients on Windows would store the file in another folder
        return f"{name} has a backslash in its name; rename it"
    if path.is_file() and (size := path.stat().st_size) > MAX_BYTES:
        return f"{name} has {size:,} bytes; clients accept {MAX_BYTES:,} of a skill"
    return None


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__" and _is_utf8(name)


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _entry(root: str, files: Mapping[str, bytes], problems: list[str]) -> dict[str, Any]:
    """Return the Skill object of the directory at `root`, and report what is wrong with it."""
    own = {path: content for path, content in files.items() if path.startswith(f"{root}/")}
    skill_file = f"{root}{SKILL_FILE}"
    reasons = [*_wrong_path(root), *_wrong_sizes(own)]
    frontmatter: dict[str, Any] = {}
    try:
        frontmatter = read_frontmatter(own.get(skill_file, b"").decode())
        reasons += _wrong_frontmatter(frontmatter, root.rpartition("/")[2])
    except ValueError as error:  # UnicodeDecodeError is one
        reasons.append(f"{error}")
    problems += [f"{skill_file.removeprefix('/')}: {reason}" for reason in reasons]
    return {
        "uri": _uri(skill_file),
        "frontmatter": frontmatter,
        "resources": [_resource(path, content) for path, content in sorted(own.items())],
    }


def _resource(path: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"uri": _uri(path), "digest": f"sha256:{digest}", "size": len(content)}


def _wrong_path(root: str) -> Iterator[str]:
    if not all(NAME.fullmatch(segment) for segment in root.split("/")):
        yield (
            "the folders of a skill have names of 1 to 64 lower-case letters, digits and single hyphens; "
            "rename them, and put the skill into a folder of its own"
        )


def _wrong_sizes(own: Mapping[str, bytes]) -> Iterator[str]:
    if len(own) > MAX_FILES:
        yield f"the skill has {len(own)} files; clients accept {MAX_FILES}"
    total = sum(map(len, own.values()))
    if total > MAX_BYTES:
        yield f"the skill has {total:,} bytes; clients accept {MAX_BYTES:,}"
    for path, content in own.items():
        if len(content) > MAX_CONTENTS // 12 and _response_bytes(content) > MAX_CONTENTS:
            yield f"{path} is too large for the response of a Lambda function; split it"


def _response_bytes(content: bytes) -> int:
    """Return the bytes of a file in a response: JSON whose body is JSON again."""
    body = json.dumps(file_contents("", content), ensure_ascii=False)
    return len(json.dumps(body, ensure_ascii=False).encode())


def _wrong_frontmatter(frontmatter: Mapping[str, Any], folder: str) -> Iterator[str]:
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if name != folder:
        yield f"its name is {name!r}; give it the name of its folder, {folder!r}"
    if not isinstance(description, str) or not 0 < len(description) <= MAX_DESCRIPTION:
        yield f"it needs a description of 1 to {MAX_DESCRIPTION} characters"
    metadata = frontmatter.get("metadata")
    if isinstance(metadata, dict) and any(str(key).startswith(RESERVED_KEYS) for key in metadata):
        yield f"its metadata has a key that begins with {RESERVED_KEYS}, which is reserved"
    if len(json.dumps(frontmatter)) > MAX_FRONTMATTER:
        yield f"its frontmatter has more than {MAX_FRONTMATTER:,} characters; move texts below it"


def _uri(path: str) -> str:
    return SCHEME + quote(path, safe="/-._~")


Folders = Mapping[Path, tuple[str, ...]]
"""The required scopes by folder."""


def skill_rows(folders: Mapping[str, Folders]) -> list[dict[str, Any]]:
    """Return the rows of the catalog, sorted by URI. Raises SkillError if folders share a directory."""
    rows = []
    for owner, held in folders.items():
        for folder, scopes in held.items():
            required = {"scopes": list(scopes)} if scopes else {}
            for entry in skill_entries(folder):
                root = entry["uri"].removesuffix(SKILL_FILE)
                rows.append((f"{root}/", folder, {"owner": owner, **required, "definition": entry}))
    rows.sort(key=lambda row: row[0])
    for (root, folder, _), (later, other, _) in combinations(rows, 2):
        if later.startswith(root) and folder != other:
            raise SkillError(f"{root} of {folder} contains {later} of {other}: rename one of them")
    return [row for _, _, row in rows]


def manifest_files(servers: Iterable[Server]) -> dict[Path, str]:
    """Return the manifests of the servers' skills, which are beside their folders. Raises SkillError."""
    folders = [folder for server in servers for folder in server.skill_folders]
    found = {manifest_path(folder): manifest_text(folder) for folder in folders}
    for path in found:
        if path.exists() and not path.is_file():
            raise SkillError(f"{path} is no regular file; remove it")
    return found
