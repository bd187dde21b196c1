"""All spellings of a URI (RFC 3986 §6.2.2) identify one resource, with the same scopes and the same value."""

import json
import re
from inspect import Parameter, Signature
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip import DefinitionError, Server
from mcp_roundtrip.protocol.resource_uris import UriTemplate
from mcp_roundtrip_tools.catalog.catalog import CatalogError, catalog_lists
from support.client_requests import refused
from support.deployment import Deployment

UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_UNIT = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL)
PORTS = {"http": ":80", "https": ":443"}


@st.composite
def spelled(draw: st.DrawFn, text: str, *, folds: bool = False) -> str:
    """Generate spellings of a part of a URI: other percent-encoding, and other case if `folds`."""

    def respelled(unit: str) -> str:
        if folds and draw(st.booleans()):
            unit = unit.swapcase() if len(unit) == 1 else unit
        if len(unit) == 1 and unit in UNRESERVED and draw(st.booleans()):
            unit = f"%{ord(unit):02X}"
        return unit.lower() if len(unit) == 3 and draw(st.booleans()) else unit

    return "".join(map(respelled, _UNIT.findall(text)))


@st.composite
def spellings(draw: st.DrawFn, uri: str) -> str:
    """Generate spellings of a hierarchical URI without a port."""
    found = re.fullmatch(r"([a-z]+)://([^/?#]*)([^?#]*)(.*)", quote(uri, safe=":/?#[]@!$&'()*+,;=%~"))
    assert found is not None
    scheme, host, path, rest = found.groups()
    given = "".join(letter.upper() if draw(st.booleans()) else letter for letter in scheme)
    port = draw(st.sampled_from(["", ":", PORTS[scheme]])) if scheme in PORTS else ""
    segments = path.split("/")[1:] if path else []
    if path == "/" and scheme in PORTS and draw(st.booleans()):
        segments = []
    respelled = [f"/{draw(spelled(segment))}" for segment in segments]
    return f"{given}://{draw(spelled(host, folds=True))}{port}{''.join(respelled)}{draw(spelled(rest))}"


ADMIN = "admin"

each_uri = settings(max_examples=50)
"""For laws that choose one of several URIs."""


def add(server, template, scopes=()):
    """Register a resource whose text names its template and the values."""
    names = UriTemplate.parse(template).variables

    def show(**values: str) -> str:
        return " ".join([template, *(f"{name}={values[name]}" for name in names if values[name])])

    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default="", annotation=str) for name in names]
    vars(show)["__signature__"] = Signature(parameters)
    show.__annotations__ = dict.fromkeys(names, str)
    server.resource(template, scopes=scopes)(show)


def documents(*, hide_unauthorized=False):
    """Return a server with open templates and, registered later, scoped resources that match them too."""
    server = Server("documents", hide_unauthorized=hide_unauthorized)
    add(server, "docs://{name}")
    add(server, "docs://{name}/{page}")
    add(server, "file:///{+path}")
    add(server, "https://{host}{/page}{?q}")
    add(server, "notes://{name}.Example/{page}")
    add(server, "docs://plan", [ADMIN])
    add(server, "docs://Plans/{number}", [ADMIN])
    add(server, "file:///secret/{name}{?version}", [ADMIN])
    add(server, "https://docs.example/", [ADMIN])
    server.completion("docs://Plans/{number}", "number")(lambda typed: ["7"])
    return server


def calling(server, **facets):
    """Return a caller with the scope of the closed resources."""
    settings = {"token_issuer": "https://id.test"}
    return Deployment(server, scopes=(ADMIN,), replaced_settings=settings, has_table=False, **facets)


SERVER, HIDING = calling(documents()), calling(documents(hide_unauthorized=True))


def read(client, uri, scope=ADMIN):
    """Return the text of the contents, or "refused" or "unknown"."""
    response = client.by(scopes=tuple(scope.split())).request("resources/read", uri=uri)
    sent = json.loads(response.body)
    if "error" in sent:
        return {403: "refused", 400: "unknown"}[response.status]
    return str(sent["result"]["contents"][0]["text"])


def complete(client, uri, *scopes):
    argument = {"name": "number", "value": ""}
    reference = {"type": "ref/resource", "uri": uri}
    return client.by(scopes=scopes).request("completion/complete", ref=reference, argument=argument)


CLOSED = {
    "docs://plan": "docs://plan",
    "docs://plans/7": "docs://Plans/{number} number=7",
    "docs://plans/%C3%A9%25%2F%2561": "docs://Plans/{number} number=é%/%61",
    "file:///secret/key": "file:///secret/{name}{?version} name=key",
    "file:///secret/a%20b?version=%7E1": "file:///secret/{name}{?version} name=a b version=~1",
    "https://docs.example/": "https://docs.example/",
}


@each_uri
@given(uri=st.sampled_from([*CLOSED]), data=st.data())
def test_a_scoped_resource_is_protected_in_every_spelling_and_has_one_value(uri, data):
    spelling = data.draw(spellings(uri))
    assert read(SERVER, spelling) == CLOSED[uri]
    assert read(SERVER, spelling, scope="") == "refused"
    assert read(HIDING, spelling, scope="") == "unknown"


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("file:///secret%2Fkey", "file:///{+path} path=secret/key"),
        ("file:///secret%2Fkey%3Fversion=1", "file:///{+path} path=secret/key?version=1"),
    ],
)
def test_an_open_template_does_not_match_the_path_of_a_scoped_resource(uri, text):
    assert read(SERVER, uri) == text
    assert read(SERVER, uri, scope="") == "refused"
    assert read(HIDING, uri, scope="") == "unknown"


OPEN = {
    "docs://other/page": "docs://{name}/{page} name=other page=page",
    "file:///public/x~y": "file:///{+path} path=public/x~y",
    "https://site.example/a?q=1": "https://{host}{/page}{?q} host=site.example page=a q=1",
}


def test_a_resource_is_listed_and_read_by_a_uri_in_ascii():
    client = calling(Server("documents"))
    add(client.server, "docs://Zürich")
    [listed] = client.result("resources/list")["resources"]
    assert listed["uri"] == "docs://Z%C3%BCrich"  # RFC 3986
    assert read(client, listed["uri"]) == "docs://Zürich"


def test_a_variable_in_the_host_keeps_its_case_and_literal_text_is_case_insensitive():
    note = "notes://{name}.Example/{page} name=Ada page=A"
    assert read(SERVER, "NOTES://Ada.EXAMPLE/A") == note
    assert read(SERVER, "notes://%41da.example/A") == note
    assert read(SERVER, "docs://Ada") == "docs://{name} name=Ada"
    site = "https://{host}{/page}{?q} host=site.example"
    assert read(SERVER, "HTTPS://Site.Example:443") == site
    assert read(SERVER, "docs:%2F%2Fplan") == "unknown"
    for value in ("...", "..a", "a..", ".a", "a.b", "v1..v2", "a%2F...%2Fb"):  # dots that are no segment
        assert read(SERVER, f"docs://{value}") == f"docs://{{name}} name={unquote(value)}"


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "file:///public/..%2Fsecret/key",
            "file:///%2e%2e%2Fsecret%2fkey",
            "docs://a/..%2F",
            "docs://a/..%3F",
        ),
        *("docs://..", "docs://.", "docs://%2e%2E", "docs://%2E.", "docs://..%2Fetc", "docs://..%5Cetc"),
        *("docs://a%2F..", "docs://a%2f.%2fb", "docs://../a", "docs://.%2e/a", "notes://...Example/A"),
        *("file:///a%5C..%5Cb", "https://site.example?q=..", "https://site.example?q=%2e%2e%2Fx"),
        *("https://site.example/a?q=x/../y", "https://../a"),
    ],
)
def test_a_uri_whose_value_would_have_dot_segments_is_unknown(uri):
    assert read(SERVER, uri) == "unknown"


@given(
    segments=st.lists(st.sampled_from([".", "..", "a", "", "a.", "..."]), min_size=1, max_size=4),
    separator=st.sampled_from(["/", "\\"]),
    data=st.data(),
)
def test_no_function_gets_a_value_with_a_dot_segment(segments, separator, data):
    value = separator.join(segments)
    encoded = "".join(data.draw(st.sampled_from([f"%{ord(each):02X}", quote(each)])) for each in value)
    is_refused = {".", ".."} & set(segments)
    for uri in (f"docs://{encoded}", f"docs://x/{encoded}", f"https://site.example?q={encoded}"):
        assert not is_refused or read(SERVER, uri) == "unknown"


@given(name=spelled("docs", folds=False), plans=spelled("Plans", folds=True))
def test_completions_find_a_template_in_every_spelling(door, name, plans):
    for reference in (f"docs://{plans}/{{number}}", f"DOCS://{plans}/{{number}}"):
        for client in (SERVER, door):
            completed = json.loads(complete(client, reference, ADMIN).body)
            assert completed["result"]["completion"]["values"] == ["7"]
            assert complete(client, reference).status == 403
        assert refused(complete(HIDING, reference))[1] == -32602


@pytest.fixture(scope="module")
def door():
    return SERVER.by(through_door=True)


@each_uri
@given(uri=st.sampled_from([*CLOSED, *OPEN]), data=st.data())
def test_a_front_door_and_its_owner_agree_about_every_spelling(door, uri, data):
    spelling = data.draw(spellings(uri))
    for scope in (ADMIN, ""):
        before = len(door.forwarded)
        found = read(door, spelling, scope)
        assert found == read(SERVER, spelling, scope)
        assert (len(door.forwarded) > before) is (found != "refused")


@pytest.mark.parametrize("closed_first", [True, False])
@pytest.mark.parametrize(
    ("broad", "narrow", "uri"),
    [
        ("x://{+all}", "x://{id}", "x://a"),
        ("x://{id}", "x://a{id}", "x://ab"),
        ("x://{+all}", "x://h/{id}{?q}", "x://h/a?q=1"),
        ("x://h{+rest}", "x://h{?q}", "x://h?q=1"),
        ("x://{+all}", "x://{a}/{b}", "x://a/b"),
        ("x://h{/a}{/b}", "x://h/{a}/b", "x://h/a/b"),
        ("x://h/{a}", "x://h/{a}.txt", "x://h/a.txt"),
        ("x://h{/a}", "x://h", "x://h"),
    ],
)
def test_the_more_specific_of_two_templates_determines_value_and_scopes(broad, narrow, uri, closed_first):
    for closed in (broad, narrow):
        server = Server("x")
        for template in sorted((broad, narrow), key=lambda each: (each == closed) is not closed_first):
            add(server, template, [ADMIN] if template == closed else [])
        assert read(calling(server), uri).split()[0] == narrow
        assert (read(calling(server), uri, scope="") == "refused") is (closed == narrow)


@pytest.mark.parametrize(
    ("one", "other", "uri"),
    [
        ("x://{a}/b", "x://a/{b}", "x://a/b"),
        ("x://h{?q}", "x://h{?q,r}", "x://h?q=1"),
        ("x://h/{a}", "x://h/{b}", "x://h/1"),
        ("x://h{/a}", "x://h{/a}{/b}", "x://h"),
    ],
)
def test_the_first_of_equally_specific_templates_is_used_with_the_scopes_of_all(one, other, uri):
    for first, second in ((one, other), (other, one)):
        server = Server("x")
        add(server, first, ["a"])
        add(server, second, ["b", "a"])
        client = calling(server)
        assert read(client, uri, scope="a b").split()[0] == first
        assert [read(client, uri, scope=scope) for scope in ("a", "b", "")] == ["refused"] * 3
        response = client.request("resources/read", uri=uri)
        assert 'scope="a b"' in response.headers["www-authenticate"]


@pytest.mark.parametrize(("one", "other"), [("docs://plan", "DOCS://pl%61n"), ("docs://{a}", "Docs://{a}")])
def test_two_spellings_of_one_uri_cannot_both_be_registered(one, other):
    server = Server("x")
    add(server, one)
    with pytest.raises(DefinitionError, match="registered twice"):
        add(server, other)
    another = Server("y")
    add(another, other)
    with pytest.raises(CatalogError, match="one function"):
        catalog_lists({"x": server, "y": another})
