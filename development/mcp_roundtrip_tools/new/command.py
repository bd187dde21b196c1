"""Write a new application: a tool that asks, its test, template.yaml, platform/, Makefile and README.

The application is ready for `make run`, `make test`, `sam build` and `sam deploy --guided`.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from mcp_roundtrip_tools.new.package_source import (
    APPLICATION,
    CHECKSUMS,
    PLATFORM,
    NewApplicationError,
    checksums,
    package_files,
    put_wheel,
)
from mcp_roundtrip_tools.template.model import PACKAGE, RUNTIMES

ARCHITECTURES = ("arm64", "x86_64")

MAX_NAME = 64 - len("-prod_server_worker")
"""The longest name of a function has 64 characters, and the stack of production is `<name>-prod`."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PIN = re.compile(rf"^{PACKAGE}==\S+$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Raises NewApplicationError and OSError."""
    given = _parser().parse_args(arguments)
    folder = Path(given.name)
    write_application(folder, given.runtime, given.architecture, given.wheel)
    print(f"""\
{folder}/functions/server/app.py has the tool order_status.
template.yaml is for {given.runtime} on {given.architecture}.

  cd {folder}
  make run     serves it on http://127.0.0.1:3000/mcp
  make test    runs its tests
  make deploy  deploys it to AWS""")
    return 0


def write_application(folder: Path, runtime: str, architecture: str, wheel: Path | None = None) -> None:
    """Write an application into a new folder of its name. Raises NewApplicationError and OSError.

    `wheel` is that of this package; by default the one it was installed from. An error leaves nothing.
    """
    if runtime not in RUNTIMES:
        raise NewApplicationError(
            f"functions are deployed on {', '.join(RUNTIMES[:-1])} and {RUNTIMES[-1]}, not on {runtime}"
        )
    name = folder.resolve().name
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise NewApplicationError(
            f"{name!r} must be at most {MAX_NAME} lower-case letters, digits and single hyphens between "
            "them, and begin with a letter: it becomes the name of the stack"
        )
    if folder.exists():
        raise NewApplicationError(
            f"{folder} exists already: name another folder. To add a server to an existing application, see "
            "docs/guides/existing-application.md"
        )
    folder.mkdir(parents=True)
    try:
        own_wheel = put_wheel(folder / "layer/wheels", wheel)
        for path, text in render(name, runtime, architecture, own_wheel).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder)
        raise


def render(name: str, runtime: str, architecture: str, wheel: Path | None = None) -> dict[Path, str]:
    """Return the files of an application by their paths.

    It installs `wheel` by its path: pip would prefer one of an index with a build tag, of the same version.
    """
    values = {
        "project_name": name,
        "runtime": runtime,
        "architectures.value[0]": architecture,
    }
    paths = (path for path in sorted(APPLICATION.rglob("*")) if path.is_file())
    files = {
        path.relative_to(APPLICATION): _substitute(path.read_text("utf-8"), values)
        for path in paths
        if "__pycache__" not in path.parts
    }
    pinned = Path("layer/requirements.txt")
    requirement = f"{PACKAGE}=={version(PACKAGE)}" if wheel is None else f"./layer/wheels/{wheel.name}"
    return {
        **files,
        pinned: _PIN.sub(requirement, files[pinned]),
        PLATFORM / CHECKSUMS: checksums(package_files()),
    }


def _substitute(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{{ cookiecutter.{name} }}}}", value)
    return text


def default_runtime(python: str) -> str:
    """Return the runtime for an author with this Python, such as ``3.12``."""
    return f"python{python}" if f"python{python}" in RUNTIMES else "python3.13"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mcp-roundtrip new", description=__doc__)
    parser.add_argument("name", help="the folder of the application; its name is also the stack's")
    parser.add_argument(
        "--runtime",
        default=default_runtime(f"{sys.version_info.major}.{sys.version_info.minor}"),
        help="the Lambda runtime; its Python builds the layer on this computer (default: %(default)s)",
    )
    parser.add_argument("--architecture", choices=ARCHITECTURES, default="arm64", help="default: %(default)s")
    parser.add_argument(
        "--wheel", type=Path, help=f"the wheel of {PACKAGE} (default: the one it was installed from)"
    )
    return parser
