"""W3C trace context: a well-formed context is passed on, any other is ignored."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_roundtrip.protocol.trace import MAX_LENGTH, MAX_LOG_LENGTH, TraceContext
from support.json_values import any_json

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"

hexadecimal = st.sampled_from("0123456789abcdef")
json_values = any_json(max_leaves=5)


def digits(count: int) -> st.SearchStrategy[str]:
    return st.text(hexadecimal, min_size=count, max_size=count)


def tracestate(value: Any) -> str | None:
    return TraceContext.from_meta({"traceparent": PARENT, "tracestate": value}).tracestate


def baggage(value: Any) -> str | None:
    return TraceContext.from_meta({"baggage": value}).baggage


@given(digits(32), digits(16), digits(2))
@example(TRACE, SPAN, "01")
def test_every_traceparent_of_version_00_is_passed_on_unchanged(trace: str, span: str, flags: str) -> None:
    whole = f"00-{trace}-{span}-{flags}"
    context = TraceContext.from_meta({"traceparent": whole, "com.example/other": 1})
    if set(trace) == {"0"} or set(span) == {"0"}:
        assert context == TraceContext()
        assert (context.trace_id, context.span_id) == (None, None)
    else:
        assert context == TraceContext(traceparent=whole)
        assert (context.trace_id, context.span_id) == (trace, span)


@pytest.mark.parametrize(
    ("received", "accepted"),
    [
        (f"cc-{TRACE}-{SPAN}-01", PARENT),
        (f"01-{TRACE}-{SPAN}-01-what-the-future-will-be-like", PARENT),
        (f"fe-{TRACE}-{SPAN}-01-", PARENT),
        (f"cc-{TRACE}-{SPAN}-ff-\n", PARENT),
        (f"cc-{TRACE}-{SPAN}-fe", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        (f"cc-{TRACE}-{SPAN}-01.more", None),
        (f"{PARENT}\n", None),
        (f"00-{TRACE[:-1]}٣-{SPAN}-01", None),
        ("", None),
    ],
)
def test_a_later_version_is_read_by_its_first_four_fields_and_a_malformed_traceparent_counts_as_absent(
    received: str, accepted: str | None
) -> None:
    assert TraceContext.from_meta({"traceparent": received}).traceparent == accepted


WELL_FORMED = {
    "tracestate": [
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        f"{'z' * 256}=1",
        f"{'0' * 241}@{'v' * 14}=1",
        "a-_*/0=!~ x",
        f"foo={'v' * 256}",
        "foo=1,foo=2",
        ",".join(["foo=1"] * 32),
    ],
    "baggage": [
        "userId=alice,serverNode=DF%2028,isProduction=false",
        "key1=value1;property1;property2,key2 = value2,key3=value3; propertyKey=propertyValue",
        "k= v\t;\tp ; q = 1",
        f"k={'v' * (MAX_LENGTH - 2)}",
    ],
}
MALFORMED = {
    "tracestate": [
        *("rojo", "Rojo=1", "0rojo=1", "foo@0bar=1", "foo =1", "foo=a=b", "foo=1,Rojo=1", " ,\t, "),
        *(f"{'z' * 257}=1", f"{'t' * 242}@v=1", f"t@{'v' * 15}=1", f"foo={'v' * 257}"),
        f"foo={'v' * 256}," * 32,
        ",".join(["foo=1"] * 33),
    ],
    "baggage": [
        *("a=1,b,c=3", "a=1,=2", 'a=1,b="2"', "a=1,b=x y", "a=1,b=é", "a=1,b=2;", "a=1,b=\n", "alice", ""),
        f"k={'v' * (MAX_LENGTH - 1)}",
    ],
}


@pytest.mark.parametrize("member", WELL_FORMED)
def test_a_well_formed_member_is_passed_on_and_a_malformed_one_counts_as_absent_beside_a_traceparent(
    member: str,
) -> None:
    def read(value: str) -> TraceContext:
        return TraceContext.from_meta({"traceparent": PARENT, member: value})

    for value in WELL_FORMED[member]:
        assert read(value) == TraceContext(**{"traceparent": PARENT, member: value})
    for value in MALFORMED[member]:
        assert read(value) == TraceContext(traceparent=PARENT), value


@pytest.mark.parametrize("parent", [None, PARENT.upper(), 1])
def test_a_tracestate_without_a_valid_traceparent_is_treated_as_absent(parent: Any) -> None:
    assert TraceContext.from_meta({"traceparent": parent, "tracestate": "rojo=1"}) == TraceContext()


@pytest.mark.parametrize("value", ["a=1 , b=2\t", "\ta=1\t,,b=2,"])
def test_blanks_around_members_and_empty_members_are_removed(value: str) -> None:
    assert (tracestate(value), baggage(value)) == ("a=1,b=2", "a=1,b=2")


def test_the_log_has_the_beginning_of_long_members() -> None:
    long = f"k={'v' * 600}"
    fields = TraceContext.from_meta({"traceparent": PARENT, "baggage": long}).log_fields()
    assert fields == {"trace_id": TRACE, "span_id": SPAN, "baggage": long[:MAX_LOG_LENGTH]}


@pytest.mark.parametrize(
    "attack", [("k=" + " " * 30_000 + ";") * 30 + '"', "," * 900_000, " " * 900_000, "a" * 900_000]
)
def test_hostile_values_are_refused_quickly(attack: str) -> None:
    meta = {"traceparent": PARENT, "tracestate": attack, "baggage": attack}
    assert TraceContext.from_meta(meta) == TraceContext(traceparent=PARENT)


MEMBERS = ["traceparent", "tracestate", "baggage"]
bits = st.sampled_from([PARENT, "cc-", "-", ",", ";", "=", " ", "a", "a=1", "@", "\n", "0" * 32, "é"])


@given(st.dictionaries(st.sampled_from(MEMBERS), json_values | st.lists(bits).map("".join)))
def test_reading_a_trace_is_idempotent(meta: dict[str, Any]) -> None:
    context = TraceContext.from_meta(meta)
    values = context.traceparent, context.tracestate, context.baggage
    assert TraceContext.from_meta(dict(zip(MEMBERS, values, strict=True))) == context
    for value in values:
        assert value is None or (value.isascii() and "\n" not in value)
