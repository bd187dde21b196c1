"""What the console shows of a journal, and of a `requestState`, which keys of this run decrypt and verify.

Each entry of a journal has a mark that says what a round did with it. A question is *asked*; an answer is
*answered*, and what the code ran is *ran*, in the round that accepted or ran it. In later rounds, which find
it in the state or in the table, it is *replayed*.

The layer's own code verifies and decrypts a state. Its binding to one request is not checked, because the
console shows a state by itself. The requests to KMS are not recorded.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip.aws.signed_client import AwsClients
from mcp_roundtrip.deployment.settings import load_settings
from mcp_roundtrip.deployment.state_codec_factory import StateProtection
from mcp_roundtrip.engine.journal import Entry, Fingerprint, Journal, Kind
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError, SettingsError
from mcp_roundtrip.protocol.strict_json import compact_json
from mcp_roundtrip.state import claims as state_claims
from mcp_roundtrip.state import jwe, jws
from mcp_roundtrip.state.codec import STATE_TYP
from mcp_roundtrip_tools.console.admission import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp

_WORDS: Final[Mapping[Kind, str]] = {Kind.WAKE: "sleep", Kind.FAILED: "failed attempts"}
"""Kinds of entries that have another name here."""


def journal_rows(journal: Journal, before: Journal | None = None) -> list[dict[str, Any]]:
    """Return the entries and the open questions of a journal; `before` is what its round started with."""
    known = {} if before is None else {entry.key: entry for entry in before.entries}
    rows = [entry_row(entry, _mark(entry, known)) for entry in journal.entries]
    return rows + [question_row(key, asked) for key, asked in journal.outstanding.items()]


def question_row(key: str, asked: Fingerprint) -> dict[str, Any]:
    """Return a question that waits for its answer. `bytes` is the length of its digests in a state."""
    size = _size([asked.message, asked.form])
    return {"key": key, "kind": "question", "mark": "asked", "value": None, "bytes": size}


def entry_row(entry: Entry, mark: str) -> dict[str, Any]:
    """Return one entry. `bytes` is the length of its JSON in a state."""
    size = _size([entry.key, entry.kind.value, entry.value])
    kind = _WORDS.get(entry.kind, entry.kind.name.lower())
    return {"key": entry.key, "kind": kind, "mark": mark, "value": entry.value, "bytes": size}


def new_mark(entry: Entry) -> str:
    """Return the mark of an entry that the round added."""
    return "answered" if entry.kind is Kind.ANSWER else "ran"


def _mark(entry: Entry, known: Mapping[str, Entry]) -> str:
    found = known.get(entry.key)
    return "replayed" if found is not None and found.kind is entry.kind else new_mark(entry)


def _size(value: Any) -> int:
    return len(compact_json(value))


_TYPES: Final[Mapping[str, type]] = {**state_claims.COMMON_TYPES, "rq": str, "rnd": int, "oiat": int}


def show_state(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST states`. `before` is the state that the round received. Raises ConsoleError."""
    protections = [*state_protections((app.function_variables(name) for name in app.functions()), app.aws)]
    token, before = request.body.get("requestState"), request.body.get("before")
    claims = open_state(token, protections)
    earlier = None if before is None else read_journal(open_state(before, protections)["st"])
    return describe_state(str(token), claims, earlier)


def describe_state(token: str, claims: Mapping[str, Any], before: Journal | None) -> dict[str, Any]:
    """Return the document of a state; `before` is the journal that its round started with."""
    journal = read_journal(claims["st"])
    return {
        "bytes": len(token),
        "isEncrypted": token.count(".") == 4,
        "round": claims["rnd"],
        "issuedAtMs": claims["iat"] * 1000,
        "expiresAtMs": claims["exp"] * 1000,
        "flowStartedAtMs": claims["oiat"] * 1000,
        "isAnonymous": "sub" not in claims,
        "flow": None if journal is None else journal.flow_id,
        "unusedAnswers": [] if journal is None else sorted(journal.unused_responses),
        "journal": [] if journal is None else journal_rows(journal, before),
        "payload": claims["st"] if journal is None else None,
    }


def read_journal(payload: Any) -> Journal | None:
    """Return the journal of a state; None for one that names a parked call, which is in the task table."""
    try:
        return Journal.from_json(payload)
    except StateRejected as rejected:
        if isinstance(payload, Mapping) and "v" not in payload:
            return None
        raise _refusal(rejected.reason) from None


def state_protections(
    environments: Iterable[Mapping[str, str]], clients: AwsClients
) -> Iterator[StateProtection]:
    """Yield what protects the states of functions with these environment variables, each set of keys once."""
    seen: set[tuple[object, ...]] = set()
    for environment in environments:
        try:
            settings = load_settings(environment)
            keys = (settings.state_key_arn, settings.state_encryption_key_arn, settings.state_encryption)
            name = (settings.required("audience"), settings.state_issuer, *keys)
            settings.required("state_key_arn")
        except SettingsError:  # a function without states
            continue
        if name not in seen:
            seen.add(name)
            yield StateProtection(settings, clients, time.time, os.urandom, _ignore_certificate)


def _ignore_certificate(certificate: str, expires_at: int) -> None:
    """Do nothing: the console issues none."""


def open_state(token: object, protections: Iterable[StateProtection]) -> Mapping[str, Any]:
    """Return the claims of a state, verified with the first keys that made it. Raises ConsoleError (422)."""
    reason = "unknown_key"
    for protection in protections:
        try:
            return _verified_claims(token, protection)
        except StateRejected as rejected:
            # Other keys say less about a state than those that have made it.
            reason = rejected.reason if reason == "unknown_key" else reason
        except (KeyServiceError, SettingsError):  # the keys are elsewhere
            continue
    raise _refusal(reason)


def _refusal(reason: str) -> ConsoleError:
    """Return the error for a reason of StateRejected."""
    text = f"This run cannot open the state. The server logs the reason {reason!r}."
    return ConsoleError(422, text, reason=reason)


def _verified_claims(token: object, protection: StateProtection) -> Mapping[str, Any]:
    codec, settings, now = protection.codec, protection.settings, time.time()
    signed = presented = jws.to_ascii(token, codec.limits.max_presented)
    if (epochs := codec.epochs) is not None:
        signed = jwe.decrypt(presented, STATE_TYP, lambda kid: epochs.find(kid, now))
    issuer, audience = settings.state_issuer, settings.required("audience")

    def find_key(members: Mapping[str, Any]) -> jws.VerificationKey:
        return codec.trusted_keys.find(members, issuer=issuer, audience=audience, now=now, skew_s=5)

    content, _ = jws.verify(signed, STATE_TYP, find_key)
    optional = {"sub": str} if "sub" in content else {}
    state_claims.require_types(content, {**_TYPES, **optional}, others={"st"})
    return content
