"""Patterns: ECMAScript compiles an accepted one with the flag u, and matching takes bounded time."""

import json
import re
import subprocess
from typing import Annotated, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from mcp_roundtrip import DefinitionError
from mcp_roundtrip.arguments.elicitation_form import Form
from mcp_roundtrip.arguments.own_input_schema import OwnSchemaArguments
from mcp_roundtrip.internal_errors import ArgumentsError, InvalidAnswer
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.schema.pattern_checks import (
    NONLINEAR,
    NOT_COMPILED,
    pattern_problem,
    syntax_problem,
)
from mcp_roundtrip.schema.validation_cost import SchemaCosts
from support import skips
from support.servers import arguments_of

PARTS = st.sampled_from(
    [
        *("a", "Z", "9", "é", "-", "/", ",", "&", "~", ":", "=", "!", "<", "_", "\n", "😀"),
        *("^", "$", ".", "|", "*", "+", "?", "{2}", "{2,}", "{3,1}", "{,2}", "{", "}", "*?", "++"),
        *("(", ")", "(?:", "(?<n>", "(?<m>", "(?P<n>", "(?i)", "(?i:", "(?#", "(?=", "(?<!"),
        *("[", "[^", "]", "a-z", "z-a", "[a-z]", "[^]", "[]", "[--a]", "[\\d-x]", "[a&&b]", "[[:alpha:]]"),
        *("\\d", "\\W", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\Q", "\\h", "\\_", "\\-", "\\&", "\\/", "\\."),
        *("\\n", "\\0", "\\01", "\\1", "\\k<n>", "\\cA", "\\c1", "\\x41", "\\x4", "\\u0041", "\\u{1F600}"),
        *(
            "\\u{110000}",
            "\\p{L}",
            "\\pL",
            "\\p{Script=Greek}",
            "\\p{Greek}",
            "\\p{Lu}",
            "\\p{Script=Nothing}",
            "\\",
        ),
    ]
)
SYNTAX = st.lists(PARTS, min_size=1, max_size=5).map("".join)

PROGRAM = """
const patterns = JSON.parse(require("fs").readFileSync(0, "utf8"));
const compiles = (text) => { try { new RegExp(text, "u"); return true } catch { return false } };
console.log(JSON.stringify(patterns.map(compiles)));
"""

REFUSED_BY_CHOICE = re.compile(r"&&|~~|--|\(\?i:|\[[^\]]*\[")
"""What ECMAScript has, and is refused: operators of the engine, and modifiers, which few clients have yet."""


def in_ecmascript(patterns: list[str]) -> list[bool]:
    """Return for each pattern whether a JavaScript engine compiles it."""
    node = skips.find_node("the syntax of patterns")
    done = subprocess.run([node, "-e", PROGRAM], input=json.dumps(patterns), capture_output=True, text=True)
    found: list[bool] = json.loads(done.stdout)
    return found


def samples(number: int) -> list[str]:
    """Return different patterns, as Hypothesis draws them."""
    drawn: set[str] = set()

    @settings(max_examples=number, database=None, phases=[Phase.generate])
    @given(SYNTAX)
    def draw(pattern: str) -> None:
        drawn.add(pattern)

    draw()
    return sorted(drawn)


def test_a_pattern_is_accepted_if_ecmascript_compiles_it_and_the_time_is_linear() -> None:
    patterns = samples(2_000)
    for pattern, compiles in zip(patterns, in_ecmascript(patterns), strict=True):
        problem = pattern_problem(pattern)
        if problem is None:
            assert compiles or is_unknown_property(pattern) or is_reversed_range(pattern), pattern
        elif problem not in (NONLINEAR, NOT_COMPILED) and not REFUSED_BY_CHOICE.search(pattern):
            assert not compiles, (pattern, problem)


def is_unknown_property(pattern: str) -> bool:
    """Return whether a pattern names a property of characters, which the engine checks."""
    return "\\p{Script=Nothing}" in pattern


def is_reversed_range(pattern: str) -> bool:
    """Return whether a class has a range from a later to an earlier character, which the engine checks."""
    return "z-a" in pattern


@pytest.mark.parametrize("pattern", ["[z-a]", r"\p{Script=Nothing}"])
def test_the_engine_refuses_what_the_syntax_allows(pattern: str) -> None:
    assert syntax_problem(pattern) is None
    assert pattern_problem(pattern) is not None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?i)^abc$", "(?i)"),
        ("^(?P<n>x)$", "(?P<n>"),
        (r"\Aabc\z", r"\\A"),
        ("[a&&b]", "&&"),
        ("[[a]]", "[[a]]"),
        ("a{3,1}", "not compiled"),
        ("(?<n>a)|(?<n>b)", "not compiled"),
        ("(?=a)", "look-around"),
        (r"(a)\1", "back-references"),
    ],
)
def test_a_problem_names_what_is_wrong(pattern: str, said: str) -> None:
    assert said in (pattern_problem(pattern) or "")


# -- bounded time ---------------------------------------------------------------------------------------

NESTED = "(a{1,300}){1,20}b"
ORDINARY = [
    r"^[A-Za-z0-9_-]{8,128}$",
    r"^\w{1,255}$",
    r"^[a-z]{1,63}(\.[a-z]{1,63}){0,10}$",
    "^(a+)+$",
    r"^https://[a-z.]+/[0-9]+$",
]


def raw(**member: Any) -> OwnSchemaArguments:
    def tool(value: Any) -> None: ...

    schema = {"type": "object", "properties": {"value": {"type": "string", **member}}}
    return OwnSchemaArguments.from_schema(tool, schema)


@pytest.mark.parametrize("pattern", ORDINARY)
def test_ordinary_patterns_are_accepted_with_long_texts_beside_them(pattern: str) -> None:
    assert pattern_problem(pattern) is None
    value = {"document": "a" * 1_000_000, "value": "a"}
    assert SchemaCosts({"pattern": pattern}).exceeded_bound(value, len(compact_json(value))) is None


def test_a_text_counts_for_the_patterns_of_its_own_argument_only() -> None:
    def tool(arguments: Any) -> None: ...

    patterned = {name: {"type": "string", "pattern": r"^\S+@\S+\.\S+$"} for name in ("to", "cc", "reply_to")}
    schema = {"type": "object", "properties": {"body": {"type": "string"}, **patterned}}
    read = OwnSchemaArguments.from_schema(tool, schema)
    long = "a" * 2_000_000
    assert read.validate({"body": long, "to": "a@b.example"})
    with pytest.raises(ArgumentsError, match=r"^arguments\.cc: .*pattern"):
        read.validate({"body": long, "to": "a@b.example", "cc": "a"})
    with pytest.raises(ArgumentsError, match="to be checked"):
        read.validate({"to": long})


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Field(pattern=NESTED)],
        Annotated[str, Field(max_length=10), Field(pattern="[a-z]{1,9000}x")],
        dict[Annotated[str, Field(pattern="[a-z]{1,9000}x")], int],
        list[Annotated[str, Field(pattern=NESTED)] | None],
    ],
)
def test_a_pattern_that_is_too_large_is_refused_with_the_remedy(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match=r"'x': .*pattern .*`\+` or `\*`"):
        arguments_of(annotation).validate({"x": ""})
    with pytest.raises(DefinitionError, match=r"input_schema: the pattern"):
        raw(pattern=NESTED)


Searched = Annotated[str, Field(pattern=r"\w{1,100}-")]


class Page(BaseModel):
    text: Searched
    number: int = 0


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Searched, "a" * 350_000),
        (list[Searched], ["a" * 999 + "-"] * 350),
        (Page, {"text": "a" * 350_000 + "-", "number": 1.0}),
        (Searched | int, "é" * 350_000),
        (dict[Searched, int], {"a" * 350_000 + "-": 1}),
    ],
)
def test_a_text_that_is_too_long_for_its_pattern_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(ArgumentsError, match="to be checked"):
        arguments_of(annotation).validate({"x": value})


def test_a_text_that_is_too_long_for_its_pattern_is_refused_by_an_own_schema_and_in_a_form() -> None:
    with pytest.raises(ArgumentsError, match="to be checked"):
        raw(pattern=r"\w{1,100}-").validate({"value": "a" * 350_000})
    with pytest.raises(InvalidAnswer, match="to be checked"):
        Form.from_model(Page).parse({"text": "a" * 350_000 + "-"})


def test_a_long_text_within_the_limit_is_matched_completely() -> None:
    text = "!" * 66_000 + "a-"
    assert arguments_of(Searched).validate({"x": text}) == {"x": text}
    assert arguments_of(Page).validate({"x": {"text": text, "number": 1.0}})["x"].number == 1
    with pytest.raises(ArgumentsError, match="match the pattern"):
        arguments_of(Searched).validate({"x": "!" * 66_000})
    with pytest.raises(ArgumentsError, match="match the pattern"):
        arguments_of(Searched).validate({"x": "!" * 6_000})
