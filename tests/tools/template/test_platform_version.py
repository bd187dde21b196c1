from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.template_tree import TemplateTree, check_platform


def application(version: str | None) -> TemplateTree:
    """Return an application with a platform of this version, or with a nested stack of its own."""
    metadata = {} if version is None else {"Metadata": {"McpRoundtrip": {"Version": version}}}
    platform = TemplateTree(Path(), "platform/template.yaml", metadata, {})
    return TemplateTree(Path(), "the template", {}, {"Platform": platform})


@pytest.mark.parametrize(
    ("written", "installed", "remedy"),
    [
        ("0.1.0", "0.2.0", "run make upgrade"),
        ("0.9.0", "0.10.0", "run make upgrade"),
        ("1.0rc1", "1.0", "run make upgrade"),
        ("0.10.0", "0.9.0", "install mcp-roundtrip==0.10.0"),
        ("1.0", "1.0rc1", "install mcp-roundtrip==1.0"),
    ],
)
def test_a_platform_of_another_version_is_refused_with_the_remedy(written, installed, remedy):
    with pytest.raises(TemplateError, match=f"that of mcp-roundtrip {written}, .*: {remedy}"):
        check_platform(application(written), installed)
