"""Use a front door with the settings of template.yaml; FRONT_DOOR_CATALOG names its catalog file."""

import os
from pathlib import Path

from mcp_roundtrip import FrontDoor

handler = FrontDoor("bench", Path(os.environ["FRONT_DOOR_CATALOG"])).lambda_handler
