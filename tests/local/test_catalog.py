import json
from pathlib import Path

import pytest
from support.functions import FUNCTIONS
from support.throwaway import write_files

from mcp_roundtrip.local.catalog import CatalogError, main, render
