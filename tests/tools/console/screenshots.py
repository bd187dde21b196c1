"""Take the screenshots of the console in README and docs.

Run `python tests/tools/console/screenshots.py docs/images`.
They show what `make run` serves. In the first two, each round runs in a new process (`FRESH=1`).
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image  # pip install pillow

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests"))

from mcp_roundtrip_tools.run.serving import serve  # noqa: E402 - after the path
from support.browser import start_browser  # noqa: E402
from support.console_browser import Console, console_of  # noqa: E402

COLOURS = 128
"""A palette makes the files a third as large."""

SIZE = {"width": 1180, "height": 850}

STEPS: tuple[tuple[Any, ...], ...] = (
    # A client that shows forms and nothing else, so that the call does not become a task.
    ("evaluate", "document.querySelectorAll('.client .choice + * :checked').forEach((box) => box.click())"),
    ("open", "#/tools/provision_database"),
    ("fill", "name", "orders"),
    ("fill", "region", "eu-west-1"),
    ("click", "Call"),
    ("wait", ".questions"),
    ("check", "small"),
    ("click", "Accept"),
    ("see", "Keep it?"),
    ("check", "Yes"),
    ("click", "Accept"),
    ("wait", ".result"),
    ("wait", ".round:last-child .environment"),
    ("wait", ".round:last-child .journal-strip"),
    ("evaluate", "document.querySelector('.round:nth-child(2) details').open = true"),
    # The port of `make run`. The pointer is where a button was.
    ("evaluate", "document.getElementById('endpoint').textContent = 'http://127.0.0.1:3000/mcp'"),
    ("evaluate", "document.activeElement.blur()"),
    ("evaluate", "window.scrollTo(0, document.querySelector('.call').offsetTop - 70)"),
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


def main(folder: Path) -> None:
    """Take the screenshots."""
    serve_examples = partial(
        serve, ROOT / "template.yaml", parameters={"AuthMode": "none"}, log=lambda line: None
    )
    with start_browser() as ask:
        for scheme in ("light", "dark"):
            with serve_examples(fresh=True) as app:
                path = folder.resolve() / f"console-{scheme}.png"
                take(console_of(ask, f"{app.console_url}"), scheme, path)

    with start_browser() as ask, serve_examples() as app:
        os.environ["DATABASES_TAKE_S"] = "4"  # as in make run: the time in which the worker is killed
        take_workers(console_of(ask, f"{app.console_url}"), folder.resolve() / "console-workers-light.png")


def take_workers(console: Console, path: Path) -> None:
    """Show a killed worker of a task, and the one that replays."""
    options = {"colorScheme": "light", "viewport": {"width": 1240, "height": 938}, "deviceScaleFactor": 2}
    console("#/tools/provision_database", *WORKERS, ("screenshot", str(path), ".workers"), options=options)
    shrink(path)


def take(console: Console, scheme: str, path: Path) -> None:
    options = {"colorScheme": scheme, "viewport": SIZE, "deviceScaleFactor": 2}
    console("#/client", *STEPS, ("screenshot", str(path)), options=options)
    shrink(path)


def shrink(path: Path) -> None:
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
