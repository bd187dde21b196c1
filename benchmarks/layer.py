"""The built layer, zipped as Lambda gets it."""

import io
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = (".aws-sam/build/RoundtripLayer", ".cache/sam-build/*/build/RoundtripLayer")
"""Where `make build` and the tests leave it."""


def zipped_mib() -> dict[str, float]:
    """MiB of each layer that is built, by the folder it lies in; empty when none is."""
    found = [path for pattern in BUILT for path in sorted(ROOT.glob(pattern)) if path.is_dir()]
    return {str(path.relative_to(ROOT)): _size(path) / 2**20 for path in found}


def _size(folder: Path) -> int:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.writestr(str(path.relative_to(folder)), path.read_bytes())
    return buffer.tell()
