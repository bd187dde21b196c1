"""Parse YAML in C, because sam does it seven times per deployment, and let sam accept URLs of the emulator.

sam knows the URL of a nested template that it has uploaded by the host names of S3.
"""

import re
from importlib.util import find_spec

import yaml

if yaml.__with_libyaml__:
    vars(yaml)["SafeLoader"] = yaml.CSafeLoader

if find_spec("samcli") is not None:
    from samcli.lib.package import utils  # type: ignore[import-not-found]  # of the interpreter of sam

    utils._S3_URL_REGEXS.append(re.compile(r"http://127\.0\.0\.1:\d+/.+"))
