"""The results of the methods of SEP-2640, with the rules for entries that a schema can check."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from mcp_types import methods
from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, model_validator

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION
from support.tasks_schema import Result, Strict


def assert_valid(method: str, result: Mapping[str, Any]) -> None:
    """Validate the result of a method in `METHODS`. Raises pydantic's ValidationError."""
    METHODS[method].validate_json(json.dumps(result))


class SkillResource(Strict):
    uri: str
    digest: Annotated[str, StringConstraints(pattern=r"\Asha256:[0-9a-f]{64}\z")]
    size: Annotated[int, Field(ge=0)]


class Skill(Strict):
    uri: Annotated[str, StringConstraints(pattern=r"\Askill://.+/SKILL\.md\z")]
    frontmatter: dict[str, Any]
    resources: Annotated[list[SkillResource], Field(max_length=512)]

    @model_validator(mode="after")
    def _has_every_file_once_within_its_directory(self) -> Self:
        root = self.uri.removesuffix("SKILL.md")
        uris = [each.uri for each in self.resources]
        assert self.uri in uris
        assert len(set(uris)) == len(uris)
        assert all(uri.startswith(root) for uri in uris)
        assert root.endswith(f"/{self.frontmatter['name']}/")
        assert isinstance(self.frontmatter["description"], str)
        assert sum(each.size for each in self.resources) <= 16 * 1024 * 1024
        return self


class Cacheable(Result):
    result_type: Literal["complete"]
    ttl_ms: Annotated[int, Field(ge=0)]
    cache_scope: Literal["public", "private"]


class ListSkillsResult(Cacheable):
    skills: list[Skill]
    next_cursor: str = ""


class GetSkillResult(Cacheable):
    skill: Skill


def _resources(value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    listed = {"resultType": "complete", "resources": value, "ttlMs": 0, "cacheScope": "private"}
    methods.parse_server_result("resources/list", PROTOCOL_VERSION, listed)
    return value


class ReadResourceDirectoryResult(Cacheable):
    """SEP-2640 asks for no caching hints here. MCP Inspector does."""

    resources: Annotated[list[dict[str, Any]], AfterValidator(_resources)]
    next_cursor: str = ""


METHODS: Mapping[str, TypeAdapter[Any]] = {
    "skills/list": TypeAdapter(ListSkillsResult),
    "skills/get": TypeAdapter(GetSkillResult),
    "resources/directory/read": TypeAdapter(ReadResourceDirectoryResult),
}
