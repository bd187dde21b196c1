"""cfn-lint, once for all templates: also with options, and that of an application which has grown."""

import json

import yaml

from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.template.yaml_reader import load
from support.option_values import ANOTHER, EDGE_DOMAIN, EDGE_HOST, EDGE_WEB_ACL
from support.project import ROOT
from support.sam_build import SAM, run
from support.transformed_template import (
    PLATFORM,
    PROVISIONED_CONCURRENCY,
    with_blocks,
    with_defaults,
)

EDGE = ROOT / "platform/edge/template.yaml"

KNOWN = ("'tagresource'", "'untagresource'")
"""Actions of API Gateway that CloudFormation's registry names, and that cfn-lint's list does not have."""

PACKAGED_BY_SAM = "W3002"


def test_all_templates_are_lint_clean(tmp_path):
    sources = [ROOT / "template.yaml", *sorted((ROOT / "platform").rglob("*.yaml"))]
    platform = {name: value for name, value in ANOTHER.items() if name in load(PLATFORM)["Parameters"]}
    written = {
        "platform": with_defaults(load(PLATFORM), **{"Application": "tools", **platform}),
        "snapshots": with_blocks("VPC", "Traces", "SnapStart"),
        "gradual": with_blocks("VPC", "Traces", "Gradual deployment", PROVISIONED_CONCURRENCY),
        "edge": with_defaults(load(EDGE), **EDGE_HOST, **EDGE_DOMAIN, **EDGE_WEB_ACL),
        "unrouted": with_defaults(load(EDGE), **EDGE_HOST, RouteByName="disabled"),
    }
    write({tmp_path / f"{name}.yaml": text for name, text in written.items()})
    (tmp_path / "platform").symlink_to(ROOT / "platform")
    grown = tmp_path / "orders"
    write({grown / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    write(plan_tool(grown, "count_orders", tasks=True))
    write(plan_function(grown, "summarize", tasks=True))
    same_exceptions = {"Metadata": load(ROOT / "template.yaml")["Metadata"]}
    (grown / "template.yaml").write_text(yaml.safe_dump(load(grown / "template.yaml") | same_exceptions))
    templates = [*sources, *tmp_path.glob("*.yaml"), grown / "template.yaml"]
    done = run(SAM.with_name("cfn-lint"), "--format", "json", "--", *templates)
    found = [
        each
        for each in json.loads(done.stdout)
        if not each["Message"].startswith(KNOWN)
        and (each["Rule"]["Id"], each["Filename"] in map(str, sources)) != (PACKAGED_BY_SAM, False)
    ]
    assert found == []
