"""edge/template.yaml: CloudFront, a web ACL, and the function that sends calls to their owners."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mcp_roundtrip.protocol.constants import HEADER_METHOD, HEADER_NAME
from mcp_roundtrip_local.template.yaml_reader import load
from support import cloudformation, skips
from support.project import ROOT
from support.transformed_template import lint, transformed, with_defaults

TEMPLATE = ROOT / "edge/template.yaml"
PAGE = (ROOT / "docs/edge-routing.md").read_text("utf-8")

HOST = {"ApiHost": "api.example"}
WITH_DOMAIN = {
    "DomainName": "tools.example",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1d2c3b4a",
}
WITH_WEB_ACL = {"WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/mine/1d2c3b4a"}


def edge() -> Any:
    return load(TEMPLATE)


def resources(**given: str) -> dict[str, Any]:
    return cloudformation.resources(edge(), cloudformation.parameters_of(edge(), **HOST, **given))


def distribution(**given: str) -> Any:
    return resources(**given)["Distribution"]["Properties"]["DistributionConfig"]


def test_the_template_is_lint_clean(tmp_path: Path) -> None:
    options = {"plain": {}, "own": {**WITH_DOMAIN, **WITH_WEB_ACL}, "unrouted": {"RouteByName": "disabled"}}
    for name, given in options.items():
        (tmp_path / f"{name}.yaml").write_text(with_defaults(edge(), **HOST, **given))
    assert lint(TEMPLATE, *tmp_path.iterdir()) == []


def test_a_domain_needs_its_certificate() -> None:
    def broken(**given: str) -> list[str]:
        return cloudformation.broken_rules(edge(), cloudformation.parameters_of(edge(), **HOST, **given))

    assert broken(**WITH_DOMAIN) == []
    [rule] = broken(DomainName="tools.example")
    assert "CertificateArn" in rule


def test_requests_are_forwarded_with_their_tokens_and_not_cached() -> None:
    [origin] = distribution()["Origins"]
    assert origin["DomainName"] == "api.example"
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    behaviour = distribution()["DefaultCacheBehavior"]
    assert behaviour["ViewerProtocolPolicy"] == "https-only"
    # Managed policies of AWS: CachingDisabled and AllViewerExceptHostHeader.
    assert behaviour["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behaviour["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"


def test_an_existing_web_acl_replaces_that_of_the_stack() -> None:
    assert distribution()["WebACLId"] == "${WebAcl.Arn}"
    assert distribution(**WITH_WEB_ACL)["WebACLId"] == WITH_WEB_ACL["WebAclArn"]
    assert "WebAcl" not in resources(**WITH_WEB_ACL)


def test_no_request_is_sampled_and_no_rule_reads_bodies() -> None:
    acl = resources()["WebAcl"]["Properties"]
    seen = [acl["VisibilityConfig"], *(rule["VisibilityConfig"] for rule in acl["Rules"])]
    assert not any(each["SampledRequestsEnabled"] for each in seen)
    assert {rule["Name"] for rule in acl["Rules"]} == {"RequestsPerAddress", "IpReputation"}


def test_routing_by_name_is_optional() -> None:
    assert "OwnerByName" not in resources(RouteByName="disabled")
    assert "FunctionAssociations" not in distribution(RouteByName="disabled")["DefaultCacheBehavior"]
    [association] = distribution()["DefaultCacheBehavior"]["FunctionAssociations"]
    assert association["EventType"] == "viewer-request"


# The function

CODE = resources()["OwnerByName"]["Properties"]["FunctionCode"]

MAX_FUNCTION = 10 * 1024
"""Bytes of a CloudFront function."""


def owners() -> dict[str, dict[str, str]]:
    """Return the owner of each listed feature."""
    catalog = json.loads((ROOT / "functions/front_door/catalog.json").read_text("utf-8"))
    return {
        method: {row["definition"][key]: row["owner"] for row in catalog[member]}
        for method, member, key in (
            ("tools/call", "tools", "name"),
            ("prompts/get", "prompts", "name"),
            ("resources/read", "resources", "uri"),
        )
    }


def test_the_table_matches_the_catalog() -> None:
    table = re.search(r"const OWNERS = (\{.*?\n\});", CODE, re.DOTALL)
    assert table is not None
    assert json.loads(table[1]) == owners()


def test_the_paths_of_owners_are_routes_of_the_endpoint() -> None:
    routes = {
        each["Properties"]["RouteKey"]
        for each in transformed()["Resources"].values()
        if each["Type"] == "AWS::ApiGatewayV2::Route"
    }
    assert {f"ANY /tools/{owner}" for table in owners().values() for owner in table.values()} <= routes


def test_the_function_fits_into_the_limit_of_cloudfront() -> None:
    assert len(CODE.encode()) <= MAX_FUNCTION


def routed(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the requests after the function, run by Node.js."""
    node = shutil.which("node")
    if node is None:
        skips.skip(skips.NODE, "CloudFront's function")
    program = f"{CODE}\nconst requests = {json.dumps(requests)};\n" + (
        "console.log(JSON.stringify(requests.map(request => handler({request: request}))));"
    )
    done = subprocess.run([node, "--eval", program], capture_output=True, text=True, check=True)
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


def request(method: str | None, name: str | None, *, uri: str = "/mcp", verb: str = "POST") -> dict[str, Any]:
    headers = {
        header: {"value": value} for header, value in ((HEADER_METHOD, method), (HEADER_NAME, name)) if value
    }
    return {"method": verb, "uri": uri, "querystring": {}, "headers": headers}


def test_a_feature_in_the_table_is_routed_to_its_owner() -> None:
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
}


def test_all_other_requests_are_forwarded_unchanged() -> None:
    for what, given, sent in zip(
        TO_THE_FRONT_DOOR, TO_THE_FRONT_DOOR.values(), routed(*TO_THE_FRONT_DOOR.values()), strict=True
    ):
        assert sent == given, what
    elsewhere = request("tools/call", "summarize", uri="/.well-known/oauth-protected-resource", verb="GET")
    assert routed(elsewhere) == [elsewhere]


# The page


def test_the_page_has_every_parameter() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)
    assert {name.strip("`") for row in rows for name in row.split(", ")} == edge()["Parameters"].keys()
