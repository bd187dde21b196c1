"""Writes platform/SHA256SUMS in an application of `sam init`, as `mcp-roundtrip new` does."""

from hashlib import sha256
from pathlib import Path

FILES = sorted(Path("platform").glob("*.yaml"))
SUMS = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in FILES]
Path("platform/SHA256SUMS").write_text("".join(SUMS), encoding="utf-8")
