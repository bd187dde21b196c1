"""`sam build` of this project, cached in .cache/sam-build by a digest of all inputs."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from support import interpreters, skips
from support.project import ROOT

SAM = Path(os.environ.get("SAM", ROOT / ".venv-sam/bin/sam"))
CACHE = ROOT / ".cache"

NATIVE_RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"

MAX_AGE_S = 3600  # another test run may still use an outdated build
IGNORED = {"__pycache__"}


@dataclass(frozen=True, slots=True)
class Built:
    """The output of `sam build`: `template` and one folder per resource.

    `layer` is the folder that becomes /opt. `layer / "python"` is on Lambda's sys.path.
    """

    directory: Path
    layer: Path
    runtime: str = NATIVE_RUNTIME
    architecture: str = NATIVE_ARCHITECTURE

    @property
    def template(self) -> Path:
        return self.directory / "template.yaml"

    def function(self, logical_id: str) -> Path:
        """Return the folder that becomes /var/task."""
        return self.directory / logical_id


def environment() -> dict[str, str]:
    """Return the environment for sam: this interpreter first, no outer make, no AWS account, no telemetry."""
    dropped = ("MAKE", "MFLAGS", "AWS_", "PYTHON", "SAM_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    interpreters = [str(Path(sys.executable).parent), sysconfig.get_config_var("BINDIR")]
    return inherited | {
        "PATH": os.pathsep.join([*interpreters, inherited.get("PATH", os.defpath)]),
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(CACHE / "sam-cli"),
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `environment()` with these variables. Any exit status is returned."""
    env = environment() | variables
    return interpreters.run(*command, cwd=cwd, env=env)


def sam_build() -> Built:
    """Build for this interpreter and architecture, or return the cached build of the same sources."""
    directory = cached(f"{NATIVE_RUNTIME}-{NATIVE_ARCHITECTURE}", _build)
    return Built(directory, directory / "RoundtripLayer")


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` creates from the sources of the layer, the functions and the templates.

    `build` is called once for the same sources by all processes.
    """
    directory = CACHE / "sam-build" / f"{name}-{_sources_digest()}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"lock-{name}").open("w") as lock:  # another process may build the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _remove_outdated(name)
            with tempfile.TemporaryDirectory(dir=directory.parent, prefix="unfinished-") as scratch:
                build(unfinished := Path(scratch) / "out")
                unfinished.rename(directory)
    return directory


def require_deployed_runtime() -> None:
    if NATIVE_RUNTIME == "python3.11":
        skips.skip(skips.DEPLOYED, NATIVE_RUNTIME)


def _build(directory: Path) -> None:
    require_deployed_runtime()
    parameters = (f"PythonRuntime={NATIVE_RUNTIME}", f"Architecture={NATIVE_ARCHITECTURE}")
    options = ("--no-cached", "--build-dir", directory, "--parameter-overrides", *parameters)
    done = run(SAM, "build", *options)
    assert done.returncode == 0, done.stderr


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(_sources()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _sources() -> list[Path]:
    folders = [path for name in ("layers", "functions") for path in (ROOT / name).rglob("*")]
    files = [path for path in folders if path.is_file() and not IGNORED.intersection(path.parts)]
    templates = [ROOT / "template.yaml", *(ROOT / "platform").glob("*.yaml")]
    return [*files, *templates, ROOT / "samconfig.toml"]


def _remove_outdated(name: str) -> None:
    for path in (CACHE / "sam-build").glob(f"{name}-*"):
        if path.stat().st_mtime < time.time() - MAX_AGE_S:
            shutil.rmtree(path, ignore_errors=True)
