"""Skills through a front door, from their owner, and for clients of the earlier versions (SEP-2640)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip import FrontDoor, Server
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.auth.event_authenticator import EventAuthenticator
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.constants import META_SERVER_INFO, SKILLS_EXTENSION
from mcp_roundtrip.server.skills import manifest_path
from mcp_roundtrip_local.catalog import render_servers
from mcp_roundtrip_local.skill_folders import skill_entries
from mcp_roundtrip_testing.observers import RecordingObserver
from mcp_roundtrip_testing.ports import make_ports
from support.audit_lines import AuditLines
from support.legacy_client import assert_valid as assert_valid_legacy
from support.messages import headers, http_event, message
from support.skills import matches, skill_file, with_manifest, write_skills

OPEN, ADMIN = "skill://acme/refunds/SKILL.md", "skill://admin/SKILL.md"
PICTURE, NESTED = "skill://acme/refunds/files/a.png", "skill://acme/refunds/files/audit/SKILL.md"
FILES: Mapping[str, str | bytes] = {
    "acme/refunds/SKILL.md": "\ufeff" + skill_file("refunds", "Refund an order.", "license: MIT"),
    "acme/refunds/files/a.png": b"\x89PNG",
    "acme/refunds/files/b c.unknown": "text\r\n",
    "acme/refunds/files/audit/SKILL.md": skill_file("audit"),
}
LEGACY = {"mcp-protocol-version": "2025-11-25"}


class Deployment:
    """A front door and the owner of two folders of skills; `through_door` chooses who answers."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.observer = RecordingObserver()
        self.open = with_manifest(write_skills(folder / "open", FILES))
        self.admin = with_manifest(write_skills(folder / "admin", {"admin/SKILL.md": skill_file("admin")}))
        ports = make_ports(auth=EventAuthenticator(AuthMode.JWT, "user", "scope"), observer=self.observer)
        self.ports: Ports = replace(ports, forward=self._forward)
        self.owner = Server("owner", ports=lambda: self.ports, **options)
        self.owner.skills(self.open)
        self.owner.skills(self.admin, scopes=["admin"])
        self.owner.resource("skill://acme/refunds/live")(live)
        (folder / "catalog.json").write_text(render_servers({"owner": self.owner}))
        self.door = FrontDoor("door", folder / "catalog.json", ports=lambda: self.ports, **options)
        self.through_door = True

    def post(
        self, method: str, scope: str = "", given: Mapping[str, str] | None = None, **params: Any
    ) -> Any:
        body = message(method, **params, **({} if given is None else {"meta": None}))
        claims = {"iss": "https://id.test", "sub": "alice", "scope": scope}
        authorizer = {"jwt": {"claims": claims, "scopes": None}}
        event = http_event(body, headers=headers(body) if given is None else given, authorizer=authorizer)
        response = (self.door if self.through_door else self.owner).lambda_handler(event, _context())
        self.status = response["statusCode"]
        answer = json.loads(response["body"])
        if given is not None:
            assert_valid_legacy(method, answer)
        return answer

    def _forward(
        self, owner: str, event: Mapping[str, Any], custom: Mapping[str, Any], timeout_s: int
    ) -> Any:
        return self.owner.lambda_handler(event, _context(custom))


def _context(custom: Mapping[str, Any] | None = None) -> Any:
    return SimpleNamespace(
        aws_request_id="id",
        client_context=SimpleNamespace(custom=custom),
        get_remaining_time_in_millis=lambda: 20_000,
    )


def live() -> str:
    return "now"


@pytest.fixture(params=["front door", "owner"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    deployment = Deployment(tmp_path)
    deployment.through_door = request.param == "front door"
    return deployment


def test_a_client_lists_gets_and_reads_every_file_with_the_content_of_its_digest(
    deployment: Deployment,
) -> None:
    listed = deployment.post("skills/list", "admin")["result"]
    assert listed["skills"] == [*skill_entries(deployment.open), *skill_entries(deployment.admin)]
    assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 300_000, "public")
    for skill in listed["skills"]:
        got = deployment.post("skills/get", "admin", uri=skill["uri"])["result"]
        assert got["skill"] == skill
        assert got["_meta"][META_SERVER_INFO]["name"] == ("door" if deployment.through_door else "owner")
        for resource in skill["resources"]:
            (contents,) = deployment.post("resources/read", "admin", uri=resource["uri"])["result"][
                "contents"
            ]
            assert matches(resource, contents)


def test_discovery_declares_the_extension_and_resources(deployment: Deployment) -> None:
    declared = deployment.post("server/discover")["result"]["capabilities"]
    assert declared["extensions"] == {SKILLS_EXTENSION: {"directoryRead": True}}
    assert declared["resources"] == {}


def test_a_server_without_skills_declares_none_and_knows_no_such_method() -> None:
    server = Server("plain", ports=lambda: make_ports())
    for method in ("skills/list", "skills/get", "resources/directory/read"):
        body = message(method, uri=OPEN)
        answer = server.lambda_handler(http_event(body, headers=headers(body)), _context())
        assert json.loads(answer["body"])["error"]["code"] == -32601
    body = message("server/discover")
    answer = server.lambda_handler(http_event(body, headers=headers(body)), _context())
    assert "extensions" not in json.loads(answer["body"])["result"]["capabilities"]


def test_the_list_of_resources_has_each_skill_file_for_clients_without_the_extension(
    deployment: Deployment,
) -> None:
    listed = {each["uri"]: each for each in deployment.post("resources/list")["result"]["resources"]}
    assert list(listed) == ["skill://acme/refunds/live", OPEN, NESTED, ADMIN]
    about = {"name": "refunds", "description": "Refund an order.", "mimeType": "text/markdown"}
    assert listed[OPEN] == {"uri": OPEN, **about}


def test_a_legacy_client_reads_skills_as_resources_and_knows_no_extension(deployment: Deployment) -> None:
    listed = deployment.post("resources/list", given=LEGACY)["result"]["resources"]
    assert OPEN in [each["uri"] for each in listed]
    read = deployment.post("resources/read", given=LEGACY, uri=OPEN)["result"]
    assert read["contents"][0]["text"] == FILES["acme/refunds/SKILL.md"]
    assert deployment.post("skills/list", given=LEGACY)["error"]["code"] == -32601
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    opened = deployment.post("initialize", given=LEGACY, **params)["result"]["capabilities"]
    assert "extensions" not in opened
    assert opened["resources"] == {}


def test_text_and_binary_files_have_their_mime_types(deployment: Deployment) -> None:
    uris = (OPEN, PICTURE, "skill://acme/refunds/files/b%20c.unknown")
    read = [deployment.post("resources/read", uri=uri)["result"]["contents"][0] for uri in uris]
    assert [(each["mimeType"], "blob" in each) for each in read] == [
        *(("text/markdown", False), ("image/png", True), ("text/plain", False)),
    ]


def test_a_directory_has_its_direct_children(deployment: Deployment) -> None:
    root = deployment.post("resources/directory/read", uri="skill://acme/refunds")["result"]
    assert root["resources"] == [
        {"uri": OPEN, "name": "SKILL.md", "mimeType": "text/markdown"},
        {"uri": "skill://acme/refunds/files", "name": "files", "mimeType": "inode/directory"},
    ]
    assert root["resultType"] == "complete"
    files = deployment.post("resources/directory/read", uri="skill://acme/refunds/files")["result"]
    assert [(each["name"], each.get("mimeType")) for each in files["resources"]] == [
        *(("a.png", "image/png"), ("audit", "inode/directory"), ("b c.unknown", None)),
    ]


@pytest.mark.parametrize(
    "uri",
    [
        *("skill://acme", "skill://", "skill:", "x", "", OPEN, f"{OPEN}/", "skill://acme/refunds/"),
        *("skill://acme/refunds/fil", "skill://acme/refunds/../refunds", "skill://none"),
    ],
)
def test_a_uri_that_is_no_directory_is_refused(deployment: Deployment, uri: str) -> None:
    assert deployment.post("resources/directory/read", uri=uri)["error"]["code"] == -32602


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "skill://acme/refunds",
            "skill://acme/refunds/files/a.png",
            "skill://none/SKILL.md",
            "/SKILL.md",
            "",
        ),
        *("skill://acme/SKILL.md", "SKILL.md", "skill://acme/refunds/x/SKILL.md", 1, None, "x" * 9_000),
    ],
)
def test_a_uri_that_is_no_skill_is_refused(deployment: Deployment, uri: Any) -> None:
    assert deployment.post("skills/get", uri=uri)["error"]["code"] == -32602


@pytest.mark.parametrize(
    "path",
    [
        *("../owner.json", "..%2f..%2fcatalog.json", "%2e%2e/%2e%2e/catalog.json", "files", "files/", ""),
        *("files/../SKILL.md", "/etc/passwd", "SKILL.md%00", "SKILL.md?x", "SKILL.md#x", "a" * 8_000),
        *("files\\a.png", "./SKILL.md", "files//a.png", "skill.md"),
    ],
)
def test_a_path_other_than_those_in_the_manifest_is_not_found(deployment: Deployment, path: str) -> None:
    answer = deployment.post("resources/read", uri=f"skill://acme/refunds/{path}")
    assert answer["error"]["code"] == -32602


def test_another_spelling_of_a_uri_means_the_same_skill(deployment: Deployment) -> None:
    other = "SKILL://acme/%72efunds/SKILL.md"
    assert deployment.post("skills/get", uri=other)["result"]["skill"]["uri"] == OPEN
    assert deployment.post("resources/read", uri=other)["result"]["contents"][0]["uri"] == OPEN


def test_other_resources_with_the_scheme_are_read(deployment: Deployment) -> None:
    read = deployment.post("resources/read", uri="skill://acme/refunds/live")["result"]
    assert read["contents"][0]["text"] == "now"


@pytest.mark.parametrize("method", ["skills/get", "resources/read", "resources/directory/read"])
def test_a_skill_with_scopes_needs_them(deployment: Deployment, method: str) -> None:
    uri = ADMIN.removesuffix("/SKILL.md") if "directory" in method else ADMIN
    deployment.post(method, "other", uri=uri)
    assert deployment.status == 403
    result = deployment.post(method, "admin", uri=uri)["result"]
    assert result.get("cacheScope", "private") == "private"


@pytest.mark.parametrize("through_door", [True, False])
def test_a_hidden_skill_is_neither_listed_nor_known(tmp_path: Path, *, through_door: bool) -> None:
    deployment = Deployment(tmp_path, hide_unauthorized=True)
    deployment.through_door = through_door
    listed = deployment.post("skills/list", "other")["result"]
    assert [each["uri"] for each in listed["skills"]] == [OPEN, NESTED]
    assert listed["cacheScope"] == "private"
    assert ADMIN not in json.dumps(deployment.post("resources/list", "other"))
    assert deployment.post("skills/get", "other", uri=ADMIN)["error"]["code"] == -32602
    assert deployment.post("resources/read", "other", uri=ADMIN)["error"]["code"] == -32602


@pytest.mark.parametrize("through_door", [True, False])
def test_pages_hold_whole_entries_and_stay_below_the_limit_of_a_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, through_door: bool
) -> None:
    monkeypatch.setattr("mcp_roundtrip.server.skills.MAX_LIST_BYTES", 1_500)
    deployment = Deployment(tmp_path)
    deployment.through_door = through_door
    uris, cursor, pages = [], {}, 0
    while cursor is not None:
        page = deployment.post("skills/list", "admin", **cursor)["result"]
        uris += [each["uri"] for each in page["skills"]]
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        pages += 1
    assert (uris, pages) == ([OPEN, NESTED, ADMIN], 2)
    assert deployment.post("skills/list", cursor="1.x")["error"]["code"] == -32602


def test_a_directory_is_read_in_pages(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path, page_size=1)
    first = deployment.post("resources/directory/read", uri="skill://acme/refunds")["result"]
    second = deployment.post(
        "resources/directory/read", uri="skill://acme/refunds", cursor=first["nextCursor"]
    )["result"]
    assert [each["name"] for each in (*first["resources"], *second["resources"])] == ["SKILL.md", "files"]
    assert "nextCursor" not in second


def edit(file: Path) -> None:
    file.write_text("secret")


def link_to(target: Path | None) -> Callable[[Path], None]:
    """Return the change that replaces a file by a link; None: to the file itself, outside of the folder."""

    def change(file: Path) -> None:
        outside = file.parents[3] / "outside.md"
        file.rename(outside)
        file.symlink_to(target or outside)

    return change


def become_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "change",
    [edit, Path.unlink, become_a_pipe, link_to(Path("/dev/zero")), link_to(Path("SKILL.md")), link_to(None)],
    ids=["edited", "removed", "pipe", "device", "link to itself", "link out of the folder"],
)
def test_a_file_that_differs_from_the_manifest_is_never_sent(
    deployment: Deployment, change: Callable[[Path], None]
) -> None:
    change(deployment.open / "acme" / "refunds" / "SKILL.md")
    answer = deployment.post("resources/read", uri=OPEN)
    assert answer["error"]["code"] == -32603
    assert "secret" not in json.dumps(answer)
    assert "differs from its manifest; run `make catalog`" in str(deployment.observer.failures)


@pytest.mark.parametrize(
    "text", [None, "pipe", "{", "[]", '{"skills": 1}', '{"skills": [1]}', '{"skills": [{}]}']
)
def test_a_missing_or_malformed_manifest_is_reported(tmp_path: Path, text: str | None) -> None:
    deployment = Deployment(tmp_path)
    deployment.through_door = False
    manifest = manifest_path(deployment.open)
    if text is None:
        manifest.unlink()
    elif text == "pipe":
        become_a_pipe(manifest)
    else:
        manifest.write_text(text)
    assert deployment.post("skills/list")["error"]["code"] == -32603
    assert "definition_failed" in str(deployment.observer.failures)


def test_an_owner_that_is_deployed_later_shows_its_own_entry(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    write_skills(deployment.open, {"acme/refunds/new.md": "new"})
    with_manifest(deployment.open)
    got = deployment.post("skills/get", uri=OPEN)["result"]["skill"]
    assert "skill://acme/refunds/new.md" in [each["uri"] for each in got["resources"]]
    read = deployment.post("resources/read", uri="skill://acme/refunds/new.md")["result"]
    assert read["contents"][0]["text"] == "new"


def test_a_read_of_a_skill_and_a_refusal_are_one_audit_record_each(tmp_path: Path) -> None:
    deployment, lines = Deployment(tmp_path), AuditLines()
    deployment.through_door = False
    deployment.ports = replace(deployment.ports, audit=lines.log)
    deployment.post("skills/list", "admin")
    deployment.post("skills/get", "admin", uri=ADMIN)
    deployment.post("resources/read", "admin", uri=ADMIN)
    deployment.post("skills/get", uri=ADMIN)
    assert [(each["method"], each["feature"], each["outcome"]) for each in lines.records()] == [
        ("resources/read", ADMIN, "complete"),
        ("skills/get", ADMIN, "refused"),
    ]
