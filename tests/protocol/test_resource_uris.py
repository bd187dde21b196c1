"""URIs of resources: their normal form, and templates, with `uritemplate` as the oracle."""

import re
import string
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pytest
import uritemplate
from hypothesis import assume, given
from hypothesis import strategies as st

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.resource_uris import UriIndex, UriTemplate, normalize_uri, spelling_key

VALUES = {
    "var": "value", "hello": "Hello World!", "half": "50%", "dub": "me/too", "who": "fred", "empty": "",
    "base": "http://example.com/home/", "path": "/foo/bar", "v": "6", "x": "1024", "y": "768",
}  # fmt: skip

SECTION_3_2 = [
    # 3.2.2 Simple String Expansion
    ("{var}", "value"), ("{hello}", "Hello%20World%21"), ("{half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    # 3.2.3 Reserved Expansion
    ("{+var}", "value"), ("{+hello}", "Hello%20World!"), ("{+half}", "50%25"),
    ("{+base}index", "http://example.com/home/index"),
    ("{+path}/here", "/foo/bar/here"), ("here?ref={+path}", "here?ref=/foo/bar"),
    # 3.2.6 Path Segment Expansion
    ("{/who}", "/fred"), ("{/half}{/who}", "/50%25/fred"), ("{/who}{/dub}", "/fred/me%2Ftoo"),
    ("{/var}", "/value"), ("{/var}{/empty}", "/value/"), ("{/var}{/x}/here", "/value/1024/here"),
    ("{/var}{/undef}", "/value"),
    # 3.2.8 Form-Style Query Expansion
    ("{?who}", "?who=fred"), ("{?half}", "?half=50%25"), ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="), ("{?x,y,undef}", "?x=1024&y=768"),
]  # fmt: skip
"""The examples of RFC 6570 §3.2 with the expressions that are supported."""


def expand(template: str, values: Mapping[str, Any]) -> str:
    return uritemplate.expand(template, dict(values))


def match(template: str, uri: str) -> dict[str, str] | None:
    """Return the values of a template for a URI, as in a read."""
    found = UriIndex([(UriTemplate.parse(template), "item")]).find(uri)
    return found[0][1] if found else None


@pytest.mark.parametrize(("template", "uri"), SECTION_3_2)
def test_the_examples_of_the_rfc_match(template: str, uri: str) -> None:
    names = UriTemplate.parse(template).variables
    assert match(template, uri) == {name: VALUES[name] for name in names if name in VALUES}
    assert expand(template, VALUES) == uri


REFUSED = {
    "write {name}": [
        # expressions of RFC 6570 that are not supported
        *("{&a}", "a?x=1{&b}", "{;a}", "{;a,b}", "{a}{.b}", "{.a}", "a{#b}", "{a,b}", "{+a,b}", "{/a,b}"),
        *("{a*}", "{+a*}", "{/a*}", "{?a*}", "{a:3}", "{+a:6}/here", "{/a:1}"),
        # malformed
        *("{}", "{+}", "{a/}", "{/}", "{ a}", "{a.b}", "{%61}", "{é}", "{1a}", "{a-b}"),
        *("{=a}", "{!a}", "{@a}", "{|a}", "{$a}", "{/?a}", "{++a}", "{?a, b}", "/h{#hello+}"),
    ],
    "there once": ["{?a}/b", "{?a}{?b}", "{?a}{/b}", "a?x=1{?b}", "{?a}#top", "a#b{?c}"],
    # boundaries that cannot be found, or only by trying many
    "its end": ["{+a}{/b}", "{+a}/{+b}", "{+a}/x{/b}"],
    "character between": [
        *("{a}{b}", "{a}{+b}", "{+a}{b}", "{/a}{b}", "{a}-{b}", "{+a}-{b}", "{a}.{b}", "{a}%2F{b}")
    ],
    "character after": ["{/a}b", "x{/a}.txt", "{/a}%20"],
    "occurs twice": ["{a}/{a}", "{a}{?a}", "{/a}{/a}"],
    "percent-encode it": [
        *("a b", "a\n", 'a"', "a<b>", "a\\b", "a|b", "a%", "a%zz", "\ud800"),
        *("}", "{", "{a", "a}", "{{a}}", "/sparql{?query){?x}"),
    ],
    "remove '.' and '..' segments": ["x://h/../{a}", "x://h/./{a}", "x://h/{a}/.."],
}
"""Part of the message -> templates refused with it."""


@pytest.mark.parametrize("advice", REFUSED)
def test_unsupported_templates_are_refused_with_the_remedy(advice: str) -> None:
    for template in REFUSED[advice]:
        with pytest.raises(DefinitionError, match=re.escape(advice)):
            UriTemplate.parse(template)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://{id}", "a://a%2Fb", {"id": "a/b"}),
        ("a://{id}", "a://%252F", {"id": "%2F"}),
        ("a://{id}", "a://%C3%A9", {"id": "é"}),
        ("a://é/{id}", "a://%c3%a9/1", {"id": "1"}),
        ("a://x%2fy/{id}", "a://x%2Fy/1", {"id": "1"}),
        ("a:/{+path}", "a:/x/y%2Fz?q=1#f", {"path": "x/y/z?q=1#f"}),
        ("a:/{+path}{?q}", "a:/x/y?q=a/b", {"path": "x/y", "q": "a/b"}),
        ("a:/{id}/{+path}", "a:/x/y/z", {"id": "x", "path": "y/z"}),
        ("a:/{+path}.json", "a:/x/y.json.json", {"path": "x/y.json"}),
        ("{a}F", "x%2FF", {"a": "x/"}),
        ("{+a}F", "x%2FF", {"a": "x/"}),
        ("{+a}x/{b}", "xx/x/yx/z", {"a": "xx/x/y", "b": "z"}),
        ("http://h:80/{a}", "http://h/1", {"a": "1"}),
        ("https://{+url}", "https://h/a", {"url": "h/a"}),
        ("https://{host}{/page}", "https://h", {"host": "h", "page": ""}),
        ("prefix-{id}", "prefix-prefix-1", {"id": "prefix-1"}),
        ("a{/x}{/y}", "a", {}),
        ("a{/x}{/y}", "a/", {"x": ""}),
        ("a{/x}{/y}", "a/1//", None),
        ("{/a}{/b}", "/x/y", {"a": "x", "b": "y"}),
        ("a?v=1&q={q}", "a?v=1&q=b%2Bc", {"q": "b+c"}),
        ("a{?q,limit}", "a", {}),
        ("a{?q,limit}", "a?limit=1&q=b+c", {"limit": "1", "q": "b+c"}),
        ("a{?q,limit}", "a?q=x=y", {"q": "x=y"}),
        ("a{?q,limit}", "a?q", {"q": ""}),
        ("a{?q}", "a?%71=1", {"q": "1"}),
    ],
)
def test_a_matching_uri_yields_decoded_values(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert match(template, uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("a://{id}", "a://"), ("a://{+path}", "a://"), ("a://{id}", "a://x/y"), ("a://{id}", "a://x?y"),
        ("a://{id}", "a://x y"), ("a://{id}", "a://{id}"), ("a://{id}", " a://x"),
        ("a://{id}", "a://x\n"), ("a://{id}/b", "a://x/b/"), ("a://{id}/b", "a://x/bc"),
        ("a://{id}", "a://%zz"), ("a://{id}", "a://%"), ("a://{id}", "a://%4"), ("a://{id}", "a://%FF"),
        ("a://{id}", "a://%C0%AF"), ("a://{id}", "a://%ED%A0%80"), ("a://{id}", "a://\ud800"),
        ("a://{id}/%25", "a://1/%"), ("{a}F", "x%2F"), ("{+a}F", "x%2F"),
        ("{/a}/data", "/data"), ("{/a}", "x"),
        ("a{?q}", "a?"), ("a{?q}", "a?q=1&q=2"), ("a{?q}", "a?r=1"), ("a{?q}", "a?q=1&"), ("a{?q}", "a&q=1"),
        ("a{?q}", "a?q=%zz"), ("a{?q}", "a?q=%FF"), ("a{?q}", "a?q=1#f"), ("a{?q}", "a?%FF=1"),
        ("a{?q}", "a?q=<x>"), ("a{?q}", "a?q=x y"), ("a{/x}{?q}", "a?x=1"),
    ],
)  # fmt: skip
def test_a_uri_that_matches_only_partially_is_not_found(template: str, uri: str) -> None:
    assert match(template, uri) is None


def test_variables_are_listed_in_order_and_a_template_without_any_matches_one_uri() -> None:
    parsed = UriTemplate.parse("a://{b}/{+a}{?d,c}")
    assert (parsed.variables, parsed.is_static) == (("b", "a", "d", "c"), False)
    assert UriTemplate.parse("test://static-text").is_static
    assert match("test://static-text", "test://static-text") == {}
    assert match("test://static-text", "test://static-text/") is None


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOME = ANY.filter(bool)
# §3.2.3: what looks like percent-encoded is not encoded again, so it is decoded here.
RESERVED = SOME.filter(lambda value: not re.search("%[0-9A-Fa-f]{2}", value))
PATH = RESERVED.filter(lambda value: "?" not in value)


def is_refused(uri: str, values: Iterable[str]) -> bool:
    """Whether a URI is refused, because its path or a value has a dot segment."""
    paths = [re.split("[?#]", each)[0] for each in (uri, unquote(uri))]
    return any({".", ".."} & set(re.split(r"[/\\]", each)) for each in (*paths, *values))


GENERATED: dict[str, dict[str, st.SearchStrategy[str]]] = {
    "a://{id}": {"id": SOME},
    "a://{x},{y}/{z}": {"x": SOME, "y": SOME, "z": SOME},
    "a:/{x}.txt/{y}.txt": {"x": SOME, "y": SOME},
    "a://{+url}": {"url": RESERVED},
    "a:/{+path}{?q}": {"path": PATH, "q": ANY},
    "a:/{+path}/{id}": {"path": RESERVED, "id": SOME},
    "a{/x}{/y}": {"x": ANY, "y": ANY},
    "a{/x}/b{?p,q}": {"x": ANY, "p": ANY, "q": ANY},
}


def assert_expanded_matches(template: str, values: dict[str, str]) -> None:
    uri = expand(template, values)
    assume(not is_refused(uri, values.values()))
    assert match(template, uri) == values


@pytest.mark.parametrize("template", GENERATED)
@given(data=st.data())
def test_an_expanded_template_matches_with_its_values(template: str, data: st.DataObject) -> None:
    assert_expanded_matches(template, data.draw(st.fixed_dictionaries(GENERATED[template])))


@given(
    st.fixed_dictionaries({"id": SOME}, optional=dict.fromkeys(("q", "r"), ANY)), st.lists(ANY, max_size=2)
)
def test_undefined_variables_are_absent(values: dict[str, str], segments: list[str]) -> None:
    values |= dict(zip(("x", "y"), segments, strict=False))
    assert_expanded_matches("a://{id}{/x}{/y}{?q,r}", values)


@given(st.permutations(["p=1", "q=2", "r=3"]), st.integers(0, 3))
def test_query_parameters_may_be_in_any_order(parameters: list[str], count: int) -> None:
    query = "&".join(parameters[:count])
    values = dict(parameter.split("=") for parameter in parameters[:count])
    assert match("a{?p,q,r}", f"a?{query}" if query else "a") == values


@given(st.text("{}" + "+#./;?&,*:=%ab" + "é ", max_size=12), st.text(string.printable, max_size=20))
def test_parsing_any_text_and_matching_any_uri_raises_no_unexpected_error(template: str, uri: str) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except DefinitionError:
        return
    values = match(template, uri)
    assert values is None or set(values) <= set(parsed.variables)


SEGMENTS = [f"{{v{index}}}" for index in range(12)]
SLASHES, ENDING_IN_A = "/".join(SEGMENTS), "a/".join(SEGMENTS)
HOSTILE = [
    (f"{{+v}}/{SLASHES}!", "/"),
    (f"{{+v}}/{ENDING_IN_A}!", "/a"),
    (f"{ENDING_IN_A}!", "a"),
    (f"{SLASHES}/{{+v}}!", "a/"),
    ("{+v}--------!", "-"),
    ("a" + "".join(f"{{/v{index}}}" for index in range(12)), "/"),
    ("a{?q,r}", "&"),
]


@pytest.mark.parametrize(("template", "unit"), HOSTILE)
def test_matching_a_hostile_uri_takes_linear_time(template: str, unit: str) -> None:
    parsed = UriTemplate.parse(template)

    def seconds(length: int) -> float:
        uri = normalize_uri(unit * length)
        begin = time.thread_time()  # without the time of other processes
        assert parsed.match(uri) is None
        return time.thread_time() - begin

    # 16 times the length would take 256 times as long if the time were quadratic.
    short, long = (min(seconds(length) for _ in range(5)) for length in (2_000, 32_000))
    assert long < 80 * short + 0.001


EQUIVALENT = [
    # RFC 3986 §6.2.2, §6.2.2.1 to §6.2.2.3, §6.2.3
    ("example://a/b/c/%7Bfoo%7D", "eXAMPLE://a/b/%63/%7bfoo%7d"),
    ("http://www.example.com/", "HTTP://www.EXAMPLE.com/"),
    ("http://example.com/%7Esmith", "http://example.com/~smith"),
    ("http://example.com", "http://example.com:/"),
    ("https://example.com:443?q", "https://EXAMPLE.com/?q"),
    ("https://Ada@EXAMPLE.com/", "https://Ada@example.com:443/"),
    # RFC 3987 §3.1
    ("x://h/é", "x://h/%c3%A9"),
    ("docs://pl%61n", "docs://plan"),
    ("docs://pl%41n", "docs://plan"),
    ("docs://pl%C3%A9", "DOCS://PL%c3%a9"),
]

DIFFERENT = [
    ("docs://h/plan", "docs://h/PLAN"),
    ("docs://h?Q", "docs://h?q"),
    ("docs://h/a%2Fb", "docs://h/a/b"),
    ("docs://h/%2561", "docs://h/%61"),
    ("docs://h?a/../b", "docs://h?b"),
    ("docs://h/.a/b..", "docs://h/a/b"),
    ("docs://h", "docs://h/"),
    ("docs://h:80/", "docs://h/"),
    ("https://h:80/", "https://h/"),
    ("docs://h?", "docs://h"),
    ("urn:a/../b", "urn:b"),
]


@pytest.mark.parametrize(("one", "other"), EQUIVALENT)
def test_equivalent_uris_have_one_normal_form(one: str, other: str) -> None:
    assert normalize_uri(one).key == normalize_uri(other).key
    assert spelling_key(one) == spelling_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_uris_have_different_normal_forms(one: str, other: str) -> None:
    assert normalize_uri(one).key != normalize_uri(other).key


@pytest.mark.parametrize(
    "uri",
    [
        "x://h/content=5/../6", "x://h/a/b/c/./../../g", "x://h/..", "x://h/../..//a", "x://h/a/.",
        "file:///a/%2e%2E/b", "x:/a/../b", "x:/.//h/a", "x://h/.?q", "x://h/..#f", "x:/..",
    ],
)  # fmt: skip
def test_a_uri_with_dot_segments_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="segments"):
        normalize_uri(uri)


@given(st.text("aZ%4eE2F./:?#@é[]{ ", max_size=16).map("x:".__add__) | st.text(max_size=12))
def test_normalizing_is_idempotent(text: str) -> None:
    try:
        normal = normalize_uri(text)
    except ValueError:
        return
    assert normalize_uri(normal.key).key == normal.key
    assert normalize_uri(normal.spelled) == normal
    assert normal.key.lower() == normal.spelled.lower()


@pytest.mark.parametrize(
    ("one", "other", "are_equivalent"),
    [
        ("docs://{name}", "DOCS://{name}", True),
        ("docs://Plan/{id}", "docs://pl%61n/{id}", True),
        ("docs://{Owner}.Example/{Id}", "docs://{Owner}.example/{Id}", True),
        ("docs://h/é/{id}", "docs://h/%c3%A9/{id}", True),
        ("docs://{name}", "docs://{Name}", False),
        ("docs://h/P{id}", "docs://h/p{id}", False),
        ("docs://{+path}P", "docs://{+path}/P", False),
    ],
)
def test_equivalent_spellings_of_templates_have_one_normal_form(
    one: str, other: str, are_equivalent: bool
) -> None:
    assert (spelling_key(one) == spelling_key(other)) is are_equivalent
    index = UriIndex((UriTemplate.parse(text), text) for text in ("docs://other", one))
    assert index.find_equivalent(other) == (one if are_equivalent else other)


@given(st.text("aA%4{}:/?é\ud800", max_size=12))
def test_resolving_any_text_raises_no_unexpected_error(text: str) -> None:
    assert UriIndex([(UriTemplate.parse("docs://plan"), 1)]).find_equivalent(text) in (text, "docs://plan")
