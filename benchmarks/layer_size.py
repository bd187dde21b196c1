"""Measure the size of the built layer as a zip file."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tables import Target, table

ROOT = Path(__file__).parents[1]
BUILT = (".aws-sam/build/RoundtripLayer", ".cache/sam-build/*/build/RoundtripLayer")
"""The output folders of `make build` and of the tests."""


def zipped_mib() -> dict[str, float]:
    """Return the zipped size in MiB of each built layer, by its folder."""
    found = [path for pattern in BUILT for path in sorted(ROOT.glob(pattern)) if path.is_dir()]
    return {str(path.relative_to(ROOT)): _zipped_size(path) / 2**20 for path in found}


def _zipped_size(folder: Path) -> int:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.writestr(str(path.relative_to(folder)), path.read_bytes())
    return buffer.tell()


def layer_size_table(sizes: Mapping[str, float]) -> str:
    rows = [(path, f"{mib:.2f}") for path, mib in sizes.items()] or [("not built; run make build", "-")]
    return table("Size of the built layer as a zip file, MiB", ("", "MiB"), rows)


def layer_size_targets(sizes: Mapping[str, float]) -> list[Target]:
    return (
        [Target("size of the largest layer as a zip file, MB", max(sizes.values()) * 2**20 / 1e6, 22)]
        if sizes
        else []
    )
