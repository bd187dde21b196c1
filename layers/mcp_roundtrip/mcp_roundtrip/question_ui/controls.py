"""Render the controls of fields with labels, hints and errors, and the address of a URL question."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from mcp_roundtrip.question_ui.fields import (
    ChoiceField,
    DateTimeField,
    FormField,
    MultipleChoiceField,
    NumberField,
    TextField,
)

MAX_RADIOS: Final = 7
MAX_LINE: Final = 120
"""More choices become a drop-down list, and a text that may be longer gets several lines."""

_INPUT_TYPES: Final = {"email": "email", "uri": "url", "date": "date"}

_OFFSETS: Final = (
    *("-12:00", "-11:00", "-10:00", "-09:30", "-09:00", "-08:00", "-07:00", "-06:00", "-05:00", "-04:00"),
    *("-03:30", "-03:00", "-02:00", "-01:00", "+00:00", "+01:00", "+02:00", "+03:00", "+03:30", "+04:00"),
    *("+04:30", "+05:00", "+05:30", "+05:45", "+06:00", "+06:30", "+07:00", "+08:00", "+08:45", "+09:00"),
    *("+09:30", "+10:00", "+10:30", "+11:00", "+12:00", "+12:45", "+13:00", "+14:00"),
)
"""The offsets from UTC that are in use (tz database)."""


def element_id(name: str) -> str:
    """Return the id of the first input of a control."""
    return "f" + name.replace(".", "-")


def render_control(field: FormField, values: Sequence[str], error: str) -> str:
    name = field.name
    hints = [each for each in (field.description, field.hint()) if each]
    title = escape(field.title) + ("" if field.required else ' <span class="optional">(optional)</span>')
    if (inputs := _grouped_inputs(field, values)) is not None:
        return render_group(name, title, hints, inputs, error)
    texts, attributes = _texts(name, hints, error)
    attributes += _required(field) + (' aria-invalid="true"' if error else "")
    control = _single_input(field, values, attributes)
    label_tag = f'<label class="label" for="{element_id(name)}" dir="auto">{title}</label>'
    return f'<div class="{_css(error)}">{label_tag}{texts}{control}</div>'


def render_group(name: str, title: str, hints: Sequence[str], inputs: str, error: str) -> str:
    """Return several inputs with one name; `title` is markup."""
    texts, attributes = _texts(name, hints, error)
    legend = f'<legend dir="auto">{title}</legend>'
    return f'<fieldset class="{_css(error)}"{attributes}>{legend}{texts}{inputs}</fieldset>'


def _css(error: str) -> str:
    return "field invalid" if error else "field"


def _texts(name: str, hints: Sequence[str], error: str) -> tuple[str, str]:
    """Return markup of the hints and the error, and the attribute that refers to it."""
    html_id = element_id(name)
    texts = {f"{html_id}-h{number}": ("hint", hint) for number, hint in enumerate(hints)}
    if error:
        texts[f"{html_id}-e"] = ("error", f"Error: {error}")
    markup = "".join(
        f'<p class="{css}" id="{text_id}" dir="auto">{escape(text)}</p>'
        for text_id, (css, text) in texts.items()
    )
    return markup, f' aria-describedby="{" ".join(texts)}"' if texts else ""


def render_boxes(
    kind: str, name: str, options: Iterable[tuple[str, str]], chosen: Collection[str], attributes: str = ""
) -> str:
    """Return a radio button or check box for each (value, title). Errors link to the first one."""
    own_id = f' id="{element_id(name)}"'
    parts: list[str] = []
    for value, title in options:
        checked = " checked" if value in chosen else ""
        parts.append(
            f'<label class="option"><input type="{kind}" name="{name}" value="{value}"'
            f'{own_id}{checked}{attributes}><span dir="auto">{escape(title)}</span></label>'
        )
        own_id = ""
    return "".join(parts)


def _required(field: FormField) -> str:
    return " required" if field.required else ""


def _grouped_inputs(field: FormField, values: Sequence[str]) -> str | None:
    """Return the inputs of a field that has several; None for a field with one."""
    name = field.name
    if isinstance(field, MultipleChoiceField):
        boxes = render_boxes("checkbox", name, _positions(field.options), frozenset(values))
        return f'<div class="options">{boxes}</div>'
    if isinstance(field, ChoiceField) and len(field.options) <= MAX_RADIOS:
        none = [] if field.required else [("", "No answer")]
        options = [*_positions(field.options), *none]
        return render_boxes("radio", name, options, values or ("",), _required(field))
    if isinstance(field, DateTimeField):
        local, offset = values if len(values) == 2 else ("", "+00:00")
        offsets = _OFFSETS if offset in _OFFSETS else (*_OFFSETS, offset)
        options = [(each, f"UTC{each}") for each in offsets]
        time = f'id="{element_id(name)}" value="{escape(local)}"{_required(field)}'
        return (
            f'<input type="datetime-local" step="any" name="{name}" aria-label="Date and time" {time}>'
            f'<select name="{name}" aria-label="Time zone">{_options(options, offset)}</select>'
        )
    return None


def _single_input(field: FormField, values: Sequence[str], attributes: str) -> str:
    value = values[0] if values else ""
    attributes = f'name="{field.name}" id="{element_id(field.name)}"{attributes}'
    if isinstance(field, ChoiceField):
        empty = "Choose\N{HORIZONTAL ELLIPSIS}" if field.required else "No answer"
        return f"<select {attributes}>{_options([('', empty), *_positions(field.options)], value)}</select>"
    if isinstance(field, NumberField):
        mode = "numeric" if field.is_integer and (field.minimum or -1) >= 0 else "decimal"
        return f'<input type="text" inputmode="{mode}" value="{escape(value)}" dir="ltr" {attributes}>'
    if isinstance(field, TextField) and _is_one_line(field, value):
        kind = _INPUT_TYPES.get(field.format or "", "text")
        return f'<input type="{kind}" value="{escape(value)}" dir="auto" {attributes}>'
    return f'<textarea rows="3" dir="auto" {attributes}>\n{escape(value)}</textarea>'


def _is_one_line(field: TextField, value: str) -> bool:
    is_short = field.max_length is not None and field.max_length <= MAX_LINE
    return field.format is not None or (is_short and "\n" not in value)


def _positions(options: Iterable[tuple[str | bool, str]]) -> list[tuple[str, str]]:
    return [(str(position), title) for position, (_, title) in enumerate(options)]


def _options(options: Iterable[tuple[str, str]], chosen: str) -> str:
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(title)}</option>'
        for value, title in options
    )


# A parser drops or replaces them; as references, U+0080 to U+009F would be read as Windows-1252.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    r"""Return ASCII markup for a text: element content, or the value of a quoted attribute.

    A backslash is escaped because HttpResponse replaces the escapes of lone surrogates.
    """
    printable = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    escaped = html.escape(printable).replace("\\", "&#92;")
    return escaped.encode("ascii", "xmlcharrefreplace").decode("ascii")


# Browsers remove some of them from a URL, so that another host could follow.
_NOT_IN_URLS: Final = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
# Python's codec (IDNA 2003) maps them to other names than browsers do (UTS #46).
_DEVIATIONS: Final = re.compile("[\u00df\u1e9e\u03c2\u200c\u200d]")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
# Browsers read every host with a numeric last label as an IPv4 address: 0x7f.1 is 127.0.0.1.
_NUMERIC: Final = re.compile(r"(?:^|\.)(?:0x[0-9a-f]*|[0-9]+)\.?$")
_DOTTED: Final = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_RESERVED: Final = "!#$%&'()*+,/:;=?@[]~"


class WebAddress(Struct, frozen=True):
    """A URL that a user can judge (client/elicitation, "Safe URL Handling"), in ASCII. `host` has a port."""

    url: str
    host: str


def parse_web_address(url: str) -> WebAddress | None:
    """Return a web address; None for any other URL, which is shown as text only."""
    if not _WEB.match(url) or _NOT_IN_URLS.search(url):
        return None
    # As browsers read it: "https://evil.example\@bank.example" leads to evil.example.
    url = url.replace("\\", "/")
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
        user, _, _ = parts.netloc.rpartition("@")
        host = _ascii_host(parts.hostname or "")
    except ValueError:  # UnicodeError, too
        return None
    if not _HOST.fullmatch(host) or (_NUMERIC.search(host) and not _DOTTED.fullmatch(host)):
        return None
    shown = (f"[{host}]" if ":" in host else host) + port
    credentials = f"{quote(user, safe=_RESERVED)}@" if user else ""
    rest = url[len(parts.scheme) + len("://") + len(parts.netloc) :]
    return WebAddress(f"{parts.scheme.lower()}://{credentials}{shown}{quote(rest, safe=_RESERVED)}", shown)


def _ascii_host(name: str) -> str:
    """Return a host name in punycode. Raises UnicodeError for one that browsers read differently."""
    if _DEVIATIONS.search(name):
        raise UnicodeError
    return name.encode("idna").decode("ascii")
