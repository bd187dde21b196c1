"""The source of a new application: the wheel of this package, and the files of its platform."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import Distribution, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.template.model import PACKAGE


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
