"""Skills through a front door, from their owner, and for clients of the earlier versions (SEP-2640)."""

import json
import os
from pathlib import Path

import pytest

from mcp_roundtrip import DefinitionError, Server
from mcp_roundtrip.protocol.constants import META_SERVER_INFO
from mcp_roundtrip.server.skills import manifest_path
from mcp_roundtrip_tools.catalog.skill_folders import skill_entries
from support.deployment import Deployment
from support.skills import matches, skill_file, with_manifest, write_skills

OPEN, ADMIN = "skill://acme/refunds/SKILL.md", "skill://admin/SKILL.md"
PICTURE, NESTED = "skill://acme/refunds/files/a.png", "skill://acme/refunds/files/audit/SKILL.md"
FILES = {
    "acme/refunds/SKILL.md": "\ufeff" + skill_file("refunds", "Refund an order.", "license: MIT"),
    "acme/refunds/files/a.png": b"\x89PNG",
    "acme/refunds/files/b c.unknown": "text\r\n",
    "acme/refunds/files/audit/SKILL.md": skill_file("audit"),
}


def serving(folder, **options):
    """Return a front door and the owner of two folders of skills, for a caller without scopes."""
    server = Server("owner", **options)
    server.skills(with_manifest(write_skills(folder / "open", FILES)))
    server.skills(
        with_manifest(write_skills(folder / "admin", {"admin/SKILL.md": skill_file("admin")})),
        scopes=["admin"],
    )
    with pytest.raises(DefinitionError):
        server.skills(folder / "open")
    server.resource("skill://acme/refunds/live")(live)
    return Deployment(server, through_door=True, door_options=options)


def live() -> str:
    return "now"


@pytest.fixture
def deployment(tmp_path, through_door):
    return serving(tmp_path).by(through_door=through_door)


@pytest.fixture
def admin(deployment):
    return deployment.by(scopes=("admin",))


def test_a_client_lists_gets_and_reads_every_file_with_the_content_of_its_digest(admin, tmp_path):
    listed = admin.result("skills/list")
    assert listed["skills"] == [*skill_entries(tmp_path / "open"), *skill_entries(tmp_path / "admin")]
    assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 300_000, "public")
    for skill in listed["skills"]:
        got = admin.result("skills/get", uri=skill["uri"])
        assert got["skill"] == skill
        assert got["_meta"][META_SERVER_INFO]["name"] == ("door" if admin.through_door else "owner")
        for resource in skill["resources"]:
            assert matches(resource, admin.read(resource["uri"]))
    assert admin.read("skill://acme/refunds/files/b%20c.unknown")["mimeType"] == "text/plain"
    files = admin.result("resources/directory/read", uri="skill://acme/refunds/files")["resources"]
    assert [each["name"] for each in files if "mimeType" not in each] == ["b c.unknown"]


REFUSED = {
    "resources/directory/read": [
        *("skill://acme", "skill://", "skill:", "x", "", OPEN, f"{OPEN}/", "skill://acme/refunds/"),
        *("skill://acme/refunds/fil", "skill://acme/refunds/../refunds", "skill://none"),
    ],
    "skills/get": [
        *("skill://acme/refunds", PICTURE, "skill://none/SKILL.md", "/SKILL.md", "", 1, None),
        *("skill://acme/SKILL.md", "SKILL.md", "skill://acme/refunds/x/SKILL.md", "x" * 9_000),
    ],
    "resources/read": [
        f"skill://acme/refunds/{path}"
        for path in (
            *("../owner.json", "..%2f..%2fcatalog.json", "%2e%2e/%2e%2e/catalog.json", "files", "files/", ""),
            *("files/../SKILL.md", "/etc/passwd", "SKILL.md%00", "SKILL.md?x", "SKILL.md#x", "a" * 8_000),
            *("files\\a.png", "./SKILL.md", "files//a.png", "skill.md"),
        )
    ],
}


@pytest.mark.parametrize(
    ("method", "uri"), [(method, uri) for method, uris in REFUSED.items() for uri in uris]
)
def test_a_uri_that_is_no_directory_no_skill_or_no_file_of_the_manifest_is_refused(deployment, method, uri):
    assert deployment.error(method, uri=uri)["code"] == -32602


def test_another_spelling_of_a_uri_means_the_same_skill_and_other_resources_keep_the_scheme(deployment):
    other = "SKILL://acme/%72efunds/SKILL.md"
    assert deployment.result("skills/get", uri=other)["skill"]["uri"] == OPEN
    assert deployment.read(other)["uri"] == OPEN
    assert deployment.read("skill://acme/refunds/live")["text"] == "now"


@pytest.mark.parametrize("method", ["skills/get", "resources/read", "resources/directory/read"])
def test_a_skill_with_scopes_needs_them(deployment, admin, method):
    uri = ADMIN.removesuffix("/SKILL.md") if "directory" in method else ADMIN
    assert deployment.by(scopes=("other",)).request(method, uri=uri).status == 403
    result = admin.result(method, uri=uri)
    assert result.get("cacheScope", "private") == "private"


def test_lists_of_skills_and_of_directories_have_pages(tmp_path):
    small, directory = serving(tmp_path / "small", page_size=1), {"uri": "skill://acme/refunds"}
    first = small.result("resources/directory/read", **directory)
    second = small.result("resources/directory/read", **directory, cursor=first["nextCursor"])
    assert [each["name"] for each in (*first["resources"], *second["resources"])] == ["SKILL.md", "files"]
    assert "nextCursor" not in second
    listed = small.result("skills/list")
    assert [each["uri"] for each in listed["skills"]] == [OPEN]
    following = small.result("skills/list", cursor=listed["nextCursor"])
    assert [each["uri"] for each in following["skills"]] == [NESTED]
    assert small.error("skills/list", cursor="1.x")["code"] == -32602


def link_to(target):
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
    [
        lambda file: file.write_text("secret".ljust(file.stat().st_size)),
        Path.unlink,
        become_a_pipe,
        link_to(Path("/dev/zero")),
        link_to(Path("SKILL.md")),
        link_to(None),
    ],
    ids=["edited", "removed", "pipe", "device", "link to itself", "link out of the folder"],
)
def test_a_file_that_differs_from_the_manifest_is_never_sent(deployment, tmp_path, change):
    change(tmp_path / "open" / "acme" / "refunds" / "SKILL.md")
    error = deployment.error("resources/read", uri=OPEN)
    assert error["code"] == -32603
    assert "secret" not in json.dumps(error)
    assert "its manifest" in str(deployment.observer.failures)


@pytest.mark.parametrize(
    "text", [None, "pipe", "{", "[]", '{"skills": 1}', '{"skills": [1]}', '{"skills": [{}]}']
)
def test_a_missing_or_malformed_manifest_is_reported(tmp_path, text):
    deployment = serving(tmp_path).by(through_door=False)
    manifest = manifest_path(tmp_path / "open")
    if text is None:
        manifest.unlink()
    elif text == "pipe":
        become_a_pipe(manifest)
    else:
        manifest.write_text(text)
    assert deployment.error("skills/list")["code"] == -32603
    assert "definition_failed" in str(deployment.observer.failures)
