"""Parse YAML in C, because sam does it seven times per deployment, and let sam accept URLs of the emulator.

sam knows the URL of a nested template that it has uploaded by the host names of S3. It packs the layer for
each deployment: compressing it would take three seconds.
"""

import re
import zipfile
from importlib.util import find_spec
from types import SimpleNamespace

import yaml

if yaml.__with_libyaml__:
    vars(yaml)["SafeLoader"] = yaml.CSafeLoader

if find_spec("samcli") is not None:
    from samcli.lib.package import utils  # type: ignore[import-not-found]  # of the interpreter of sam

    utils._S3_URL_REGEXS.append(re.compile(r"http://127\.0\.0\.1:\d+/.+"))
    utils.zipfile = SimpleNamespace(**{**vars(zipfile), "ZIP_DEFLATED": zipfile.ZIP_STORED})
