"""Read and write YAML in C, as sam does often in each deployment, and let sam accept URLs of the emulator.

sam knows the URL of a nested template that it has uploaded by the host names of S3. It packs the layer for
each deployment: compressing it would take three seconds. And it validates the policy templates of its own
package each time that it reads a template.
"""

import re
import zipfile
from importlib.util import find_spec
from types import SimpleNamespace

import yaml

if yaml.__with_libyaml__:

    class SafeDumper(yaml.CSafeDumper):
        """The emitter in C takes text only, and the translator of sam has numbers as names of responses."""

        def represent_scalar(self, tag, value, style=None):  # type: ignore[no-untyped-def]
            return super().represent_scalar(tag, str(value), style)

    vars(yaml).update(SafeLoader=yaml.CSafeLoader, SafeDumper=SafeDumper)

if find_spec("samcli") is not None:
    from samcli.lib.package import utils  # type: ignore[import-not-found]  # of the interpreter of sam
    from samtranslator.policy_template_processor.processor import (  # type: ignore[import-not-found]
        PolicyTemplatesProcessor,
    )

    utils._S3_URL_REGEXS.append(re.compile(r"http://127\.0\.0\.1:\d+/.+"))
    utils.zipfile = SimpleNamespace(**{**vars(zipfile), "ZIP_DEFLATED": zipfile.ZIP_STORED})
    PolicyTemplatesProcessor._is_valid_templates_dict = lambda *_: True
