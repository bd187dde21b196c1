"""Find, and log, the settings that the features of a function lack."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.deployment.settings import PREFIX, Settings
from mcp_roundtrip.internal_errors import SettingsError

MAX_NAMES: Final = 5

_NEEDS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "tasks": (("task_table", "task_worker", "task_queue", "audience"), "calls of {} cannot become tasks"),
    "work": (("task_table", "task_queue"), "the worker has no task of {}"),
    "task methods": (("task_table", "audience"), "the tasks of {} cannot be polled"),
    "forwarding": (("owners",), "no call reaches {}"),
    "states": (
        ("state_key_arn", "state_encryption_key_arn", "audience"),
        "{} cannot ask, nor continue a call that is out of time",
    ),
    "page": (("task_table",), "{} cannot ask users whose client has neither elicitation nor MCP Apps"),
    "scopes": (("scope_context_key",), "no caller has the scopes that {} requires"),
}
"""Need of features -> the settings that it takes, and the consequence if one is not set."""

_REMEDIES: Final[Mapping[str, str]] = {
    "task_table": "set it to the name of the stack's task table",
    "task_worker": (
        "set it to the ARN of the worker function with its version, as `make new-tool NAME=… TASKS=1` "
        "does in template.yaml"
    ),
    "task_queue": "set it to the URL of the worker's queue",
    "audience": "set it to the URI that clients use, because a task outlives its request",
    "owners": "set it to the name or ARN of the owners' functions, with * for the owner",
    "state_key_arn": "set it to the ARN of a KMS key (ECC_NIST_P256)",
    "state_encryption_key_arn": (
        "set it to the ARN of a KMS key (HMAC_256), or MCP_STATE_ENCRYPTION to disabled"
    ),
    "scope_context_key": "set it to the member of the authorizer's context that has the scopes",
}

_NEEDS_WITHOUT_ERROR: Final = frozenset({"states", "page", "scopes"})
"""A feature that can ask may do so rarely or never, and other callers can be asked."""


class MissingSetting(Struct, frozen=True):
    """A setting that features need. The message of `error` names both, and the remedy.

    `is_error`: the features cannot do what they declare. Without, they cannot do what they may do.
    """

    error: SettingsError
    is_error: bool


def log_missing_settings(needs: Mapping[str, Sequence[str]], ports: Ports) -> None:
    for missing in missing_settings(needs, find_unset_settings(ports.settings)):
        if missing.is_error:
            ports.observer.record_failure("setting_missing", missing.error)
        else:
            ports.observer.record("setting_missing", reason=missing.error.setting, problem=str(missing.error))


def find_unset_settings(settings: Settings) -> frozenset[str]:
    """Return the settings without a value that features may need in this deployment."""
    names = {"state_key_arn", "owners", "task_table"}
    if settings.task_delivery == "invoke":
        names.add("task_worker")
    if settings.task_delivery == "queue" or settings.task_worker is None:  # as in a worker function
        names.add("task_queue")
    if settings.state_encryption == "enabled":
        names.add("state_encryption_key_arn")
    if not settings.derives_audience:
        names.add("audience")
    if settings.auth_mode is AuthMode.LAMBDA:
        names.add("scope_context_key")
    return frozenset(name for name in names if not getattr(settings, name))


def missing_settings(needs: Mapping[str, Sequence[str]], unset: Collection[str]) -> list[MissingSetting]:
    """Return the missing ones of the `unset` settings, each once, errors first.

    `needs`: the names of features by their need (`server.endpoint.Endpoint.needs`).
    """
    found: dict[str, MissingSetting] = {}
    for need in sorted(needs, key=_NEEDS_WITHOUT_ERROR.__contains__):
        for setting in _NEEDS[need][0] if needs[need] else ():
            if setting in unset:
                found.setdefault(setting, _missing(need, needs[need], setting))
    return sorted(found.values(), key=lambda missing: not missing.is_error)


def _missing(need: str, names: Sequence[str], setting: str) -> MissingSetting:
    listed = ", ".join([*names[:MAX_NAMES], *(["…"] if len(names) > MAX_NAMES else [])])
    consequence, remedy = _NEEDS[need][1].format(listed), _REMEDIES[setting]
    is_error = need not in _NEEDS_WITHOUT_ERROR
    if need == "work" and setting == "task_queue":
        consequence, is_error = f"a task of {listed} that sleeps continues when its client polls", False
    if need == "page":
        remedy += ', or leave "page" out of channels='
    problem = f"is not set, and {consequence}; {remedy}"
    return MissingSetting(SettingsError(PREFIX + setting.upper(), problem), is_error)
