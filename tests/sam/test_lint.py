"""cfn-lint accepts the templates as they are, and with all options: in one run, as its start takes long."""

from mcp_roundtrip_tools.template.yaml_reader import load
from support.option_values import ANOTHER
from support.project import ROOT
from support.transformed_template import PLATFORM, PROVISIONED_CONCURRENCY, lint, with_blocks, with_defaults

EDGE = ROOT / "platform/edge/template.yaml"
HOST = {"ApiHost": "api.example"}
OPTIONS_OF_EDGE = {
    "edge": {},
    "edge-domain": {
        "DomainName": "tools.example",
        "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1d2c3b4a",
        "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/mine/1d2c3b4a",
    },
    "edge-unrouted": {"RouteByName": "disabled"},
}
BLOCKS = {
    "snapshots": ("VPC", "Traces", "SnapStart"),
    "gradual": ("VPC", "Traces", "Gradual deployment", PROVISIONED_CONCURRENCY),
}


def test_the_templates_are_lint_clean_with_and_without_options(tmp_path):
    platform = {name: value for name, value in ANOTHER.items() if name in load(PLATFORM)["Parameters"]}
    templates = {
        "platform": with_defaults(load(PLATFORM), Application="tools", **platform),
        **{name: with_blocks(*blocks) for name, blocks in BLOCKS.items()},
        **{name: with_defaults(load(EDGE), **HOST, **given) for name, given in OPTIONS_OF_EDGE.items()},
    }
    for name, text in templates.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "platform").symlink_to(ROOT / "platform")
    sources = [ROOT / "template.yaml", *sorted((ROOT / "platform").rglob("*.yaml"))]
    found = lint(*sources, *tmp_path.glob("*.yaml"))
    # Actions of API Gateway that CloudFormation's registry names, and that cfn-lint's list does not have.
    known = ("'tagresource'", "'untagresource'")
    # "W3002": a path that `sam package` replaces, in the copies.
    assert [
        each
        for each in found
        if not each["Message"].startswith(known)
        and (each["Rule"]["Id"] != "W3002" or not each["Filename"].startswith(str(tmp_path)))
    ] == []
