"""The tables of docs/guides/connecting.md about the clients of the matrix."""

from __future__ import annotations

import tomllib

from support.real_clients import FOLDER, RealClient, real_clients

MODES = {"form": "forms", "url": "pages"}


def tested_clients() -> str:
    """Return the table of the clients that the tests drive."""
    rows = [
        "| | version | questions | rounds | rounds without questions | tasks |",
        "|---|---|---|---|---|---|",
        *(_row(client) for client in real_clients()),
    ]
    return "\n".join(rows) + "\n"


def absent_clients() -> str:
    """Return the table of the clients that they do not drive."""
    rows = tomllib.loads((FOLDER / "matrix.toml").read_text("utf-8"))["absent"]
    return "\n".join(["| | |", "|---|---|", *(f"| {row['name']} | {row['reason']} |" for row in rows)]) + "\n"


def notes() -> str:
    """Return the list of what else a client's user has to know."""
    per_call = "Opens a session for each call"
    notes = ((client, [per_call] * client.session_per_call + [client.note]) for client in real_clients())
    return "".join(f"- {client.name}: {each}.\n" for client, found in notes for each in filter(None, found))


def _row(client: RealClient) -> str:
    questions = ", ".join(MODES[mode] for mode in client.asks) or "no"
    rounds = "no limit" if client.max_rounds is None else client.max_rounds or "none"
    follows = "yes" if client.state_only_rounds else "no"
    tasks = "yes" if client.tasks else "no"
    name = f"{client.name} (`{client.package}`)"
    return f"| {name} | {client.version} | {questions} | {rounds} | {follows} | {tasks} |"
