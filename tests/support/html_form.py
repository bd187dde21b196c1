"""A form as a browser reads it from HTML, and the body that it posts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

VOID = {"meta", "input", "link", "br"}


@dataclass
class Element:
    """An element with its text content."""

    tag: str
    attributes: dict[str, str | None]
    parent: Element | None
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def __iter__(self) -> Iterator[Element]:
        """Iterate over the element and its descendants, in the order of the document."""
        yield self
        for child in self.children:
            yield from child

    def find(self, tag: str, **attributes: str) -> list[Element]:
        return [each for each in self if each.tag == tag and attributes.items() <= each.attributes.items()]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.current = Element("#document", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is repeated"
        element = Element(tag, dict(attrs), self.current)
        self.current.children.append(element)
        if tag not in VOID:
            self.current = element

    def handle_endtag(self, tag: str) -> None:
        assert self.current.tag == tag, f"{tag} ends in {self.current.tag}"
        assert self.current.parent is not None
        self.current = self.current.parent

    def handle_data(self, data: str) -> None:
        element: Element | None = self.current
        while element is not None:
            element.text += data
            element = element.parent


def parse(html: str) -> Element:
    """Return the document. Asserts that its elements are closed in order."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.current is parser.root
    return parser.root


class BrowserForm:
    """The only form of a page, with what a user has entered."""

    def __init__(self, html: str) -> None:
        self.document = parse(html)
        [self.form] = self.document.find("form")
        self.controls = [each for each in self.form if each.tag in ("input", "select", "textarea")]
        self.values: dict[int, str] = {}
        self.chosen: set[int] = set()
        for each in self.controls:
            self._start(each)

    def _start(self, each: Element) -> None:
        kind = each.attributes.get("type")
        if each.tag == "select":
            options = each.find("option")
            selected = [option for option in options if "selected" in option.attributes] or options[:1]
            self.values[id(each)] = selected[-1].attributes["value"] or ""
        elif each.tag == "textarea":
            self.values[id(each)] = each.text.removeprefix("\n")
        else:
            self.values[id(each)] = each.attributes.get("value") or ""
            if kind in ("radio", "checkbox") and "checked" in each.attributes:
                self.chosen.add(id(each))

    def named(self, name: str) -> list[Element]:
        return [each for each in self.controls if each.attributes.get("name") == name]

    def enter(self, name: str, *values: str) -> None:
        """Type or select one value in each input of this name, in their order."""
        for each, value in zip(self.named(name), values, strict=True):
            if each.tag == "select":
                assert value in [option.attributes["value"] for option in each.find("option")]
            self.values[id(each)] = value

    def choose(self, name: str, values: Iterable[str]) -> None:
        """Choose exactly the radio buttons, check boxes or the option with these values."""
        controls = self.named(name)
        if controls[0].tag == "select":
            [value] = values
            self.enter(name, value)
            return
        wanted = set(values)
        assert wanted <= {self.values[id(each)] for each in controls}
        for each in controls:
            (self.chosen.add if self.values[id(each)] in wanted else self.chosen.discard)(id(each))

    def label(self, name: str) -> str:
        first = self.named(name)[0]
        if labels := self.document.find("label", **{"for": first.attributes["id"] or ""}):
            return labels[0].text
        element: Element | None = first
        while element is not None and element.tag != "fieldset":
            element = element.parent
        assert element is not None
        return element.find("legend")[0].text

    def body(self, action: str = "accept") -> str:
        """Return what a browser posts after a click on the button with this action."""
        assert self.form.find("button", name="action", value=action)
        pairs: list[tuple[str, str]] = []
        for each in self.controls:
            if each.attributes.get("type") in ("radio", "checkbox") and id(each) not in self.chosen:
                continue
            value = self.values[id(each)]
            if each.tag == "input" and each.attributes.get("type") != "hidden":
                assert "\n" not in value, "a single line cannot hold a line break"
            pairs.append((each.attributes["name"] or "", value.replace("\n", "\r\n")))
        return urlencode([*pairs, ("action", action)])
