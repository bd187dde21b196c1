import os
import re
from hashlib import sha256
from pathlib import Path
from time import process_time

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip_tools.__main__ import main
from mcp_roundtrip_tools.catalog.catalog import catalog_of, load_function_servers
from mcp_roundtrip_tools.catalog.skill_folders import (
    MAX_BYTES,
    MAX_FILES,
    MAX_FRONTMATTER,
    SkillError,
    manifest_files,
    manifest_text,
    read_frontmatter,
    skill_entries,
    skill_rows,
)
from support.skills import skill_file, write_skills

LAUGHS = "\n".join(["a0: &a0 [lol]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])
"""A text of 900 characters that stands for 2^39 values."""

SERVER = """
from pathlib import Path
from mcp_roundtrip import Server
server = Server("any")
server.skills(Path(__file__).with_name("skills"){scopes})
"""


def problems(folder: Path) -> list[str]:
    with pytest.raises(SkillError) as caught:
        skill_entries(folder)
    return str(caught.value).replace(f"{folder}: ", "").splitlines()


def test_an_entry_has_the_frontmatter_and_every_file_once_with_digest_and_size(tmp_path):
    text = skill_file("refunds", "Refund.", "license: MIT")
    write_skills(tmp_path, {"acme/refunds/SKILL.md": text, "acme/refunds/a b/ä.md": "ä"})
    digest = f"sha256:{sha256(text.encode()).hexdigest()}"
    assert skill_entries(tmp_path) == [
        {
            "uri": "skill://acme/refunds/SKILL.md",
            "frontmatter": {"name": "refunds", "description": "Refund.", "license": "MIT"},
            "resources": [
                {"uri": "skill://acme/refunds/SKILL.md", "digest": digest, "size": len(text)},
                {
                    "uri": "skill://acme/refunds/a%20b/%C3%A4.md",
                    "digest": f"sha256:{sha256('ä'.encode()).hexdigest()}",
                    "size": 2,
                },
            ],
        }
    ]


def test_a_nested_skill_is_an_entry_of_its_own_and_part_of_the_enclosing_one(tmp_path):
    write_skills(
        tmp_path, {"outer/SKILL.md": skill_file("outer"), "outer/inner/SKILL.md": skill_file("inner")}
    )
    outer, inner = skill_entries(tmp_path)
    assert [each["uri"] for each in outer["resources"]] == [outer["uri"], inner["uri"]]
    assert [each["uri"] for each in inner["resources"]] == ["skill://outer/inner/SKILL.md"]


def test_hidden_files_and_bytecode_are_omitted(tmp_path):
    hidden = ("one/.env", "one/.git/config", ".DS_Store", "one/scripts/__pycache__/a.pyc")
    write_skills(tmp_path, {"one/SKILL.md": skill_file("one"), **dict.fromkeys(hidden, "secret")})
    assert [each["uri"] for each in skill_entries(tmp_path)[0]["resources"]] == ["skill://one/SKILL.md"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [(b"..\\escaped.md", r"one/..\\escaped.md .*backslash"), (b"\xff.txt", r"the name b'\\xff.txt' ")],
)
def test_a_name_that_other_systems_do_not_store_is_refused(tmp_path, name, problem):
    write_skills(tmp_path, {"one/SKILL.md": skill_file("one")})
    (tmp_path / "one" / os.fsdecode(name)).touch()
    [line] = problems(tmp_path)
    assert re.match(problem, line)


def test_links_and_pipes_are_named_and_neither_read_nor_written(tmp_path):
    skills = write_skills(tmp_path / "skills", {"one/SKILL.md": skill_file("one")})
    (tmp_path / "secret").mkdir()
    server = Server("any")
    server.skills(skills)
    os.mkfifo(tmp_path / "skills.json")
    with pytest.raises(SkillError, match=r"skills\.json .*regular"):
        manifest_files([server])
    for name in ("one/link.md", "one/folder", "one/.hidden"):
        (skills / name).symlink_to(tmp_path / "secret")
        [problem] = problems(skills)
        assert re.match(f"{name} .*regular", problem)
        (skills / name).unlink()
    for name in ("one/pipe", "one/SKILL.md", "pipe"):
        (skills / name).unlink(missing_ok=True)
        os.mkfifo(skills / name)
        assert any(re.match(f"{name} .*regular", problem) for problem in problems(skills)), name


def test_a_file_of_any_size_is_not_read_if_it_is_larger_than_a_skill_may_be(tmp_path):
    write_skills(tmp_path, {"one/SKILL.md": skill_file("one")})
    with (tmp_path / "one/huge").open("wb") as file:
        file.truncate(1 << 40)  # sparse
    (problem,) = problems(tmp_path)
    assert problem.startswith("one/huge has 1,099,511,627,776 bytes")


@pytest.mark.parametrize("folder", ["Upper", "a--b", "-a", "a_b", "a" * 65, "a.b/c", ""])
def test_a_folder_that_can_be_no_name_is_refused(tmp_path, folder):
    path = f"{folder}/SKILL.md".removeprefix("/")
    found = problems(write_skills(tmp_path, {path: skill_file(folder.rpartition("/")[2])}))
    assert "lower-case" in found[0]
    valid = "a" * 64
    assert len(skill_entries(write_skills(tmp_path / "valid", {f"{valid}/SKILL.md": skill_file(valid)}))) == 1


def test_each_mistake_of_a_folder_is_a_line(tmp_path):
    write_skills(
        tmp_path,
        {
            "README.md": "",
            "one/SKILL.md": skill_file("two"),
            "long/SKILL.md": skill_file("long", "x" * 1_025),
            "none/SKILL.md": "# No frontmatter",
            "latin/SKILL.md": b"---\nname: latin\ndescription: \xe4\n---\n",
            "own/SKILL.md": skill_file("own", "D", "metadata: {io.modelcontextprotocol/x: 1}"),
        },
    )
    reasons = {
        "README.md ": "no skill",
        "latin/SKILL.md: ": "'utf-8'",
        "long/SKILL.md: ": "description",
        "none/SKILL.md: ": "YAML",
        "one/SKILL.md: ": "'two'",
        "own/SKILL.md: ": "metadata",
    }
    for line, (place, reason) in zip(problems(tmp_path), reasons.items(), strict=True):
        assert line.startswith(place)
        assert reason in line


def test_a_skill_has_512_files_at_most(tmp_path):
    files = {f"one/{number}.md": "" for number in range(MAX_FILES - 1)}
    write_skills(tmp_path, {"one/SKILL.md": skill_file("one"), **files})
    assert len(skill_entries(tmp_path)[0]["resources"]) == MAX_FILES
    (tmp_path / "one/more.md").touch()
    [problem] = problems(tmp_path)
    assert re.findall("[0-9]+", problem) == ["513", "512"]


def test_a_skill_has_16_mib_at_most_and_a_file_fits_into_a_response(tmp_path):
    skill, size = skill_file("one"), 4_000_000
    parts = {f"one/{number}.txt": b"a" * size for number in range(4)}
    rest = MAX_BYTES - len(skill) - 4 * size
    write_skills(tmp_path, {"one/SKILL.md": skill, **parts, "one/rest.txt": b"a" * rest})
    assert sum(each["size"] for each in skill_entries(tmp_path)[0]["resources"]) == MAX_BYTES
    write_skills(tmp_path, {"one/rest.txt": b"a" * (rest + 1), "one/0.txt": b'"' * 2_000_000})
    [problem] = problems(tmp_path)
    assert problem.startswith("one/SKILL.md: one/0.txt ")
    write_skills(tmp_path, {"one/0.txt": b"a" * size})
    [problem] = problems(tmp_path)
    assert re.findall("[0-9,]+", problem) == ["16,777,217", "16,777,216"]


def test_frontmatter_is_read_by_the_core_schema_of_yaml_1_2():
    lines = ["a: no", "b: 2026-01-02", "c: 012", "d: 0o17", "e: true", "f: ~", "g: 1.50", "h: [x, 'y']"]
    assert read_frontmatter("\n".join(["---", *lines, "i: 1_0", "---", ""])) == {
        **{"a": "no", "b": "2026-01-02", "c": 12, "d": 15, "e": True},
        **{"f": None, "g": 1.5, "h": ["x", "y"], "i": "1_0"},
    }
    # Line ends and a byte order mark do not matter.
    assert read_frontmatter("\ufeff---\r\nname: a\r\n---\r\nText") == {"name": "a"}


NO_JSON = (
    *("", "- a", "text", "a: 1\na: 2", "a: .nan", "a: .inf", "1: a", "a: !!python/object:os.system x"),
    *("a: &x [*x]", "a: &x 1", "a: &x\nb: *x", "<<: &x {a: 1}", "? &x a\n: 1", "&x a: 1", "&x\na: 1"),
    *("a: [b, &x c]", LAUGHS, "a: !!bool x", "a: !!timestamp x", 'a: "\\uD800"', "{"),
)


@pytest.mark.parametrize("block", NO_JSON)
def test_frontmatter_that_json_cannot_hold_is_a_value_error(block):
    with pytest.raises(ValueError, match="frontmatter"):
        read_frontmatter(f"---\n{block}\n---\n")


def test_a_description_with_a_colon_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="quotes"):
        read_frontmatter("---\ndescription: Use it: when asked\n---\n")


def test_the_longest_frontmatter_that_clients_accept_is_read_before_a_long_text():
    longest = f"a: {'x' * (MAX_FRONTMATTER - 4)}\n"
    assert read_frontmatter(f"---\n{longest}\n---\n{'x' * 100_000}") == {"a": longest[3:-1]}


TOO_LONG = {
    "one character more": "#" * (MAX_FRONTMATTER + 1) + "\n---\n",
    "without an end": "a: x\n" * 100_000,
    "deep": f"a: {'[' * 100_000}\n---\n",
}


@pytest.mark.parametrize("text", TOO_LONG.values(), ids=TOO_LONG)
def test_frontmatter_is_not_loaded_if_it_is_longer_than_clients_accept(text):
    with pytest.raises(ValueError, match="16,384 characters"):
        read_frontmatter(f"---\n{text}")


@pytest.mark.parametrize("repeated", ["[", "{", "- ", "? ", "{a: ", "!!merge ", "!!set {", "{a,"])
def test_frontmatter_takes_a_bounded_time_with_every_nesting(repeated):
    block = repeated * (MAX_FRONTMATTER // len(repeated) - 2)
    before = process_time()
    with pytest.raises(ValueError, match="frontmatter"):
        read_frontmatter(f"---\na: {block}\n---\n")
    assert process_time() - before < 5


def test_the_catalog_command_writes_manifests_and_reports_stale_ones(tmp_path, capsys):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "app.py").write_text(SERVER.format(scopes=', scopes=["db:read"]'))
    skills = write_skills(tmp_path / "one" / "skills", {"first/SKILL.md": skill_file("first")})
    command = ["catalog", "--functions", str(tmp_path)]
    assert main([*command, "--check"]) == 1
    assert "one/skills.json is stale" in capsys.readouterr().err
    assert main(command) == main([*command, "--check"]) == 0
    assert capsys.readouterr().out.split() == ["Wrote", f"{tmp_path}/one/skills.json."]
    assert (tmp_path / "one" / "skills.json").read_text() == manifest_text(skills)
    (row,) = catalog_of(load_function_servers(tmp_path))["skills"]
    assert (row["owner"], row["scopes"], row["definition"]) == ("one", ["db:read"], skill_entries(skills)[0])
    write_skills(skills, {"first/SKILL.md": skill_file("first", "Another text.")})
    assert main([*command, "--check"]) == 1
    write_skills(skills, {"first/SKILL.md": "nothing"})
    assert main(command) == 2
    assert "first/SKILL.md: " in capsys.readouterr().err


def test_skills_of_two_folders_share_no_directory(tmp_path):
    one = write_skills(tmp_path / "one", {"a/SKILL.md": skill_file("a"), "b-c/SKILL.md": skill_file("b-c")})
    two = write_skills(tmp_path / "two", {"b/SKILL.md": skill_file("b")})
    rows = skill_rows({"x": {one: ()}, "y": {two: ()}})
    assert [(row["owner"], row["definition"]["frontmatter"]["name"]) for row in rows] == [
        *(("x", "a"), ("x", "b-c"), ("y", "b")),
    ]
    write_skills(one, {"a/also/SKILL.md": skill_file("also")})
    write_skills(two, {"a/inner/SKILL.md": skill_file("inner")})
    with pytest.raises(SkillError, match=r"skill://a/ .*one .*skill://a/inner/ .*two"):
        skill_rows({"x": {one: ()}, "y": {two: ()}})
