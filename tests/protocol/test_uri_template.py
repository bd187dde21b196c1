"""URI templates read backwards: RFC 6570's own examples, and laws against another's expansion."""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import pytest
import uritemplate
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.uri_template import UriIndex, UriTemplate

VALUES = {
    "var": "value", "hello": "Hello World!", "half": "50%", "dub": "me/too", "who": "fred", "empty": "",
    "base": "http://example.com/home/", "path": "/foo/bar", "v": "6", "x": "1024", "y": "768",
}  # fmt: skip

SECTION_3_2 = [
    # 3.2.2 Simple String Expansion
    ("{var}", "value"), ("{hello}", "Hello%20World%21"), ("{half}", "50%25"), ("{x,y}", "1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"), ("?{x,empty}", "?1024,"),
    # 3.2.3 Reserved Expansion
    ("{+var}", "value"), ("{+hello}", "Hello%20World!"), ("{+half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    ("{+base}index", "http://example.com/home/index"),
    ("{+path}/here", "/foo/bar/here"), ("here?ref={+path}", "here?ref=/foo/bar"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"), ("{+path,x}/here", "/foo/bar,1024/here"),
    # 3.2.4 Fragment Expansion
    ("{#var}", "#value"), ("{#hello}", "#Hello%20World!"), ("{#half}", "#50%25"), ("foo{#empty}", "foo#"),
    ("foo{#undef}", "foo"), ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    # 3.2.5 Label Expansion with Dot-Prefix
    ("{.who}", ".fred"), ("{.half,who}", ".50%25.fred"), ("X{.var}", "X.value"), ("X{.empty}", "X."),
    ("X{.undef}", "X"),
    # 3.2.6 Path Segment Expansion
    ("{/who}", "/fred"), ("{/half,who}", "/50%25/fred"), ("{/who,dub}", "/fred/me%2Ftoo"),
    ("{/var}", "/value"),
    ("{/var,empty}", "/value/"), ("{/var,x}/here", "/value/1024/here"),
    # 3.2.7 Path-Style Parameter Expansion
    ("{;who}", ";who=fred"), ("{;half}", ";half=50%25"), ("{;empty}", ";empty"),
    ("{;v,empty,who}", ";v=6;empty;who=fred"), ("{;v,bar,who}", ";v=6;who=fred"), ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"), ("{;x,y,undef}", ";x=1024;y=768"),
    # 3.2.8 Form-Style Query Expansion
    ("{?who}", "?who=fred"), ("{?half}", "?half=50%25"), ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="), ("{?x,y,undef}", "?x=1024&y=768"),
    # 3.2.9 Form-Style Query Continuation
    ("{&who}", "&who=fred"), ("{&half}", "&half=50%25"), ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="), ("{&x,y,undef}", "&x=1024&y=768"),
]  # fmt: skip
"""The examples of RFC 6570 §3.2 whose values are strings that can be read back."""


@pytest.mark.parametrize(("template", "uri"), SECTION_3_2)
def test_the_rfcs_examples_are_read_back(template: str, uri: str) -> None:
    parsed = UriTemplate.parse(template)
    assert parsed.match(uri) == {name: VALUES[name] for name in parsed.variables if name in VALUES}
    assert uritemplate.expand(template, VALUES) == uri


@pytest.mark.parametrize(
    "template",
    [
        # RFC 6570 §3.2: lists, beginnings, repetitions, and a boundary nobody can find
        "{count*}", "{/list*}", "{?keys*}", "{var:3}", "{+path:6}/here", "{/list*,path:4}", "{/who,who}",
        "{/var:1,var}",
        "up{+path}{var}/here", "{a}{b}", "{a}{+b}", "{/a}{b}", "{#a}{b}", "{a}{/b}{c}", "{;a}{b}", "{?a}{b}",
        # a query that does not come last
        "{?a}/b", "{?a}{?b}", "{&a}{?b}", "{?a}{;b}", "{?a}&b=1", "{?a}{/b}",
        # the suite of uri-templates/uritemplate-test: what every implementation has to refuse
        "{/id*", "/id*}", "{/?id}", "{var:prefix}", "{hello:2*}", "{??hello}", "{!hello}", "{=path}",
        "{$var}",
        "{|var*}", "{*keys?}", "{?empty=default,var}", "{var}{-prefix|/-/|var}",
        "?q={searchTerms}&amp;c={example:color?}", "x{?empty|foo=none}", "/h{#hello+}", "/h#{hello+}",
        "{keys:1}",
        "?{-join|&|var,list}", "/people/{~thing}", "/sparql{?query){&default-graph-uri*}",
        "/resolution{?x, y}",
        # names, braces, characters
        "{}", "{+}", "{a,}", "{,a}", "{ a}", "{a..b}", "{.}", "{a.}", "{%61}", "{é}", "{a}/{a}", "{a}{?a}",
        "{,}",
        "}", "{", "{a", "a}", "{{a}}", "{@a}", "a b", "a\n", 'a"', "a<b>", "a\\b", "a|b", "a%", "a%zz",
        "\ud800",
    ],
)  # fmt: skip
def test_what_cannot_be_read_back_is_refused(template: str) -> None:
    with pytest.raises(DefinitionError):
        UriTemplate.parse(template)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
        ("a://{id}", "a://a%2Fb", {"id": "a/b"}),
        ("a://{id}", "a://%25", {"id": "%"}),
        ("a://{id}", "a://%252F", {"id": "%2F"}),
        ("a://{id}", "a://%C3%A9", {"id": "é"}),
        ("a://{id}", "a://é", {"id": "é"}),
        ("a://é/{id}", "a://%c3%a9/1", {"id": "1"}),
        ("a://x%2fy/{id}", "a://x%2Fy/1", {"id": "1"}),
        ("a:/{+path}", "a:/x/y%2Fz?q=1#f", {"path": "x/y/z?q=1#f"}),
        ("a:/{+path}{?q}", "a:/x/y?q=a/b", {"path": "x/y", "q": "a/b"}),
        ("a:/{+path}{?q}{#f}", "a:/x#?q=1", {"path": "x", "f": "?q=1"}),
        ("a:/{+path}{.ext}", "a:/x.tar/y.tar.gz", {"path": "x.tar/y.tar", "ext": "gz"}),
        ("a:/{+path}/{id}", "a:/x/y/z", {"path": "x/y", "id": "z"}),
        ("{a}-{b}", "x-y-z", {"a": "x-y", "b": "z"}),
        ("prefix-{id}", "prefix-prefix-1", {"id": "prefix-1"}),
        ("{/a}{/b}", "/x", {"a": "x"}),
        ("{/a}{/b}", "/x/y", {"a": "x", "b": "y"}),
        ("{;key}{;keys}", ";keys=1", {"keys": "1"}),
        ("{;key}", ";key=", {"key": ""}),
        ("a{?q,limit}", "a", {}),
        ("a{?q,limit}", "a?limit=1&q=b+c", {"limit": "1", "q": "b+c"}),
        ("a{?q,limit}", "a?q=x=y", {"q": "x=y"}),
        ("a{?q,limit}", "a?q", {"q": ""}),
        ("a{?q}{&c}", "a?c=1&q=2", {"c": "1", "q": "2"}),
        ("a{?q}{&c}", "a&c=1", {"c": "1"}),
        ("a?v=1{&c,d}", "a?v=1&d=1&c=2", {"c": "2", "d": "1"}),
        ("a{?q}#top", "a?q=1#top", {"q": "1"}),
        ("a.b{?x.y}", "a.b?x.y=1", {"x.y": "1"}),
    ],
)
def test_a_uri_that_fits_gives_its_decoded_values(template: str, uri: str, values: dict[str, str]) -> None:
    assert UriTemplate.parse(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("a://{id}", "a://"), ("a://{+path}", "a://"), ("a://{id}", "a://x/y"), ("a://{id}", "a://x?y"),
        ("a://{id}", "a://x y"), ("a://{id}", "a://{id}"), ("a://{id}", " a://x"),
        ("a://{id}", "a://x\n"), ("a://{id}/b", "a://x/b/"), ("a://{id}/b", "a://x/bc"),
        ("a://{id}", "a://%zz"), ("a://{id}", "a://%"), ("a://{id}", "a://%4"), ("a://{id}", "a://%FF"),
        ("a://{id}", "a://%C0%AF"), ("a://{id}", "a://%ED%A0%80"), ("a://{id}", "a://\ud800"),
        ("a://{id}/%25", "a://1/%"),
        ("{a}F", "x%2F"),
        ("X{.a,b}", "X.y"), ("{/a}/data", "/data"), ("{id}{.ext}", "x"), ("{/a}", "x"),
        ("{;key}", ";keys"), ("{;key}", ";key;key"), ("{;a,b}", ";b;a"),
        ("a{?q}", "a?"), ("a{?q}", "a?q=1&q=2"), ("a{?q}", "a?r=1"), ("a{?q}", "a?q=1&"), ("a{?q}", "a&q=1"),
        ("a{?q}{&c}", "a&q=1"), ("a{?q}", "a?q=%zz"), ("a{?q}", "a?q=%FF"), ("a{?q}", "a?q=1#f"),
        ("a{?q}", "a?%FF=1"),
        ("a{?q}", "a?q=<x>"), ("a{?q}", "a?q=x y"),
    ],
)  # fmt: skip
def test_a_uri_that_does_not_fit_whole_gives_nothing(template: str, uri: str) -> None:
    assert UriTemplate.parse(template).match(uri) is None


def test_variables_are_named_in_order() -> None:
    parsed = UriTemplate.parse("a://{b}/{+a}{?d,c}")
    assert parsed.variables == ("b", "a", "d", "c")
    assert not parsed.is_static


def test_a_template_without_expressions_is_static_and_names_one_uri() -> None:
    parsed = UriTemplate.parse("test://static-text")
    assert parsed.is_static
    assert parsed.match("test://static-text") == {}
    assert parsed.match("test://static-text/") is None


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOME = ANY.filter(bool)
WITHOUT_DOT = SOME.filter(lambda value: "." not in value)
# §3.2.3: what looks like percent-encoded goes through {+path} as it is, so it comes back decoded.
RESERVED = SOME.filter(lambda value: not re.search("%[0-9A-Fa-f]{2}", value))
PATH = RESERVED.filter(lambda value: not set("?#;&") & set(value))

DOT_SEGMENT = re.compile(r"^[a-z]+:[^?#]*/\.\.?([/?#]|$)")

LAWS: dict[str, dict[str, st.SearchStrategy[str]]] = {
    "a://{id}": {"id": SOME},
    "a://{x,y}/{z}": {"x": ANY, "y": ANY, "z": SOME},
    "a://{+url}": {"url": RESERVED},
    "a:/{+path}{;v}{?q}{#f}": {"path": PATH, "v": ANY, "q": ANY, "f": RESERVED},
    "a:/{+path}/{id}": {"path": RESERVED, "id": SOME},
    "a{/x,y}": {"x": ANY, "y": ANY},
    "{id}{.ext}{/more}": {"id": SOME, "ext": WITHOUT_DOT, "more": ANY},
    "a{;p,q}/b": {"p": ANY, "q": ANY},
    "a{?p,q}{&r,s}": {"p": ANY, "q": ANY, "r": ANY, "s": ANY},
    "a?fixed=1{&p,q}{#f}": {"p": ANY, "q": ANY, "f": RESERVED},
}


@pytest.mark.parametrize("template", LAWS)
@given(data=st.data())
def test_what_was_expanded_is_read_back(template: str, data: st.DataObject) -> None:
    values = data.draw(st.fixed_dictionaries(LAWS[template]))
    uri = uritemplate.expand(template, values)
    assume(not DOT_SEGMENT.search(uri))  # it would be another URI
    assert UriTemplate.parse(template).match(uri) == values


@given(st.fixed_dictionaries({"id": SOME}, optional=dict.fromkeys(("m", "seg", "q", "r", "f"), ANY)))
def test_undefined_variables_are_left_out(values: dict[str, str]) -> None:
    template = "a://{id}{;m}{/seg}{?q}{&r}{#f}"
    if "%" in values.get("f", ""):
        values["f"] = values["f"].replace("%", "")
    uri = uritemplate.expand(template, values)
    assume(not DOT_SEGMENT.search(uri))
    assert UriTemplate.parse(template).match(uri) == values


@given(st.permutations(["p=1", "q=2", "r=3"]), st.integers(0, 3))
def test_parameters_come_in_any_order(parameters: list[str], count: int) -> None:
    query = "&".join(parameters[:count])
    values = dict(parameter.split("=") for parameter in parameters[:count])
    assert UriTemplate.parse("a{?p,q}{&r}").match(f"a?{query}" if query else "a") == values


@given(
    st.text(st.sampled_from("{}" + "+#./;?&,*:=%ab" + "é "), max_size=12),
    st.text(string.printable, max_size=20),
)
def test_any_text_is_parsed_or_refused_and_any_uri_matched_or_not(template: str, uri: str) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except DefinitionError:
        return
    values = parsed.match(uri)
    assert values is None or set(values) <= set(parsed.variables)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("/".join(f"{{+v{index}}}" for index in range(12)) + "!", "/" * 4_000),
        ("-".join(f"{{v{index}}}" for index in range(12)) + "!", "-" * 4_000),
        ("".join(f"{{.v{index}}}" for index in range(12)) + "!", "." * 4_000),
        ("a" + "".join(f"{{;v{index}}}" for index in range(12)), "a" + ";v1" * 2_000),
        ("a{?q}{&r}{#f}", "a?" + "&" * 4_000 + "#" * 4_000),
    ],
)  # fmt: skip
def test_work_on_a_hostile_uri_grows_with_its_length_alone(template: str, uri: str) -> None:
    parsed = UriTemplate.parse(template)
    half = lines_run(lambda: parsed.match(uri[: len(uri) // 2]))
    assert lines_run(lambda: parsed.match(uri)) < 2.2 * half + 1_000


def first_match(entries: Iterable[tuple[UriTemplate, int]], uri: str) -> tuple[int, dict[str, str]] | None:
    return next(iter(UriIndex(entries).find(uri)), None)


MANY = [(UriTemplate.parse(f"s{index}://{{+path}}/end{{?q}}"), index) for index in range(100)]


@given(st.integers(0, 99), SOME)
def test_the_first_template_that_has_the_uri_is_found(index: int, query: str) -> None:
    uri = uritemplate.expand(f"s{index}://a/b/end{{?q}}", {"q": query})
    assert first_match(MANY, uri) == (index, {"path": "a/b", "q": query})
    twice = [(template, -number) for template, number in MANY]
    assert first_match([*twice, *MANY], uri) == (-index, {"path": "a/b", "q": query})


@pytest.mark.parametrize(
    "uri", ["", "s", "s1:/", "t://a/end", "s1://%zz/end", "s1://a\ud800/end", "s100://a/end"]
)
def test_a_uri_of_no_template_is_found_with_none(uri: str) -> None:
    assert first_match(MANY, uri) is None
    assert first_match([], uri) is None


def test_templates_that_begin_otherwise_cost_the_same_for_every_length() -> None:
    many, one_of_many = UriIndex(MANY), UriIndex(MANY[:1])
    short, long = (
        lines_run(lambda uri=uri: many.find(uri) or None) for uri in ("t://a", "t://" + "a" * 8_000)
    )
    assert short == long
    one = lines_run(lambda: one_of_many.find("t://a") or None)
    assert short < one + 10 * len(MANY)


def lines_run(match: Callable[[], object]) -> int:
    """How many lines of the package `match` runs, which must come to nothing."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        nonlocal count
        count += event == "line"
        return trace if "mcp_roundtrip" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert match() is None
    finally:
        sys.settrace(before)
    return count
