"""Results of the suite's servers: those of the golden corpus, and those of servers that are played here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from corpus.golden import Record, load
from mcp_roundtrip import Server
from mcp_roundtrip.protocol.constants import (
    HEADER_PROTOCOL_VERSION,
    LEGACY_VERSION,
    META_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
)
from mcp_roundtrip_testing import Player
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.authorized_server import databases
from support.project import FUNCTIONS, ROOT
from support.replayed_results import LISTS, METHODS, Exchange
from support.response_validation import STANDARD
from support.sample_servers import TYPES, member_server, result_server, type_server

Request = Mapping[str, Any]
"""The parameters of a request."""

SCHEMAS: Final = ("inputSchema", "outputSchema", "requestedSchema")
"""The members of definitions and questions that hold a schema."""

LEGACY_CLIENT: Final = "typescript-sdk-initialize"


def distinct(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Return exchanges that a client can read, each result once."""
    found: dict[str, Exchange] = {}
    for each in exchanges:
        if _is_for_every_client(each):
            content = {**each.result, "requestState": "requestState" in each.result}
            key = json.dumps([each.version, each.method, content, each.tool], sort_keys=True)
            found.setdefault(key, each)
    return list(found.values())


def of_each_shape(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Return one of the exchanges whose results differ in texts and numbers only, or inside schemas."""
    shapes = {
        json.dumps([each.version, each.method, _shape(each.result), _shape(each.tool)], sort_keys=True): each
        for each in exchanges
    }
    return list(shapes.values())


def _shape(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return sorted({json.dumps(_shape(item), sort_keys=True) for item in value})
    if isinstance(value, dict):
        if name in SCHEMAS:
            return [value.get("type"), sorted(value)]
        return {member: _shape(item, member) for member, item in value.items()}
    return value if name in ("type", "mode", "method", "role", "action") else type(value).__name__


def _is_for_every_client(exchange: Exchange) -> bool:
    """Return whether a result needs no extension: no task, no namespaced request, no dialect of SEP-2322."""
    result = exchange.result
    if exchange.version == PROTOCOL_VERSION:
        requests = result.get("inputRequests", {}).values()
        return result["resultType"] != "task" and all(request["method"] in STANDARD for request in requests)
    return exchange.method != "tools/call" or "content" in result


def of_corpus() -> Iterator[Exchange]:
    """Yield the exchanges of the golden corpus."""
    for name, record in load().items():
        yield from _of_case(name, json.loads(record))


def messages_of_corpus() -> Iterator[tuple[str, Any]]:
    """Yield each message of the golden corpus, also those of extensions, with the name of its case."""
    for name, record in load().items():
        for exchange in json.loads(record)["exchanges"]:
            for message in _messages(exchange.get("response")):
                yield name, message


def _of_case(name: str, record: Record) -> Iterator[Exchange]:
    tools: dict[str, Any] = {}
    for exchange in record["exchanges"]:
        sent = exchange["request"].get("body", exchange["request"].get("direct"))
        if not isinstance(sent, dict) or sent.get("method") not in METHODS:
            continue
        method, params = sent["method"], sent.get("params", {})
        for message in _messages(exchange.get("response")):
            if (result := message.get("result")) is not None:
                if method == "tools/list":
                    tools |= {tool["name"]: tool for tool in result["tools"]}
                tool = tools.get(params["name"]) if method == "tools/call" else None
                yield Exchange(name, _version(exchange["request"], params), method, result, tool)


def _version(request: Mapping[str, Any], params: Mapping[str, Any]) -> str:
    legacy = request.get("headers", {}).get(HEADER_PROTOCOL_VERSION, LEGACY_VERSION)
    return str(params.get("_meta", {}).get(META_PROTOCOL_VERSION, legacy))


def _messages(response: Any) -> list[Any]:
    """Return the JSON-RPC messages of a recorded response. The record shows texts that are JSON as data."""
    body = response.get("body") if isinstance(response, dict) else None
    if not isinstance(body, dict):
        return []
    texts = [body] if "json" in body else [event["data"] for event in body["sse"]]
    return [_as_sent(text["json"]) for text in texts]


def _as_sent(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_sent(item) for item in value]
    if not isinstance(value, dict):
        return value
    as_sent = {name: _as_sent(member) for name, member in value.items()}
    return json.dumps(as_sent["json"]) if as_sent.keys() == {"json"} else as_sent


def of_examples() -> Iterator[Exchange]:
    """Yield the definitions of examples and of the suite's servers, and results of the conformance server."""
    servers = load_function_servers(FUNCTIONS) | load_function_servers(ROOT / "tests")
    servers |= load_function_servers(ROOT / "benchmarks/functions")
    servers |= {"authorized server": databases()}
    for name, server in servers.items():
        yield from of_lists(name, server)
    yield from of_features_without_input("conformance server", servers["conformance_server"])


def of_samples(arguments: Mapping[str, Any]) -> Iterator[Exchange]:
    """Yield the definitions and results of the sample servers. Calls have `arguments`, by sample type."""
    yield from of_lists("types", type_server(*TYPES))
    for sample in TYPES:
        server = type_server(sample)  # the player checks all tools of a server before each request
        names = {name: {} if name.startswith("form") else arguments[sample] for name in server.tools}
        calls = [{"name": name, "arguments": given} for name, given in names.items()]
        yield from of_requests(sample, server, "tools/call", calls)
    for where, server in {"results": result_server(), "members": member_server()}.items():
        yield from of_lists(where, server)
        yield from of_features_without_input(where, server)


def of_lists(where: str, server: Server) -> Iterator[Exchange]:
    """Yield the definitions of a server, in both eras, each as the only one of a list."""
    for player in (Player(server), Player(server, client=LEGACY_CLIENT)):
        version = PROTOCOL_VERSION if player.profile is None else player.profile.protocol_version
        for method, member in LISTS.items():
            result = player.request(method).get("result", {})
            for definition in result.get(member, ()):
                each = f"{where}: {json.dumps(definition)}"
                yield Exchange(each, version, method, {**result, member: [definition]})


def of_features_without_input(where: str, server: Server) -> Iterator[Exchange]:
    """Yield the results of tools without required arguments, of prompts and of resources."""
    tools = [
        {"name": name, "arguments": {}}
        for name, tool in server.tools.items()
        if not tool.parameters.json_schema().get("required")
    ]
    prompts = [
        {"name": name, "arguments": dict.fromkeys(prompt.parameters.names, "a:b")}
        for name, prompt in server.prompts.items()
    ]
    yield from of_requests(where, server, "tools/call", tools)
    yield from of_requests(where, server, "prompts/get", prompts)
    yield from of_requests(where, server, "resources/read", [{"uri": uri} for uri in server.resources])


def of_requests(where: str, server: Server, method: str, requests: Iterable[Request]) -> Iterator[Exchange]:
    """Yield the results of requests of a method with these parameters. Errors are left out."""
    player = Player(server)
    for params in requests:
        result = player.request(method, **params).get("result")
        if result is not None:
            tool = server.tools[params["name"]].definition() if method == "tools/call" else None
            yield Exchange(f"{where}: {json.dumps(params)}", PROTOCOL_VERSION, method, result, tool)
