from mcp_roundtrip_tools.smoke.checked_endpoint import Finding, Findings
from mcp_roundtrip_tools.smoke.run import Settings, check


def findings_of(settings: Settings) -> dict[str, Finding]:
    """Check an endpoint; return the findings by their check, in their order."""
    findings = Findings()
    good = check(settings, findings)
    assert good == all(each.status != "wrong" for each in findings.found)
    return {each.check: each for each in findings.found}
