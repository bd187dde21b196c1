"""Official clients read definitions and results of all kinds, and Ajv compiles every schema in them.

The results are those of the golden corpus, the examples, the benchmarks, the servers of the suite, and
servers with all sample types. The Python client and both generations of the TypeScript client are real; their
sessions are in memory. Clients get no result that needs an extension (tasks, namespaced requests, the dialect
of SEP-2322); Ajv gets the schemas in these, too. Not covered: types that a single test
defines, and schemas that are made to be costly.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from corpus.golden import load
from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from mcp_roundtrip.schema.json_schema_validator import CompiledSchema
from support.json_values import values
from support.recorded_exchanges import (
    SCHEMAS,
    distinct,
    messages_of_corpus,
    of_corpus,
    of_each_shape,
    of_examples,
    of_samples,
)
from support.replayed_results import PROGRAM, Exchange, refusals_of_python, session
from support.sample_servers import RESULTS, type_server
from support.type_samples import ZOO

pytest_plugins = ["support.typescript_client"]

few_values = settings(
    max_examples=6,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def values_of(schema: Mapping[str, Any]) -> list[Any]:
    """Return values that conform to a schema, and near misses."""
    found: list[Any] = []

    @few_values
    @given(values(schema))
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return [value for value in found if not is_judged_differently(schema, value)]


def is_judged_differently(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether Ajv may judge a value differently: it divides floats, and does not know Base64."""
    rules, text = json.dumps(schema), json.dumps(value)
    return ("multipleOf" in rules and "e+" in text) or '"base64' in rules


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    return CompiledSchema.compile(schema).is_valid(value)


def tools_list(**members: Any) -> dict[str, Any]:
    tool = {"name": "invalid", "inputSchema": {"type": "object"}, **members}
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool]}


WRONG: Final = {"resultType": "complete", "content": [], "structuredContent": {"a": 1}}
TEXTS: Final = {
    "name": "texts",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "additionalProperties": {"type": "string"}},
}
INVALID: Final = [
    Exchange(f"invalid: {what}", version, *invalid)
    for version in (PROTOCOL_VERSION, LEGACY_VERSION)
    for what, *invalid in (
        ("sizes of an icon", "tools/list", tools_list(icons=[{"src": "a:b", "sizes": "48x48"}])),
        ("annotations", "tools/list", tools_list(annotations={"readOnlyHint": "maybe"})),
        ("a structured result", "tools/call", WRONG, TEXTS),
    )
]
"""Results that every client refuses: what refuses nothing is no check."""


@pytest.fixture(scope="module")
def arguments():
    """Values for the arguments of the tools of each sample type."""
    return {sample: values_of(argument_schema(sample)) for sample in ZOO}


def argument_schema(sample: str) -> dict[str, Any]:
    value, *_ = type_server(sample).tools.values()
    return value.parameters.json_schema()


@pytest.fixture(scope="module")
def exchanges(arguments):
    valid = {}
    for sample, given_values in arguments.items():
        schema = argument_schema(sample)
        valid[sample] = next((value for value in given_values if is_valid(schema, value)), {})
    return distinct([*of_corpus(), *of_examples(), *of_samples(valid)])


@pytest.fixture(scope="module")
def shown(exchanges):
    """What each client is given. Ajv, which the TypeScript clients use, judges all values."""
    return [*of_each_shape(exchanges), *INVALID]


@dataclass(frozen=True)
class Judged:
    """A schema, where it was found, and values for it."""

    where: str
    schema: Mapping[str, Any]
    values: list[Any]


@pytest.fixture(scope="module")
def judged(exchanges, arguments):
    """Every schema in the exchanges and in the messages of the corpus.

    The results of sample types are given the values of their arguments. Schemas of the corpus have simpler
    types than the samples, and get no values.
    """
    known: dict[str, list[Any]] = {}
    for sample, objects in arguments.items():
        value, member, *_ = type_server(sample).tools.values()
        known |= dict.fromkeys(
            map(as_key, (member.parameters.json_schema(), member.output.json_schema())), objects
        )
        members = [each["x"] for each in objects if isinstance(each, dict) and "x" in each]
        known[as_key(value.output.json_schema())] = members
    found: dict[str, Judged] = {}
    for where, value in (*((each.where, each.result) for each in exchanges), *messages_of_corpus()):
        for schema in schemas_in(value):
            key = as_key(schema)
            if key not in found:
                is_recorded = where in load()
                found[key] = Judged(
                    where, schema, known.get(key) or ([] if is_recorded else values_of(schema))
                )
    return list(found.values())


@pytest.fixture(scope="module")
def structured(exchanges):
    """The structured results, by the output schemas of their tools."""
    found: dict[str, Judged] = {}
    for each in exchanges:
        schema = (each.tool or {}).get("outputSchema")
        if schema is not None and "structuredContent" in each.result:
            judged = found.setdefault(as_key(schema), Judged(each.where, schema, []))
            judged.values.append(each.result["structuredContent"])
    return list(found.values())


def as_key(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True)


def schemas_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from schemas_in(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name in SCHEMAS:
                yield member
            else:
                yield from schemas_in(member)


@dataclass(frozen=True)
class Verdicts:
    """What the program with the TypeScript clients and Ajv says.

    `refusals` has places and errors by client. The others have an item for each schema: whether each of its
    values is valid, or why the schema is not. `results` has them for the structured results.
    """

    refusals: Mapping[str, Sequence[tuple[str, str]]]
    schemas: Sequence[Sequence[bool] | str]
    results: Sequence[Sequence[bool] | str]
    invalid: Sequence[bool] | str


@pytest.fixture(scope="module")
def verdicts(run_module, shown, judged, structured):
    legacy = session(shown, legacy=True)
    sessions = {"modern": session(shown, legacy=False), "legacy": legacy, "version 1": legacy}
    schemas: list[tuple[Any, Any]] = [(each.schema, each.values) for each in (*judged, *structured)]
    schemas.append(({"pattern": "(?i)a"}, []))
    sent = json.dumps({"sessions": sessions, "schemas": schemas})
    said = json.loads(run_module(PROGRAM.read_text("utf-8"), sent))
    *by_schema, invalid = said["verdicts"]
    return Verdicts(said["refusals"], by_schema[: len(judged)], by_schema[len(judged) :], invalid)


@pytest.mark.parametrize("client", ["modern", "legacy", "version 1"])
def test_a_typescript_client_reads_every_result(verdicts, client):
    assert_only_the_invalid_are_refused(verdicts.refusals[client])


@pytest.mark.anyio
@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
async def test_the_python_client_reads_every_result(shown, legacy):
    refused = await refusals_of_python(session(shown, legacy=legacy), legacy=legacy)
    assert_only_the_invalid_are_refused(refused)


def assert_only_the_invalid_are_refused(refused: Sequence[tuple[str, str]]) -> None:
    wrongly = [refusal for refusal in refused if not refusal[0].startswith("invalid: ")]
    assert wrongly == []
    assert {where for where, _ in refused} == {each.where for each in INVALID}


def test_nearly_every_sample_type_has_a_structured_result(exchanges):
    """Generated values of a type may all be near misses, and `plain` returns other values than it says."""
    returned = {
        each.tool.get("description") for each in exchanges if each.tool and "structuredContent" in each.result
    }
    assert len(ZOO.keys() - returned) <= 4


def test_every_sample_result_is_structured(exchanges):
    results = [each for each in exchanges if each.where.startswith('results: {"name": ')]
    calls = [each for each in results if each.method == "tools/call"]
    assert len(calls) == len({repr(result) for result in RESULTS})
    assert [each.where for each in calls if "structuredContent" not in each.result] == []


def test_ajv_compiles_every_schema(verdicts, judged):
    problems = [
        (each.where, said)
        for each, said in zip(judged, verdicts.schemas, strict=True)
        if isinstance(said, str)
    ]
    assert problems == []
    assert isinstance(verdicts.invalid, str)


def test_ajv_accepts_every_structured_result(verdicts, structured):
    said = zip(structured, verdicts.results, strict=True)
    assert [each.where for each, valid in said if valid != [True] * len(each.values)] == []


def test_ajv_and_the_server_agree_on_values(verdicts, judged):
    for each, said in zip(judged, verdicts.schemas, strict=True):
        for value, by_ajv in zip(each.values, said, strict=True):
            assert is_valid(each.schema, value) is by_ajv, (each.schema, value)
