"""The cost of patterns: CPU time is bounded by the size of the pattern and the length of the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_core import SchemaError, SchemaValidator, core_schema

from mcp_roundtrip import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.arguments import Arguments
from mcp_roundtrip.schema.patterns import (
    LONGEST_UNLIMITED,
    MAX_PATTERN_STEPS,
    PatternBudget,
    TextTooLong,
    pattern_size,
    size_problem,
)
from mcp_roundtrip.schema.raw_arguments import RawArguments

NESTED = "(a{1,300}){1,20}b"


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("https://example\\.com", 0),
        ("^[a-z]+$", 1),
        (r"^[\w.-]{1,64}$", 3 * 64),
        (NESTED, 6_000),
        ("(?:a{2}b){3}", 9),
        ("a{2}{3}", 5),  # the first one is a literal outside groups
        (r"(\d{4}-\d{2}){2,}", 2 * (3 * 4 + 1 + 3 * 2)),
        (r"[^\]]{3}", 9),
        ("[]a]{3}[a[b]{9}c]{2}", 5),
        (r"\p{L}{4}\x{41}{2}", 13),
        (r"\(\[\{{3}", 2),
        (r"(?i)(?P<year>[0-9]{4})-(?<month>[0-9]{2})", 6),
        ("(?:[[:alpha:]]{3})", 3),
        (r"[a-z0-9\-\.\]]{500}[\x20-\x7e]{9}", 509),
        (r"[\w\-]{3}[\xe9]{3}[\x{e9}]{3}[a[^b]]{3}[[:^alpha:]]{3}[\u00e9]{3}", 6 * 3 * 3),
    ],
)
def test_the_size_of_a_pattern_includes_its_repetitions(pattern: str, size: int) -> None:
    assert pattern_size(pattern) == size


def test_comments_do_not_reduce_the_size_of_a_pattern() -> None:
    assert pattern_size("(?x)(a # ) \n b){300}") >= 300


ATOMS = ["a", "b", "[ab]", "[^z]", ".", r"\w", r"\W", r"\p{L}", "é", "[éa]", "(?i:k)", r"\b"]
COUNTS = ["*", "+", "?", "{2}", "{1,9}", "{10}", "{0,30}", "{50}", "{3,}"]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(COUNTS)),
    ),
    max_leaves=6,
)
SEARCHES = st.builds(
    "{}{}{}".format, st.sampled_from(["", "^", "a"]), PATTERNS, st.sampled_from(["", "[yz]", "-", "$"])
)


SLOWEST = r"(\w?){100}-", "𐐀"


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pattern=SEARCHES, unit=st.sampled_from(["a", "ab", "abz", "aé", "日", "😀", "aé日😀 "]))
@example(r"(\w?){100}-", "日")
@example(NESTED.replace("b", "[bc]"), "a")
@example("a[ab]{600}[cd]", "aab")
def test_no_pattern_takes_much_longer_for_its_size_than_the_slowest_known_one(
    pattern: str, unit: str
) -> None:
    assume(10 <= pattern_size(pattern) <= 6_000)
    try:
        searched = search(pattern, unit)
    except SchemaError:
        return
    # Absolute times differ between machines, and a busy machine measures single ones too long.
    assert any(searched() <= 4 * search(*SLOWEST)() for _ in range(5))


def search(pattern: str, unit: str) -> Callable[[], float]:
    """Return a function that searches a fiftieth of the longest text, and returns its CPU time in seconds."""
    engine = SchemaValidator(core_schema.str_schema(pattern=pattern))
    length = MAX_PATTERN_STEPS // 50 // pattern_size(pattern)
    text = (unit * length)[: length if unit.isascii() else length // 4]

    def timed() -> float:
        start = time.thread_time()
        engine.isinstance_python(text)
        return time.thread_time() - start

    return timed


def test_a_budget_is_exhausted_after_its_last_step() -> None:
    budget, pattern = PatternBudget(), "[a-c]{100}"
    longest = MAX_PATTERN_STEPS // pattern_size(pattern)
    assert budget.matches(pattern, "a" * longest)
    with pytest.raises(TextTooLong):
        budget.matches(pattern, "a")


def arguments(annotation: Any) -> Arguments:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    return Arguments.from_function(tool, ())


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Field(pattern=NESTED)],
        Annotated[str, Field(pattern=NESTED, max_length=834)],
        Annotated[str, Field(max_length=10), Field(pattern=r"^\w{1,3000}$")],
        dict[Annotated[str, Field(pattern=r"[a-z]{1,2000}x")], int],
        list[Annotated[str, Field(pattern=r"^\w{1,500}$")] | None],
    ],
)
def test_a_pattern_too_large_for_its_texts_is_refused_with_the_remedy(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match=r"parameter 'value': the pattern .*write `\+` or `\*`"):
        arguments(annotation).validate({"value": ""})


@pytest.mark.parametrize("pattern", [NESTED, "[a-z]{1,2000}x"])
def test_the_limit_in_the_message_is_accepted(pattern: str) -> None:
    problem = size_problem(pattern, None, "max_length=")
    assert problem is not None
    limit = int(problem.partition("max_length=")[2].split()[0])
    assert size_problem(pattern, limit, "") is None
    assert size_problem(pattern, limit + 1, "") is not None
    limited = Annotated[str, Field(pattern=pattern, max_length=limit)]
    with pytest.raises(ArgumentsError, match=f"at most {limit} characters"):
        arguments(list[limited]).validate({"value": ["a" * (LONGEST_UNLIMITED + 1)]})


def test_ordinary_patterns_need_no_limit() -> None:
    hosts = r"^[a-z]{1,63}(\.[a-z]{1,63}){0,10}$"
    for pattern in (r"^[A-Za-z0-9_-]{8,128}$", r"^\w{1,255}$", hosts, "^(a+)+$"):
        assert size_problem(pattern, None, "") is None, pattern


Searched = Annotated[str, Field(pattern=r"\w{1,100}-")]


class Page(BaseModel):
    text: Searched
    number: int = 0


TEXT_TOO_LONG = "Input is too long to be matched with its pattern; send a shorter text"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Searched, "a" * 350_000),
        (list[Searched], ["a" * 999 + "-"] * 350),
        (Page, {"text": "a" * 350_000 + "-"}),
        (Page, {"text": "a" * 350_000 + "-", "number": 1.0}),
        (Searched | int, "é" * 60_000),
    ],
)
def test_a_text_too_long_for_its_pattern_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(ArgumentsError, match=TEXT_TOO_LONG):
        arguments(annotation).validate({"value": value})


def test_a_text_within_the_budget_is_matched_completely() -> None:
    text = "!" * 66_000 + "a-"
    assert arguments(Searched).validate({"value": text}) == {"value": text}
    assert arguments(Page).validate({"value": {"text": text, "number": 1.0}})["value"].number == 1
    with pytest.raises(ArgumentsError, match="match the pattern"):
        arguments(Searched).validate({"value": "!" * 66_000})


def raw(**member: Any) -> RawArguments:
    def tool(value: Any) -> None: ...

    return RawArguments.from_function(
        tool, (), {"type": "object", "properties": {"value": {"type": "string", **member}}}
    )


def test_patterns_in_an_own_schema_have_the_same_bounds() -> None:
    with pytest.raises(
        DefinitionError, match=r'input_schema\.properties\.value: .* with "maxLength": 833 or'
    ):
        raw(pattern=NESTED)
    limited = raw(pattern=NESTED, maxLength=833)
    assert limited.validate({"value": "ab"})
    with pytest.raises(ArgumentsError) as refused:
        limited.validate({"value": "a" * 834})
    assert str(refused.value) == "arguments.value: Input should have 833 characters at most"
    with pytest.raises(ArgumentsError, match=f"arguments: {TEXT_TOO_LONG}"):
        raw(pattern=r"\w{1,100}-").validate({"value": "a" * 400_000})
