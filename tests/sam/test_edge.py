import json
import re
from typing import Any

from mcp_roundtrip.protocol.constants import HEADER_METHOD, HEADER_NAME
from mcp_roundtrip.protocol.jsonrpc import TOO_MANY_REQUESTS
from mcp_roundtrip.server.task_methods import POLL_INTERVAL_MS
from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.template.yaml_reader import load, parse
from support import cloudformation, skips
from support.interpreters import output_of
from support.option_values import EDGE_DOMAIN, EDGE_HOST, EDGE_WEB_ACL
from support.project import ROOT
from support.transformed_template import WORKER_OF, declared_parameters, properties

TEMPLATE = ROOT / "platform/edge/template.yaml"
PAGE = (ROOT / "docs/guides/edge-routing.md").read_text("utf-8")

LIMITS = (ROOT / "docs/guides/limits.md").read_text("utf-8")
LIMITED = (
    *("ThrottlingRate", "ThrottlingBurst", "RequestsPerCaller", "RequestsPerAddress"),
    *("MaxOpenTasks", "ReservedConcurrentExecutions", "MaximumConcurrency"),
)

STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/mcp-edge/51af3dc0-da77-11e4-872e-1234567db123"


def edge() -> Any:
    return load(TEMPLATE)


def resources(**given: str) -> dict[str, Any]:
    values = {**cloudformation.parameters_of(edge(), **EDGE_HOST, **given), "AWS::StackId": STACK_ID}
    return cloudformation.resources(edge(), values)


def distribution(**given: str) -> Any:
    return resources(**given)["Distribution"]["Properties"]["DistributionConfig"]


def test_a_domain_needs_its_certificate():
    def broken(**given: str) -> list[str]:
        return cloudformation.broken_rules(edge(), cloudformation.parameters_of(edge(), **EDGE_HOST, **given))

    assert broken(**EDGE_DOMAIN) == []
    [rule] = broken(DomainName="tools.example")
    assert "CertificateArn" in rule


def test_requests_are_forwarded_with_their_tokens_and_not_cached():
    [origin] = distribution()["Origins"]
    assert origin["DomainName"] == "api.example"
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    behaviour = distribution()["DefaultCacheBehavior"]
    assert behaviour["ViewerProtocolPolicy"] == "https-only"
    # Managed policies of AWS: CachingDisabled and AllViewerExceptHostHeader.
    assert behaviour["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behaviour["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"


def test_an_existing_web_acl_replaces_that_of_the_stack():
    assert distribution()["WebACLId"] == "${WebAcl.Arn}"
    assert distribution(**EDGE_WEB_ACL)["WebACLId"] == EDGE_WEB_ACL["WebAclArn"]
    assert "WebAcl" not in resources(**EDGE_WEB_ACL)


def test_limits_are_for_callers_and_for_addresses_that_they_share_and_nothing_is_sampled():
    acl = resources()["WebAcl"]["Properties"]
    seen = [acl["VisibilityConfig"], *(rule["VisibilityConfig"] for rule in acl["Rules"])]
    assert not any(each["SampledRequestsEnabled"] for each in seen)
    # No rule reads bodies.
    names = ["RequestsPerCaller", "RequestsPerAddress", "IpReputation"]
    assert [rule["Name"] for rule in acl["Rules"]] == names
    by_caller, by_address = (rule["Statement"]["RateBasedStatement"] for rule in acl["Rules"][:2])
    [key] = by_caller["CustomKeys"]
    assert (by_caller["AggregateKeyType"], key["Header"]["Name"]) == ("CUSTOM_KEYS", "authorization")
    assert by_address["AggregateKeyType"] == "IP"
    assert int(by_caller["Limit"]) < int(by_address["Limit"])


def test_a_client_above_a_limit_gets_an_error_that_it_can_read_and_when_to_try_again():
    acl = resources()["WebAcl"]["Properties"]
    for rule in acl["Rules"][:2]:
        response = rule["Action"]["Block"]["CustomResponse"]
        headers = {header["Name"]: header["Value"] for header in response["ResponseHeaders"]}
        body = acl["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        assert (response["ResponseCode"], headers["Access-Control-Allow-Origin"]) == (429, "*")
        assert body["ContentType"] == "APPLICATION_JSON"
        error = json.loads(body["Content"])["error"]
        assert error["code"] == TOO_MANY_REQUESTS
        assert error["data"] == {"retryAfterMs": 1_000 * int(headers["Retry-After"])}


def test_a_caller_can_poll_all_its_open_tasks():
    rule = resources()["WebAcl"]["Properties"]["Rules"][0]["Statement"]["RateBasedStatement"]
    polls = rule["EvaluationWindowSec"] * 1_000 // POLL_INTERVAL_MS
    open_tasks = declared_parameters()["MaxOpenTasks"]["Default"]
    assert polls * open_tasks <= int(rule["Limit"]) * 2 // 3, "a third is left for other requests"


def test_the_page_of_limits_has_the_defaults_of_both_templates():
    rows = re.findall(r"^\| .*? \| (.*?) \| `(\w+)`(?:, `(\w+)`)?", LIMITS, re.MULTILINE)
    shown = {name: default.replace(",", "") for default, *names in rows for name in names if name}
    parameters = {**declared_parameters(), **edge()["Parameters"]}
    defaults = {name: str(each.get("Default")) for name, each in parameters.items()}
    worker = min(WORKER_OF.values())
    defaults["ReservedConcurrentExecutions"] = str(properties(worker)["ReservedConcurrentExecutions"])
    defaults |= {name: str(each) for name, each in properties(f"{worker}Tasks")["ScalingConfig"].items()}
    names = shown.keys() & defaults.keys()
    assert names == {*LIMITED}
    for name in names:
        assert defaults[name] in shown[name].split(), name


def test_a_distribution_without_routing_and_challenges_runs_no_function():
    assert "RequestFunction" not in resources(RouteByName="disabled")
    assert "FunctionAssociations" not in distribution(RouteByName="disabled")["DefaultCacheBehavior"]
    for given in ({}, {"RouteByName": "disabled", "ChallengeAtEdge": "enabled"}):
        [association] = distribution(**given)["DefaultCacheBehavior"]["FunctionAssociations"]
        assert association["EventType"] == "viewer-request"


def code(**given: str) -> str:
    text: str = resources(**given)["RequestFunction"]["Properties"]["FunctionCode"]
    return text


CODE = code()

MAX_NAME = 64
"""Characters of a CloudFront function's name."""

MAX_FUNCTION = 10 * 1024
"""Bytes of a CloudFront function."""


def catalog() -> Any:
    return json.loads((ROOT / "functions/front_door/catalog.json").read_text("utf-8"))


def owners() -> dict[str, dict[str, str]]:
    keys = {"tools": "name", "prompts": "name", "resources": "uri"}
    methods = {"tools": "tools/call", "prompts": "prompts/get", "resources": "resources/read"}
    return {
        methods[member]: {row["definition"][key]: row["owner"] for row in catalog()[member]}
        for member, key in keys.items()
    }


def test_the_function_has_the_owner_of_each_feature_a_short_name_and_a_size_below_the_limit():
    assert edge_routes.owner_table(catalog()) == owners()
    name = resources()["RequestFunction"]["Properties"]["Name"]
    assert name == "mcp-request-51af3dc0-da77-11e4-872e-1234567db123"
    assert len(name) <= MAX_NAME
    assert len(CODE.encode()) <= MAX_FUNCTION


def test_of_a_long_table_the_function_has_what_fits():
    names = [f"{'x' * 26}_{number:03}" for number in range(200)]
    many = {"tools": [{"owner": name, "definition": {"name": name}} for name in names]}
    fits = edge_routes.owner_table(many)["tools/call"]
    assert list(fits) == names[: len(fits)]
    text = edge_routes.with_table(TEMPLATE.read_text("utf-8"), many)
    template = parse(text)
    values = {**cloudformation.parameters_of(template, **EDGE_HOST), "AWS::StackId": STACK_ID}
    function = cloudformation.resources(template, values)["RequestFunction"]["Properties"]["FunctionCode"]
    assert names[0] in function
    assert len(function.encode()) <= MAX_FUNCTION


def routed(*requests: dict[str, Any], code: str = CODE) -> list[dict[str, Any]]:
    """Return what the function returns for requests, run by Node.js."""
    node = skips.find_node("CloudFront's function")
    program = f"{code}\nconst requests = {json.dumps(requests)};\n" + (
        "console.log(JSON.stringify(requests.map(request => handler({request: request}))));"
    )
    answer: list[dict[str, Any]] = json.loads(output_of(node, "--eval", program))
    return answer


def at(uri: str, verb: str = "POST", **headers: str) -> dict[str, Any]:
    sent = {"host": "tools.example", **headers}
    return {
        "method": verb,
        "uri": uri,
        "querystring": {},
        "headers": {k: {"value": v} for k, v in sent.items()},
    }


def request(method: str | None, name: str | None, *, uri: str = "/mcp", verb: str = "POST") -> dict[str, Any]:
    named = {HEADER_METHOD: method, HEADER_NAME: name}
    return at(uri, verb, **{header: value for header, value in named.items() if value})


def test_a_feature_in_the_table_is_routed_to_its_owner():
    listed = [(method, name, owner) for method, table in owners().items() for name, owner in table.items()]
    for (*_, owner), sent in zip(listed, routed(*(request(m, n) for m, n, _ in listed)), strict=True):
        assert sent["uri"] == f"/tools/{owner}"


TWICE = {"value": "summarize", "multiValue": [{"value": "summarize"}, {"value": "get_weather"}]}

TO_THE_FRONT_DOOR = {
    "a list": request("tools/list", None),
    "a task": request("tasks/get", "some-task"),
    "an unknown tool": request("tools/call", "drop_tables"),
    "a tool's name as a prompt": request("prompts/get", "summarize"),
    "another resource of a template": request("resources/read", "weather://forecast/Tokyo"),
    "a legacy client": request(None, None),
    "a method without a name": request("tools/call", None),
    "a property of every object": request("constructor", "name"),
    "a property of every table": request("tools/call", "constructor"),
    "a header twice": {
        **request("tools/call", None),
        "headers": {HEADER_METHOD: {"value": "tools/call"}, HEADER_NAME: TWICE},
    },
    "the question page": request(None, None, uri="/mcp/questions", verb="GET"),
    "a form of the question page": request("tools/call", "summarize", uri="/mcp/questions"),
    "a preflight request": request("tools/call", "summarize", verb="OPTIONS"),
    "another path": request("tools/call", "summarize", uri="/.well-known/oauth-protected-resource"),
    "without ChallengeAtEdge": at("/mcp"),
}


def test_all_other_requests_are_forwarded_unchanged():
    for what, given, sent in zip(
        TO_THE_FRONT_DOOR, TO_THE_FRONT_DOOR.values(), routed(*TO_THE_FRONT_DOOR.values()), strict=True
    ):
        assert sent == given, what


CHALLENGING = code(ChallengeAtEdge="enabled")
UNAUTHORIZED = {
    "statusCode": 401,
    "statusDescription": "Unauthorized",
    "headers": {
        "www-authenticate": {
            "value": 'Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"'
        },
        "cache-control": {"value": "no-store"},
    },
}


def test_only_a_request_without_a_token_is_challenged_with_the_address_of_the_metadata():
    """Requests of browsers and requests to other paths are not challenged."""
    refused = [at("/mcp"), at("/mcp", "GET"), at("/mcp", "DELETE"), at("/tools/weather")]
    passed = [
        at("/mcp", authorization="Bearer a.b.c"),
        at("/mcp", "OPTIONS"),
        at("/mcp", origin="https://page.example"),
        at("/mcp/questions", "GET"),
        at("/approvals/7", "GET"),
        at("/.well-known/oauth-protected-resource/mcp", "GET"),
    ]
    found = routed(*refused, *passed, code=CHALLENGING)
    assert found == [UNAUTHORIZED] * len(refused) + passed


def test_challenges_do_not_need_routing_by_name():
    only = code(ChallengeAtEdge="enabled", RouteByName="disabled")
    call = request("tools/call", "get_weather")
    call["headers"]["authorization"] = {"value": "Bearer a.b.c"}
    assert routed(at("/mcp"), call, code=only) == [UNAUTHORIZED, call]


def test_the_page_has_every_parameter():
    rows = re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)
    assert {name.strip("`") for row in rows for name in row.split(", ")} == edge()["Parameters"].keys()
