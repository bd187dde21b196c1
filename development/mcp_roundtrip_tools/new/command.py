"""Write a new application: a tool that asks, its test, template.yaml, platform/, Makefile and README.

The application is ready for `make run`, `make test`, `sam build` and `sam deploy --guided`.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.template.model import PACKAGE, RUNTIMES


class NewApplicationError(McpRoundtripError):
    """The application cannot be written; the message says why. Nothing was written."""


def put_wheel(folder: Path, wheel: Path | None = None) -> Path | None:
    """Put the package's wheel into `folder`; None if it is from an index. Raises NewApplicationError."""
    if wheel is not None:
        return _copy(wheel, folder)
    origin = _origin()
    if origin is None:
        return None
    path = _local_path(origin)
    if path is not None and path.suffix == ".whl":
        return _copy(path, folder)
    return _build(_requirement(origin), folder)


def _origin() -> dict[str, Any] | None:
    """Return the record of PEP 610; None if the package is from an index."""
    text = Distribution.from_name(PACKAGE).read_text("direct_url.json")
    found: dict[str, Any] | None = json.loads(text) if text else None
    return found


def _local_path(origin: dict[str, Any]) -> Path | None:
    url = urlsplit(origin["url"])
    return Path(unquote(url.path)) if url.scheme == "file" else None


def _requirement(origin: dict[str, Any]) -> str:
    """Return the requirement of pip for a folder, an archive or a commit."""
    if "vcs_info" in origin:
        commit = origin["vcs_info"]
        return f"{commit['vcs']}+{origin['url']}@{commit['commit_id']}"
    path = _local_path(origin)
    return str(origin["url"] if path is None else path)


def _copy(wheel: Path, folder: Path) -> Path:
    own = version(PACKAGE)
    if not wheel.name.startswith(f"{PACKAGE.replace('-', '_')}-{own}-"):
        raise NewApplicationError(
            f"{wheel} is no wheel of {PACKAGE} {own}, the version that runs this command"
        )
    if not wheel.is_file():
        raise NewApplicationError(
            f"{wheel} does not exist: name the wheel of {PACKAGE} {own} with --wheel PATH"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(wheel, folder))


def _build(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--wheel-dir", str(folder), requirement]
    # The requirement is what the user has installed.
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    built = list(folder.glob("*.whl"))
    if done.returncode != 0 or not built:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise NewApplicationError(
            f"no wheel can be built from {requirement}: {reason}. Name a wheel with --wheel PATH"
        )
    return built[0]


APPLICATION = Path(__file__).with_name("application") / "{{cookiecutter.project_name}}"
"""The files of an application. `sam init` replaces the same placeholders, with cookiecutter."""

PLATFORM = Path("platform")

CHECKSUMS = "SHA256SUMS"
"""The file in platform/ with the checksums of the others, in the format of sha256sum."""


def package_files() -> dict[str, str]:
    """Return the text of each file of platform/ in this package, by name."""
    return {path.name: path.read_text("utf-8") for path in sorted((APPLICATION / PLATFORM).glob("*.yaml"))}


def checksums(files: Mapping[str, str]) -> str:
    """Return the content of SHA256SUMS."""
    return "".join(f"{_digest(text)}  {name}\n" for name, text in sorted(files.items()))


def edited_files(platform: Path, written: Mapping[str, str]) -> list[str]:
    """Return the files in `platform` that differ from SHA256SUMS, or without it from `written`."""
    sums = platform / CHECKSUMS
    lines = (sums.read_text("utf-8") if sums.is_file() else checksums(written)).splitlines()
    known = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return [
        path.name
        for path in sorted(platform.glob("*.yaml"))
        if known.get(path.name) != _digest(path.read_text("utf-8"))
    ]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


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
        raise NewApplicationError(f"{folder} exists already")
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
