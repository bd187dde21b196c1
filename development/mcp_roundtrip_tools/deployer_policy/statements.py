"""The permissions in a policy: actions on resources, and the conditions that limit them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_tools.deployer_policy.resources import FUNCTION, POLICY


@dataclass(frozen=True, slots=True)
class Needed:
    """Actions on resources. Resources and conditions are texts for Fn::Sub in the pipeline's template.yaml.

    `only_if` is a condition of that template. `conditions` are members of the statement's Condition.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, str | tuple[str, ...]]] | None = None
    only_if: str = ""


def allow(
    service: str,
    actions: str,
    resources: tuple[str, ...],
    conditions: Mapping[str, Mapping[str, str | tuple[str, ...]]] | None = None,
    only_if: str = "",
) -> Needed:
    """Return the permission for the actions of a service, whose names are separated by spaces."""
    return Needed(tuple(f"{service}:{action}" for action in actions.split()), resources, conditions, only_if)


OF_KEYS: Final = {"StringEquals": {"kms:KeySpec": ("ECC_NIST_P256", "HMAC_256")}}
OF_MAPPINGS: Final = {"ArnLike": {"lambda:FunctionArn": FUNCTION}}
OF_OWN_POLICIES: Final = {"ArnLike": {"iam:PolicyARN": POLICY}}
OF_BOUNDED: Final = {"StringEquals": {"iam:PermissionsBoundary": "${PermissionsBoundaryArn}"}}
THROUGH_DYNAMODB: Final = {"StringEquals": {"kms:ViaService": "dynamodb.${AWS::Region}.amazonaws.com"}}
