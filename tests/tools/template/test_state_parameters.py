"""Parameters of template.yaml about states under `make run`."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.template.model import ACCOUNT, REGION
from support.messages import META
from support.sam_applications import http, rpc
from support.served_application import TEMPLATE, serve, with_options

CONSOLE = {"x-console": "1", "content-type": "application/json"}
HYDERABAD = {"location": "Hyderabad"}
PLACE = {"place": {"action": "accept", "content": {"value": "Hyderabad, Telangana, India"}}}

SIGNING_KEY = ec.generate_private_key(ec.SECP256R1())


def arn(key_id: str) -> str:
    return f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{key_id}"


OWN: Mapping[str, str] = {}
GIVEN = {"StateKeyArn": arn("signing-old"), "StateEncryptionKeyArn": arn("secret-old")}
DER = SIGNING_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
PINNED = {**GIVEN, "StatePublicKeys": f"signing-old:{base64.b64encode(DER).decode()}"}


@contextmanager
def running(**parameters: str) -> Iterator[LocalApp]:
    """Run the application with a new process per request, and with keys outside the template."""
    given = with_options({"AuthMode": "none", **parameters})
    with serve(TEMPLATE, parameters=given, fresh=True, log=lambda line: None) as app:
        app.kms.import_key(SIGNING_KEY, key_id="signing-old")
        app.kms.import_key(bytes(32), key_id="secret-old")
        yield app


def post(app: LocalApp, **params: Any) -> Any:
    url = app.url("/tools/weather")
    return rpc(url, "tools/call", meta=META, name="get_weather", arguments=HYDERABAD, **params).json()


def ask(app: LocalApp) -> str:
    return str(post(app)["result"]["requestState"])


def answer(app: LocalApp, state: str) -> Any:
    return post(app, inputResponses=PLACE, requestState=state)


@pytest.mark.parametrize(
    ("signing", "encryption", "keys"),
    [
        # All combinations of signing and encryption.
        pytest.param("direct", "disabled", OWN, id="direct-disabled-own"),
        pytest.param("delegated", "enabled", GIVEN, id="delegated-enabled-given"),
        pytest.param("direct", "enabled", PINNED, id="direct-enabled-pinned"),
        pytest.param("delegated", "disabled", PINNED, id="delegated-disabled-pinned"),
    ],
)
def test_a_question_of_one_process_is_answered_in_another(signing, encryption, keys):
    if encryption == "disabled":
        keys = {name: value for name, value in keys.items() if name != "StateEncryptionKeyArn"}
    with running(StateSigning=signing, StateEncryption=encryption, **keys) as app:
        before = app.kms.calls.copy()
        state = ask(app)
        assert answer(app, state)["result"]["resultType"] == "complete"
        used = app.kms.calls - before
        url, sent = f"{app.console_url}console/api/states", json.dumps({"requestState": state})
        shown = http(url, method="POST", body=sent.encode(), headers=CONSOLE).json()

    assert (shown["round"], shown["isEncrypted"]) == (1, encryption == "enabled")
    assert state.count(".") == {"enabled": 4, "disabled": 2}[encryption]  # a JWE, a JWS
    assert used["Sign"] == 1
    assert set(used) == {"Sign"} | ({"GetPublicKey"} if "StatePublicKeys" not in keys else set()) | (
        {"GenerateMac"} if encryption == "enabled" else set()
    )
