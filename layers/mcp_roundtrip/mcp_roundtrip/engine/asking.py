"""Resolves the questions of one `ask` to answers, or adds them to the pass's input requests.

- A journaled answer counts while the fingerprint of its question is unchanged and the answer still validates.
  Otherwise the question is asked again if no later entry exists. If one does, the run fails with `Drift`,
  because that entry may depend on the answer. Questions of one `ask` do not depend on each other.
- A response to a question that was asked before in this call counts if the question is unchanged.
- A response to a question that was not asked yet counts before the first effect and before the first
  `user_only` question, with or without a state. It does not count for that question, for the others of the
  same `ask`, or for later ones. URL elicitations are the exception: `done` decides about them.
- A response that does not validate is rejected: the question is asked again with the reason in its message.
  A response that is no result of the request fails the pass with -32602, because the client can send it
  again. If that would lose an effect of this pass, or the response is stored, the question is asked again.
- A question goes to the first channel that can carry it (`engine.question_channels`). If that is its
  default, the journal records that. A response that a model passed on counts for a question of the channel
  "model" only, before the first effect.
- Consent to a URL becomes an answer once `done` returns True. `elicitation` has the rules.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.engine.elicitation import ConsentedUrl, Elicit, ElicitUrl, Poll, poll
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.engine.pass_state import Run
from mcp_roundtrip.engine.question_channels import Channel, Question
from mcp_roundtrip.engine.sampling_and_roots import ListRoots, NamespacedRequest, Sample
from mcp_roundtrip.errors import ElicitationCancelled, ElicitationDeclined, MissingClientCapability
from mcp_roundtrip.internal_errors import InvalidAnswer
from mcp_roundtrip.protocol.capabilities import CapabilityPath, missing_capabilities
from mcp_roundtrip.protocol.input_responses import MalformedInputResponse, read_response

_REFUSALS: Final = (ElicitationDeclined, ElicitationCancelled)


class Questions(Struct, frozen=True):
    """The questions of a context, whose branch has this prefix."""

    run: Run
    prefix: str
    allows_namespaced: bool

    # The classes are here for contexts, which do not import them for calls that ask nothing.
    form: ClassVar = Elicit
    url: ClassVar = ElicitUrl
    sample: ClassVar = Sample
    list_roots: ClassVar = ListRoots
    namespaced: ClassVar = NamespacedRequest

    def ask(self, questions: Sequence[Question[Any]]) -> Generator[Poll, bool | None, list[Any] | None]:
        """Return the answers in order; None if a request is outstanding and the caller has to suspend.

        The caller sends the result of each `Poll`. Raises UsageError, MissingClientCapability,
        ElicitationDeclined and ElicitationCancelled.
        """
        for question in questions:
            self._check(question)
        by_key = {self.run.use_key(question.key, self.prefix): question for question in questions}
        resolver = _Resolver(self.run, by_key)
        resolver.look_up_answers()
        check_ms = yield from resolver.check_urls()
        resolver.request_unanswered()
        yield from resolver.poll_urls(check_ms)
        return resolver.answers()

    def _check(self, question: object) -> None:
        if not isinstance(question, Question):
            raise self.run.usage_error(
                f"ask takes questions, not {type(question).__name__}; pass Elicit(key, message, model), "
                "ElicitUrl(...), Sample(...) or ListRoots()"
            )
        if isinstance(question, NamespacedRequest) and not self.allows_namespaced:
            raise self.run.usage_error(
                f"namespaced request {question.key!r} is made by a server that does not allow them; write "
                "Server(..., namespaced_requests=True)"
            )


class _Resolver:
    """The questions of one `ask`, by key."""

    def __init__(self, run: Run, questions: Mapping[str, Question[Any]]) -> None:
        self._run = run
        self._questions = questions
        self._requests = {key: question.request() for key, question in questions.items()}
        self._answers: dict[str, Any] = {}  # typed answers, and the user's refusals to give one
        self._rejections: dict[str, str] = {}
        self._urls: dict[str, ConsentedUrl] = {}
        if any(question.is_user_only() for question in questions.values()):
            run.requests.user_only_reached = True

    def look_up_answers(self) -> None:
        for key, question in self._questions.items():
            try:
                if not self._replay(key, question):
                    self._read_response(key, question)
            except InvalidAnswer as invalid:
                self._rejections[key] = invalid.reason
                self._run.requests.refused[key] = invalid.log_reason

    def check_urls(self) -> Generator[Poll, bool | None, float]:
        """Call `done` once for each URL that the user has opened, and return how long that took."""
        clock_ms = self._run.services.deadline.clock_ms
        began_ms = clock_ms()
        for key, url in list(self._urls.items()):
            if (yield url.elicitation, 0):
                self._complete(key, url)
                del self._urls[key]
        return clock_ms() - began_ms

    def request_unanswered(self) -> None:
        """Add the requests of unanswered questions, or take defaults. Raises MissingClientCapability."""
        unanswered = {key: question for key, question in self._questions.items() if key not in self._answers}
        for key, channel in self._choose_channels(unanswered).items():
            if channel == "default":
                self._run.record(Entry(key, Kind.DEFAULT, None))
                self._answers[key] = unanswered[key].default
                self._urls.pop(key, None)
                continue
            request = replace(self._requests[key], channel=channel)
            if key in self._urls:
                self._urls[key].request = request
            else:
                reason = self._rejections.get(key)
                self._run.requests.add(key, request if reason is None else request.after_rejection(reason))

    def poll_urls(self, check_ms: float) -> Generator[Poll, bool | None, None]:
        if self._urls:
            for key in (yield from poll(self._run, self._urls, check_ms)):
                self._complete(key, self._urls[key])

    def answers(self) -> list[Any] | None:
        if len(self._answers) < len(self._questions):
            return None
        answers = [self._answers[key] for key in self._questions]
        for answer in answers:
            if isinstance(answer, _REFUSALS):
                raise answer
        return answers

    def _replay(self, key: str, question: Question[Any]) -> bool:
        """Take the journaled answer; return False if there is none.

        An answer to another question is removed. So is one that no longer validates: raises InvalidAnswer.
        """
        entry = self._run.history.entry(key)
        if entry is None:
            return False
        if entry.kind is Kind.DEFAULT:
            if question.has_default:
                self._answers[key] = question.default
                return True
            self._discard(key, "default")
            return False
        if entry.kind is not Kind.ANSWER or entry.fingerprint is None:
            was = entry.kind.name.lower()
            raise self._run.drift_error(key, f"it is recorded as {was}, and the code uses it as question")
        changed = entry.fingerprint.describe_changes(self._requests[key].fingerprint)
        if changed:
            self._discard(key, changed)
            return False
        unfit = "model (which the recorded answer does not fit)"
        try:
            raw = read_response(key, self._requests[key].to_wire(), entry.value)
            self._answers[key] = _parse(key, question, raw)
        except MalformedInputResponse:  # an earlier version of this package accepted it
            self._discard(key, unfit)
            return False
        except InvalidAnswer:
            self._discard(key, unfit)
            raise
        return True

    def _discard(self, key: str, changed: str) -> None:
        """Remove an answer so that its question is asked again. Raises Drift if an entry may depend on it."""
        if not self._run.history.is_last(key, self._questions):
            raise self._run.drift_error(key, f"its {changed} changed after something later was recorded")
        self._run.history.remove(key)

    def _read_response(self, key: str, question: Question[Any]) -> None:
        """Journal the answer in this request's response, if one counts. Raises InvalidAnswer."""
        inputs = self._run.inputs
        responses: Mapping[str, Any]
        if key in inputs.model_responses and self._channel(question) == "model":
            responses, counts = inputs.model_responses, not self._run.history.has_effects
        elif self._may_be_visited(question):
            responses, counts = {key: {"action": "accept"}}, not self._run.history.has_effects
        else:
            responses = inputs.responses
            counts = key in responses and self._response_counts(key, question)
        if key not in responses or not counts:
            return
        request = self._requests[key]
        try:
            raw = read_response(key, request.to_wire(), responses[key])
        except MalformedInputResponse as malformed:
            self._run.requests.refused[key] = malformed.reason
            if self._is_sent_again(key):
                raise self._run.fail(malformed) from None
            return
        answer = _parse(key, question, raw)
        message, form = request.fingerprint.message, request.fingerprint.form
        entry = Entry(key, Kind.ANSWER, question.journal_value(raw), message, form)
        if isinstance(question, ElicitUrl) and not isinstance(answer, _REFUSALS):
            self._urls[key] = ConsentedUrl(question, request, entry)  # consent is not an answer yet
            return
        self._run.record(entry)
        self._answers[key] = answer

    def _may_be_visited(self, question: Question[Any]) -> bool:
        is_url = self._run.inputs.urls_may_be_visited and isinstance(question, ElicitUrl)
        return is_url and self._channel(question) == "client"

    def _response_counts(self, key: str, question: Question[Any]) -> bool:
        history = self._run.history
        if (asked := history.journal.outstanding.get(key)) is not None:
            if self._run.inputs.response_channels.get(key) == "model" and self._needs_user(question):
                return False  # a release has made it a question for the user
            return asked == self._requests[key].fingerprint
        if any(entry.key == key for entry in history.journal.entries):
            return False  # it answered the question as it was before
        return not history.has_effects and not self._needs_user(question)

    def _is_sent_again(self, key: str) -> bool:
        """Return whether the client can send the response again, and nothing is lost if the pass fails."""
        run = self._run
        is_stored = run.task.recorder is not None or key in run.history.journal.unused_responses
        return not is_stored and not run.lost_effects()

    def _complete(self, key: str, url: ConsentedUrl) -> None:
        self._run.record(url.entry)
        self._answers[key] = None

    def _choose_channels(self, questions: Mapping[str, Question[Any]]) -> dict[str, Channel]:
        """Return the channel of each question. Raises MissingClientCapability if some have none."""
        channels = {key: self._channel(question) for key, question in questions.items()}
        unaskable = {key: questions[key] for key, channel in channels.items() if channel is None}
        if unaskable:
            declared = self._run.inputs.find_channels().declared
            needed: list[CapabilityPath] = [path for each in unaskable.values() for path in each.needs()]
            required = missing_capabilities(declared, needed)
            raise MissingClientCapability(required, unaskable, lost=self._run.lost_effects())
        return {key: channel for key, channel in channels.items() if channel is not None}

    def _channel(self, question: Question[Any]) -> Channel | None:
        """Return the channel of a question. Raises UsageError for a request that a task cannot send."""
        if isinstance(question, NamespacedRequest) and self._run.is_task:
            raise self._run.usage_error(
                f"namespaced request {question.key!r} is made in a task, which cannot send it; call it "
                "before ctx.run_as_task()"
            )
        return self._run.inputs.find_channels().choose(
            question.needs(), has_default=question.has_default, needs_user=self._needs_user(question)
        )

    def _needs_user(self, question: Question[Any]) -> bool:
        """Return whether only a user who saw the question may answer it. `done` decides about URLs."""
        return self._run.requests.user_only_reached and not isinstance(question, ElicitUrl)


def _parse(key: str, question: Question[Any], raw: Any) -> Any:
    """Return the typed answer, or the refusal. Raises InvalidAnswer."""
    try:
        return question.parse_response(deepcopy(raw))  # the tool may change its answer, not the journal
    except _REFUSALS as refusal:
        return type(refusal)(key)  # the question does not know its branch's prefix
