"""Escape text for HTML."""

from __future__ import annotations

import html
import re
from typing import Final

# A parser drops or replaces them; as references, U+0080 to U+009F would be read as Windows-1252.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    r"""Return ASCII markup for a text: element content, or the value of a quoted attribute.

    A backslash is escaped because a response replaces the escapes of lone surrogates in its body.
    """
    printable = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    escaped = html.escape(printable).replace("\\", "&#92;")
    return escaped.encode("ascii", "xmlcharrefreplace").decode("ascii")
