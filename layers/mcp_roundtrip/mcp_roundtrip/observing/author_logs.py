"""Give log lines that a tool writes with Powertools' `Logger` the keys of the request.

An on-call engineer searches for a correlation id and expects the tool's own lines, too. All loggers of one
service share a formatter, which adds its keys to each of their lines.

The observer imports this module if the tool has imported Powertools. This package itself never imports
Powertools, because that would slow down the cold starts of all tools.

Source: https://docs.aws.amazon.com/powertools/python/latest/core/logger/ "Appending additional keys"
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from logging import getLogger
from typing import Any


def replace_keys(service: str, removed: Iterable[str], added: Mapping[str, Any]) -> None:
    """Remove keys from the following lines of a service's loggers, and add others."""
    formatter_class = sys.modules["aws_lambda_powertools.logging.formatter"].LambdaPowertoolsFormatter
    # No `Logger` is created: the first one of a service decides the format of all its lines.
    for handler in getLogger(service).handlers:
        if isinstance(handler.formatter, formatter_class):
            handler.formatter.remove_keys(removed)
            handler.formatter.append_keys(**added)
