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
from dataclasses import dataclass
from pathlib import Path

from mcp_roundtrip_tools.deploy.target import NATIVE_ARCHITECTURE
from support import skips
from support.project import ROOT

SAM = Path(os.environ.get("SAM", ROOT / ".venv-sam/bin/sam"))
CACHE = ROOT / ".cache"

NATIVE_RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"

MAX_AGE_S = 3600  # another test run may still use an outdated build
IGNORED = {"__pycache__", "mcp_roundtrip.egg-info"}


@dataclass(frozen=True, slots=True)
class Built:
    """The output of `sam build`: `template` and one folder per resource."""

    directory: Path
    runtime: str
    architecture: str

    @property
    def template(self) -> Path:
        return self.directory / "template.yaml"

    @property
    def layer(self) -> Path:
        """Return the folder that becomes /opt. `layer / "python"` is on Lambda's sys.path."""
        return self.directory / "RoundtripLayer"

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
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def sam_build(runtime: str = NATIVE_RUNTIME, architecture: str = NATIVE_ARCHITECTURE) -> Built:
    """Build for `runtime` and `architecture`, or return the cached build of the same sources."""
    target = f"{runtime}-{architecture}"
    directory = CACHE / "sam-build" / f"{target}-{_sources_digest()}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"lock-{target}").open("w") as lock:  # another process may build the same
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _remove_outdated(target)
            _build_into(directory, runtime, architecture)
    return Built(directory / "build", runtime, architecture)


def require_deployed_runtime(runtime: str = NATIVE_RUNTIME) -> None:
    """Skip the test if functions are not deployed on a runtime."""
    if runtime == "python3.11":
        skips.skip(skips.DEPLOYED, runtime)


def build_project(project: Path, directory: Path) -> Built:
    """Build a project into a folder, for this interpreter and architecture."""
    built = Built(directory, NATIVE_RUNTIME, NATIVE_ARCHITECTURE)
    _build(project, built)
    return built


def _build(project: Path, built: Built) -> None:
    require_deployed_runtime(built.runtime)
    parameters = (f"PythonRuntime={built.runtime}", f"Architecture={built.architecture}")
    options = ("--no-cached", "--build-dir", built.directory, "--parameter-overrides", *parameters)
    done = run(SAM, "build", *options, cwd=project)
    assert done.returncode == 0, done.stderr


def _build_into(directory: Path, runtime: str, architecture: str) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="unfinished-") as scratch:
        unfinished = Path(scratch) / "out"
        _build(ROOT, Built(unfinished / "build", runtime, architecture))
        unfinished.rename(directory)


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


def _remove_outdated(target: str) -> None:
    for path in (CACHE / "sam-build").glob(f"{target}-*"):
        if path.stat().st_mtime < time.time() - MAX_AGE_S:
            shutil.rmtree(path, ignore_errors=True)
