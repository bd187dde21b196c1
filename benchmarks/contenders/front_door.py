"""A front door with the settings of template.yaml, before the tool of `ours`: FRONT_DOOR_CATALOG names the
file that says so."""

import os
from pathlib import Path

from mcp_roundtrip import FrontDoor

handler = FrontDoor("bench", Path(os.environ["FRONT_DOOR_CATALOG"])).lambda_handler
