"""Take the screenshots of the console in README and docs.

Run `python tests/tools/console/screenshots.py docs/images`.
The tool is the README's. Each round runs in a new process, as with `make run FRESH=1`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image  # pip install pillow

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests"))

from mcp_roundtrip_tools.run import serve  # noqa: E402 - after the path
from support.browser import find_chromium, start_browser  # noqa: E402
from support.console_browser import Console, console_of  # noqa: E402

README = ROOT / "README.md"
APPLICATION = Path(__file__).with_name("application")
EXAMPLES = ("provision", "summarize", "weather", "work_items")
COLOURS = 128
"""A palette makes the files a third as large."""

SIZE = {"width": 1180, "height": 938}

STEPS: tuple[tuple[Any, ...], ...] = (
    ("fill", "name", "orders"),
    ("click", "Call"),
    ("wait", ".questions"),
    ("fill", "vcpus", "4"),
    ("click", "Accept"),
    ("see", "Create it?"),
    ("check", "Yes"),
    ("click", "Accept"),
    ("wait", ".result"),
    ("wait", ".round:last-child .environment"),
    ("wait", ".round:last-child .journal-strip"),
    # The port of `make run`. The pointer is where a button was.
    ("evaluate", "document.getElementById('endpoint').textContent = 'http://127.0.0.1:3000/mcp'"),
    ("evaluate", "document.activeElement.blur()"),
    ("evaluate", "window.scrollTo(0, 0)"),
)


WORKERS: tuple[tuple[Any, ...], ...] = (
    ("fill", "name", "orders"),
    ("fill", "region", "eu-west-1"),
    ("click", "Call"),
    ("wait", ".questions"),
    ("check", "small"),
    ("click", "Accept"),
    ("see", "Keep it?"),
    ("check", "Yes"),
    ("click", "Accept"),
    ("see", "Activating orders"),
    ("click", "Kill this worker now"),
    ("click", "Do not wait for the lease"),
    ("wait", ".result"),
    ("evaluate", "location.hash = document.querySelector('.became-task a').hash"),
    ("wait", ".task > .task-body .result"),
)


def write_application(folder: Path) -> Path:
    """Write an application with the README's tool and some of the examples; return its template."""
    [code] = re.findall(r"^## A tool\n.*?^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    functions = folder / "functions"
    shutil.copytree(APPLICATION / "functions/front_door", functions / "front_door")
    front_door = functions / "front_door/app.py"
    front_door.write_text(front_door.read_text().replace("Console tests", "mcp-roundtrip examples"))
    (functions / "databases").mkdir()
    (functions / "databases/app.py").write_text(code)
    template = (APPLICATION / "template.yaml").read_text().partition("  Tools:\n")[0]
    names = {"databases": "databases", **{name: name for name in EXAMPLES}}
    for name in EXAMPLES:
        shutil.copytree(ROOT / "functions" / name, functions / name)
    for name in names:
        template += f"  {name.title().replace('_', '')}:\n    Type: AWS::Serverless::Function\n"
        template += f"    Properties: {{FunctionName: {name}, CodeUri: functions/{name}}}\n"
    owners = ", ".join(f'"{name}": "${{{name.title().replace("_", "")}.Arn}}"' for name in names)
    template = re.sub(r"!Sub '.*'", lambda _: f"!Sub '{{{owners}}}'", template)
    path = folder / "template.yaml"
    path.write_text(template)
    return path


def main(folder: Path) -> None:
    """Take the screenshots."""
    with TemporaryDirectory() as written, start_browser(find_chromium()) as ask:
        template = write_application(Path(written))
        for scheme in ("light", "dark"):
            with serve(template, fresh=True, log=lambda line: None) as app:
                take(
                    console_of(ask, f"{app.console_url}"), scheme, folder.resolve() / f"console-{scheme}.png"
                )

    with (
        start_browser(find_chromium()) as ask,
        serve(ROOT / "template.yaml", parameters={"AuthMode": "none"}, log=lambda line: None) as app,
    ):
        os.environ["DATABASES_TAKE_S"] = "4"  # as in make run: the time in which the worker is killed
        take_workers(console_of(ask, f"{app.console_url}"), folder.resolve() / "console-workers-light.png")


def take_workers(console: Console, path: Path) -> None:
    """Show a killed worker of a task, and the one that replays."""
    options = {"colorScheme": "light", "viewport": {"width": 1240, "height": 938}, "deviceScaleFactor": 2}
    console("#/tools/provision_database", *WORKERS, ("screenshot", str(path), ".workers"), options=options)
    shrink(path)


def take(console: Console, scheme: str, path: Path) -> None:
    options = {"colorScheme": scheme, "viewport": SIZE, "deviceScaleFactor": 2}
    console("#/tools/new_database", *STEPS, ("screenshot", str(path)), options=options)
    shrink(path)


def shrink(path: Path) -> None:
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
