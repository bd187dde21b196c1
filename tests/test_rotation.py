"""The table "Rotating a key" of docs/explanation/security.md, executed with calls in flight."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_tools.run.services.kms import FakeKms
from support.client_requests import next_round, text
from support.deployment import Deployment
from support.fake_kms import mac_key, signing_key
from support.transformed_template import variables, with_values

pytest_plugins = ["support.fake_kms"]

DOCUMENT = Path(__file__).parent.parent / "docs/explanation/security.md"
OWN = {"StateKeyArn": "StateKey.Arn", "StateEncryptionKeyArn": "StateEncryptionKey.Arn"}
"""The options of keys, and the references to the stack's own keys."""

NEW_KEY = {"StateKeyArn": signing_key, "StateEncryptionKeyArn": mac_key}
TRUSTED = {"StateKeyArn": "TrustedStateKeyArns", "StateEncryptionKeyArn": "TrustedStateEncryptionKeyArns"}


def documented() -> dict[str, tuple[str, str]]:
    """Return deployment -> (current key, other trusted keys), as OLD and NEW."""
    table = DOCUMENT.read_text().partition("## Rotating a key")[2].partition("\n\nFor the encryption key")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines() if "|" in line]
    assert rows[0] == ["deployment", "`StateKeyArn`", "`TrustedStateKeyArns`"]
    return {name: (used, trusted) for name, used, trusted in rows[2:]}


class Rotation:
    def __init__(self, kms: FakeKms, parameter: str, signing: str) -> None:
        self.own = {own: NEW_KEY[name](kms) for name, own in OWN.items()}
        self.arns = {"OLD": self.own[OWN[parameter]], "NEW": NEW_KEY[parameter](kms), "": ""}
        self.parameter = parameter
        self.signing = signing

    def environment(self, used: str, trusted: str) -> Deployment:
        environment = variables(
            "WeatherFunction",
            StateSigning=self.signing,
            **{
                # The old key is the stack's own, so its parameter is empty until the rotation.
                self.parameter: "" if used == "OLD" else self.arns[used],
                TRUSTED[self.parameter]: self.arns[trusted],
            },
        )
        settings = {
            name: with_values(value, self.own) for name, value in environment.items() if "MCP_" in name
        }
        return Deployment(server, settings=settings, user=None)


server = Server("greeting")


@server.tool
def greet(ctx: Context) -> str:
    return f"Hello, {ctx.elicit('name', 'Who?', str)}!"


def resumes(environment: Deployment, asked: Any) -> bool:
    answer = environment.post_call("greet", **next_round(asked, name="Ada"))
    return "result" in answer and text(answer["result"]) == "Hello, Ada!"


@pytest.fixture(params=["direct", "delegated"])
def signing(request):
    return str(request.param)


@pytest.fixture(params=OWN)
def rotation(request, kms, signing):
    return Rotation(kms, request.param, signing)


def test_calls_in_flight_resume_before_and_after_each_deployment(rotation):
    deployments = [rotation.environment(*keys) for keys in documented().values()]
    assert len(deployments) == 4
    for before, after in pairwise(deployments):
        # While a deployment is rolled out, environments of both serve the same callers.
        for minting in (before, after):
            asked = minting.call("greet")
            assert resumes(before, asked)
            assert resumes(after, asked)


def test_the_old_key_is_not_needed_after_the_rotation(rotation, kms):
    *_, last = documented().values()
    kms.DisableKey(KeyId=rotation.arns["OLD"])
    environment = rotation.environment(*last)
    assert resumes(environment, environment.call("greet"))


def test_omitting_the_first_deployment_loses_calls_in_flight(rotation):
    documentation = documented()
    before, after = (rotation.environment(*documentation[name]) for name in ("now", "2"))
    assert resumes(after, before.call("greet"))
    assert not resumes(before, after.call("greet"))


def test_a_second_deployment_without_a_leaked_key_revokes_it(rotation):
    asked = rotation.environment(*documented()["1"]).call("greet")
    assert not resumes(rotation.environment("NEW", ""), asked)
