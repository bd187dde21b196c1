"""Run AI applications against the examples, with a scripted model in place of theirs.

    python tests/hosts/run.py [--record FOLDER]

A call that asks nothing, then one that asks. An application that shows questions is answered there; for the
others the user answers on the question page, and the model makes the same call again. Fails if the second
call does not end with the user's answer, or with that of an application that declines by itself. `--record`
writes what each application sent, as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from applications import APPLICATIONS, PACKAGES, Application, environment
from scripted_model import Script, ScriptedModel, ToolCall

from mcp_roundtrip.protocol.constants import META_PROTOCOL_VERSION
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.page_user import answer_page
from support.project import ROOT
from support.recorded_traffic import Recorded, recorded

TIMEOUT_S: Final = 120
CALLS: Final = (
    ToolCall("get_weather", {"location": "Tokyo"}),
    ToolCall("provision_database", {"name": "orders"}),
)
ANSWERS: Final = ("medium", "us-east-1", "Yes")
"""To the three questions of the second call, in their order."""


def main() -> int:
    """Run the command line; return 1 if a call of an application did not end as it should."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="write what each application sent")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these applications")
    options = parser.parse_args()
    if not PACKAGES.exists():
        print("error: the applications are not installed: run make hosts", file=sys.stderr)
        return 2
    problems = 0
    for application in APPLICATIONS:
        if options.names and application.name not in options.names:
            continue
        with recorded(ROOT / "template.yaml", AuthMode="none") as server:
            script, output = run(application, server)
        problem = find_problem(script, application)
        problems += problem is not None
        print(f"{application.name} {application.version}: {describe(script, server)}. {problem or 'passed'}")
        if problem:
            print(output)
        if options.record:
            path = options.record / f"{application.name}.json"
            path.write_text(json.dumps([asdict(each) for each in server.exchanges], indent=1), "utf-8")
    return 1 if problems else 0


def run(application: Application, server: Recorded) -> tuple[Script, str]:
    """Run an application until it ends; return the script with its results, and what was printed."""
    answers = iter(ANSWERS)
    script = Script(CALLS, lambda link: answer_page(link, next(answers)))
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(HttpServer(ScriptedModel(script), max_body=MAX_BODY).start()) as model,
    ):
        home = Path(folder)
        start = application.prepare(home, server.url, model.url)
        done = subprocess.run(
            start.command,
            cwd=home,
            env=environment(start, home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
    return script, done.stdout


def find_problem(script: Script, application: Application) -> str | None:
    """Return what went wrong; None if the first call ended with a result, and the second with the answers."""
    texts = [output.replace('": "', '":"') for output in script.outputs]
    if not texts or '"place":"Tokyo, Japan"' not in texts[0]:
        return "FAILED: the call that asks nothing has no result"
    answered = ('"region":"us-east-1"', '"host":"db-')
    expected = ("The user declined to answer 'size'.",) if application.declines else answered
    if not all(text in texts[-1] for text in expected):
        return f"FAILED: the last result is {texts[-1]!r}"
    return None


def describe(script: Script, server: Recorded) -> str:
    """Return how the application opened, and where the user answered."""
    opening = server.exchanges[0]
    params = opening.body["params"]
    version = params.get("protocolVersion") or params["_meta"][META_PROTOCOL_VERSION]
    asked = any("inputResponses" in exchange.body["params"] for exchange in server.calls())
    channel = "client" if asked else "page" if script.visited else "none"
    return f"{opening.method} {version}, channel {channel}, {len(server.calls())} calls"


if __name__ == "__main__":
    sys.exit(main())
