"""The clients of the matrix are installed in the pinned versions, and their profiles say the same."""

import json
import tomllib

import pytest

from mcp_roundtrip.protocol.capabilities import TASKS, declares
from mcp_roundtrip_testing.client_profile import ClientProfile
from support.client_pins import pinned_versions
from support.documents import CONNECTING, read_document
from support.project import ROOT
from support.real_clients import DRIVERS, FOLDER, RealClient, real_clients

CLIENTS = real_clients()


def installed_version(client: RealClient) -> str:
    client.command()  # skips the test where there is no Node.js
    folder = ROOT / client.environment
    if client.driver.endswith(".mjs"):
        package = folder / "node_modules" / client.package / "package.json"
        return str(json.loads(package.read_text("utf-8"))["version"])
    name = client.package.replace("-", "_")
    [found] = folder.glob(f"lib/python3.*/site-packages/{name}-*.dist-info")
    return found.name.removesuffix(".dist-info").rpartition("-")[2]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_the_pinned_version_is_installed(client):
    assert installed_version(client) == client.version


def test_every_pinned_client_is_in_the_matrix():
    in_matrix = {name for client in CLIENTS for name in (client.package, *client.stack)}
    for environment in (".venv-mcp1", ".cache/clients"):
        assert pinned_versions(environment).keys() <= in_matrix


def test_every_driver_belongs_to_a_client():
    used = {client.driver for client in CLIENTS}
    assert {path.name for path in DRIVERS.glob("*.*")} == used | {"serve.py", "lines.py", "lines.mjs"}


MODES = {"form": "forms", "url": "pages"}


def driven_clients() -> str:
    """Return the table of the clients that the tests drive."""
    rows = [
        "| | version | questions | rounds | rounds without questions | tasks |",
        "|---|---|---|---|---|---|",
        *(_row(client) for client in real_clients()),
    ]
    return "\n".join(rows) + "\n"


def absent_clients() -> str:
    """Return the list of the clients that they do not drive."""
    return _listed("absent")


def tried_clients() -> str:
    """Return the list of the clients that were tried by hand."""
    return _listed("tried")


def _listed(key: str) -> str:
    rows = tomllib.loads((FOLDER / "matrix.toml").read_text("utf-8"))[key]
    return "".join(f"- {row['name']}: {row['entry']}.\n" for row in rows)


def notes() -> str:
    """Return the list of what else a client's user has to know."""
    return "".join(f"- {client.name}: {client.note}.\n" for client in real_clients() if client.note)


def _row(client: RealClient) -> str:
    questions = ", ".join(MODES[mode] for mode in client.asks) or "no"
    rounds = "no limit" if client.max_rounds is None else client.max_rounds or "none"
    follows = "yes" if client.state_only_rounds else "no"
    tasks = "yes" if client.tasks else "no"
    name = f"{client.name} (`{client.package}`)"
    return f"| {name} | {client.version} | {questions} | {rounds} | {follows} | {tasks} |"


TABLES = [driven_clients, notes, absent_clients, tried_clients]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_the_page_about_clients_has_the_tables_of_the_matrix(table):
    assert table() in read_document("docs/reference/clients.md")


def test_the_page_about_connecting_names_the_pinned_applications():
    page = read_document(CONNECTING)
    names = {
        "@anthropic-ai/claude-code": "Claude Code",
        "@github/copilot": "Copilot CLI",
        "@google/gemini-cli": "Gemini CLI",
        "@openai/codex": "Codex",
        "opencode-ai": "opencode",
    }
    pins = pinned_versions(".cache/hosts")
    assert pins.keys() == names.keys()
    for package, version in pins.items():
        assert f"| {names[package]} {version} |" in page


MATRIX = {profile: client for client in CLIENTS for profile in client.profiles.values()}


@pytest.mark.parametrize("name", MATRIX)
def test_a_profile_agrees_with_the_matrix(name):
    client, profile = MATRIX[name], ClientProfile.load(name)
    assert profile.version == client.version
    if profile.is_legacy:
        assert client.initialize
        return
    assert profile.opens_with == client.opens_with
    assert profile.follows_state_only_rounds is client.state_only_rounds
    assert profile.max_rounds == (client.max_rounds or None), "it follows no rounds"
    assert client.tasks or not declares(profile.capabilities, TASKS)
    declared = [mode for mode in MODES if declares(profile.capabilities, ("elicitation", mode))]
    assert (declared if profile.answers_questions else []) == list(client.asks)
