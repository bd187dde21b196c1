"""A pattern is accepted if ECMAScript compiles it with the flag u, and the engine reads it alike."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import jsonschema_rs
import pytest
from hypothesis import find, settings
from hypothesis import strategies as st

from mcp_roundtrip.schema.ecma_patterns import NONLINEAR, syntax_problem
from support import skips

PARTS = st.sampled_from(
    [
        *("a", "Z", "9", "é", "-", "/", ",", "&", "~", ":", "=", "!", "<", "_", "\n", "😀"),
        *("^", "$", ".", "|", "*", "+", "?", "{2}", "{2,}", "{3,1}", "{,2}", "{", "}", "*?", "++"),
        *("(", ")", "(?:", "(?<n>", "(?<m>", "(?P<n>", "(?i)", "(?i:", "(?#", "(?=", "(?<!"),
        *("[", "[^", "]", "a-z", "z-a", "[a-z]", "[^]", "[]", "[--a]", "[\\d-x]", "[a&&b]", "[[:alpha:]]"),
        *("\\d", "\\W", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\Q", "\\h", "\\_", "\\-", "\\&", "\\/", "\\."),
        *("\\n", "\\0", "\\01", "\\1", "\\k<n>", "\\cA", "\\c1", "\\x41", "\\x4", "\\u0041", "\\u{1F600}"),
        *("\\u{110000}", "\\p{L}", "\\pL", "\\p{Script=Greek}", "\\p{Nothing}", "\\"),
    ]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=5).map("".join)

PROGRAM = """
const patterns = JSON.parse(require("fs").readFileSync(0, "utf8"));
const compiles = (text) => { try { new RegExp(text, "u"); return true } catch { return false } };
console.log(JSON.stringify(patterns.map(compiles)));
"""

REFUSED_BY_CHOICE = re.compile(r"&&|~~|--|\(\?i:|\[[^\]]*\[")
"""What ECMAScript has, and is refused: operators of the engine, and modifiers, which few clients have yet."""


def in_ecmascript(patterns: list[str]) -> list[bool]:
    """Return for each pattern whether a JavaScript engine compiles it."""
    node = shutil.which("node")
    if node is None:
        skips.skip(skips.NODE, "the syntax of patterns")
    done = subprocess.run([node, "-e", PROGRAM], input=json.dumps(patterns), capture_output=True, text=True)
    found: list[bool] = json.loads(done.stdout)
    return found


def samples(number: int) -> list[str]:
    """Return different patterns, as Hypothesis draws them."""
    drawn: set[str] = set()

    def is_enough(pattern: str) -> bool:
        drawn.add(pattern)
        return len(drawn) >= number

    find(PATTERNS, is_enough, settings=settings(max_examples=10 * number, database=None))
    return sorted(drawn)


def test_a_pattern_is_accepted_if_ecmascript_compiles_it_and_the_time_is_linear() -> None:
    patterns = samples(2_000)
    for pattern, compiles in zip(patterns, in_ecmascript(patterns), strict=True):
        problem = syntax_problem(pattern)
        if problem is None:
            assert compiles or is_unknown_property(pattern) or is_reversed_range(pattern), pattern
        elif problem != NONLINEAR and not REFUSED_BY_CHOICE.search(pattern):
            assert not compiles, (pattern, problem)


def is_unknown_property(pattern: str) -> bool:
    """Return whether a pattern names a property of characters, which the engine checks."""
    return "\\p{Nothing}" in pattern


def is_reversed_range(pattern: str) -> bool:
    """Return whether a class has a range from a later to an earlier character, which the engine checks."""
    return "z-a" in pattern


@pytest.mark.parametrize("pattern", ["[z-a]", r"\p{Nothing}"])
def test_the_engine_refuses_what_the_syntax_allows(pattern: str) -> None:
    assert syntax_problem(pattern) is None
    with pytest.raises(ValueError, match="regex"):
        jsonschema_rs.Draft202012Validator({"pattern": pattern})


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?i)^abc$", "(?i)"),
        ("^(?P<n>x)$", "(?P<n>"),
        (r"\Aabc\z", r"\\A"),
        ("a**", "'*'"),
        ("[a&&b]", "&&"),
        ("[[a]]", "[[a]]"),
        ("a{3,1}", "{3,1}"),
        ("(a", "parentheses"),
        ("a)", "parentheses"),
        ("(?<n>a)|(?<n>b)", "name"),
        ("(?=a)", "look-around"),
        (r"(a)\1", "back-references"),
    ],
)
def test_a_problem_names_what_is_wrong(pattern: str, said: str) -> None:
    assert said in (syntax_problem(pattern) or "")
