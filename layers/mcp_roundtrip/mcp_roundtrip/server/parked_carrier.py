"""The carrier "parked": the call waits in the task table, until it is made again (see `tasks.parked_calls`).

A call is parked when it asks the user in a way that outlasts the request, or when it is out of time and its
client cannot continue it. The request that makes the call again waits a few seconds for the answers, runs the
next pass itself, and returns the result or the next question. No worker is dispatched.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.engine.deadline import ANSWER_WAIT_MS, lambda_remaining_ms
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcomes import NeedsInput
from mcp_roundtrip.engine.pass_state import TASK_TTL_MS, Run
from mcp_roundtrip.engine.question_channels import ClientInputs
from mcp_roundtrip.internal_errors import ItemTooLarge, KeyServiceError, SettingsError, StoreError
from mcp_roundtrip.protocol.capabilities import missing_capabilities
from mcp_roundtrip.server import question_presenters, state_carrier, task_carrier
from mcp_roundtrip.server.call_plan import presenter_of_repeated
from mcp_roundtrip.server.pass_and_reply import Round, new_run, parked_channels
from mcp_roundtrip.server.request_types import FeatureCall, Reply
from mcp_roundtrip.server.stored_call_passes import ParkedPass
from mcp_roundtrip.server.task_carrier import flow_of, parked_caller, task_call_of
from mcp_roundtrip.tasks.call_and_journal_items import with_result
from mcp_roundtrip.tasks.lease import MAX_LEASE_MS, Delivery
from mcp_roundtrip.tasks.model import CLIENT, Task, WorkState, task_partition_key
from mcp_roundtrip.tasks.open_task_limit import TooManyOpenTasks
from mcp_roundtrip.tasks.parked_calls import PARKED, ParkedCaller, ParkedCalls
from mcp_roundtrip.tasks.question_page_tokens import APP
from mcp_roundtrip.tasks.worker import Worker

FIRST_PAUSE_MS: Final = 250
MAX_PAUSE_MS: Final = 2_000
"""The pause between two reads of a call that waits. It doubles from the first up to the second value."""

PASS_RESERVE_MS: Final = 10_000
"""The time that a pass needs: a request with less time left begins none, and does not wait any longer. A
request that has less than twice this time reserves half of its time."""


class StoredCall(Struct, frozen=True, dict=True):  # dict: for cached_property
    """A call that the task table stores, parked or as a task, or may store. The methods raise StoreError."""

    call: FeatureCall

    @cached_property
    def _calls(self) -> ParkedCalls:
        context = self.call.context
        return ParkedCalls.of(context.ports.tasks(), context.request.meta.capabilities)

    @cached_property
    def _caller(self) -> ParkedCaller:
        return parked_caller(self.call)

    @cached_property
    def _pass_begins_until_ms(self) -> float:
        now_ms = self.call.context.ports.clock_ms()
        deadline_ms = self.call.context.invocation.deadline_ms
        return deadline_ms - min(PASS_RESERVE_MS, (deadline_ms - now_ms) / 2)

    def require_room(self, run: Run) -> None:
        task_carrier.require_room(self.call, run)

    def become_task(self, this_round: Round, journal: Journal, ttl_ms: int = TASK_TTL_MS) -> Reply:
        """Create a task that continues the call; reply with it, or why there is none. Raises FlowIsStored."""
        try:
            return task_carrier.create(this_round, journal, ttl_ms)
        except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
            return task_carrier.not_stored(this_round, error)

    def park(self, this_round: Round, outcome: NeedsInput) -> Reply:
        """Park the call, and ask its questions; without requests, it was out of time. Raises FlowIsStored."""
        call, requests, journal = self.call, outcome.requests, outcome.journal
        try:
            task = self._calls.create(
                self._caller, task_call_of(call), journal, requests, outcome.channel, flow_of(this_round)
            )
        except (TooManyOpenTasks, ItemTooLarge, StoreError) as error:
            return task_carrier.not_stored(this_round, error)
        if task.flow_id != journal.flow_id or task.requests.keys() != requests.keys():
            # A concurrent call was parked first; or this call was, and has continued meanwhile.
            return self._reply_to(task) or question_presenters.ended(this_round)
        channel = outcome.channel if requests else None
        call.record("call_parked", asked=sorted(requests), channel=channel)
        return ask(this_round, task) if requests else question_presenters.wait(this_round, task)

    # -- resume -------------------------------------------------------------------------------------

    def resume_repeated(self) -> Reply | None:
        """Return the reply of the parked call that this call repeats; None if there is none."""
        task = self._calls.find(self._caller)
        if task is None:
            return self._refuse_code()  # the call that a code named may have run before
        if responses := self.call.params.model_responses:
            self.call.context.invocation.operation.begin(self.call, task.flow_id)
            try:
                self._calls.tasks.store_responses(task.pk, responses, channels=("model",), via="model")
            except ItemTooLarge as error:
                return question_presenters.too_large(self._idle_round(), error)
        return self._reply_to(task) or self._refuse_code()

    def _refuse_code(self) -> Reply | None:
        return None if self._caller.code is None else question_presenters.unknown_code(self._idle_round())

    def resume_named(self, task_id: str) -> Reply:
        """Return the reply of the parked call that a state names; store the answers of the request first."""
        task = self._calls.load(task_partition_key(PARKED, self._caller.binding, task_id))
        if task is None:
            return question_presenters.ended(self._idle_round())
        self.call.context.invocation.operation.begin(self.call, task.flow_id)
        params = self.call.params
        try:
            is_stored = self._calls.answer(task, params.input_responses, APP if params.is_in_app else CLIENT)
        except ItemTooLarge as error:
            return question_presenters.too_large(self._idle_round(), error)
        if not is_stored:
            return question_presenters.late(self._idle_round(task), task)
        task = self._calls.load(task.pk)
        reply = None if task is None else self._reply_to(task, answer_wait_ms=0)
        return reply or question_presenters.ended(self._idle_round())

    def resume_flow(self, this_round: Round) -> Reply | None:
        """Return the reply of the task or parked call as which a flow continues; None if there is none."""
        flow = flow_of(this_round)
        assert flow is not None
        self.call.context.tag(flow=flow.id)
        stored = self.call.context.ports.tasks().find(flow)
        if stored is None:
            return None
        if not task_carrier.is_parked(stored):
            return task_carrier.reply_again(this_round, stored)
        return self._reply_to(stored) or question_presenters.ended(this_round)

    def _reply_to(self, task: Task, *, answer_wait_ms: int = ANSWER_WAIT_MS) -> Reply | None:
        """Wait until the call can continue, run a pass, and return the reply; None if the call expires."""
        if "model" not in self.call.feature.channels and _asks_model(task):
            # A release has removed the channel. No other one can take the answers: there is no link.
            task = self._calls.withdraw(task) or task
        try:
            return self._wait_and_continue(task, answer_wait_ms)
        except (KeyServiceError, SettingsError) as error:
            return self._idle_round(task).reply_for_exception(error)

    def _wait_and_continue(self, task: Task, answer_wait_ms: int) -> Reply | None:
        waits_for_answers_until_ms = self.call.context.ports.clock_ms() + answer_wait_ms
        current: Task | None = task
        pause_ms = FIRST_PAUSE_MS
        while current is not None:
            if current.is_terminal:
                ended = with_result(self._calls.tasks.store, current)
                return question_presenters.stored_result(self._idle_round(ended), ended)
            is_ready = self._is_ready(current)
            if is_ready and self._left_ms() > 0:
                reply = self._continue(current)
                if reply is not None:
                    return reply
            asks = bool(current.requests) and not is_ready
            wait_ms = self._left_ms()
            if asks:
                wait_ms = min(wait_ms, waits_for_answers_until_ms - self.call.context.ports.clock_ms())
            if wait_ms < pause_ms:
                this_round = self._idle_round(current)
                if asks:
                    return ask(this_round, current, is_repeated=True)
                return question_presenters.wait(this_round, current)
            self.call.context.ports.pause_ms(pause_ms)
            pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)
            current = self._calls.load(current.pk)
        return None

    def _idle_round(self, task: Task | None = None) -> Round:
        """Return the round of a request that runs no pass."""
        flow_id = "" if task is None else task.flow_id
        if flow_id:
            self.call.context.tag(flow=flow_id)
        inputs = ClientInputs({}, is_resumed=True, find_channels=partial(parked_channels, self.call))
        return Round(self.call, new_run(self.call, Journal(flow_id or "none"), inputs))

    def _continue(self, task: Task) -> Reply | None:
        """Run one pass; return None if another request runs one, or if an answer came during the pass."""
        call, this_pass = self.call, ParkedPass(self.call)
        # The id is the code of an anonymous caller. The lines have the id of the flow.
        worker = Worker(
            replace(self._calls.tasks, on_abandoned=lambda _: call.record("task_abandoned"), on_ending=None),
            this_pass,
            call.record_failure,
            lambda: call.record("lease_lost"),
            call.context.ports.wait_ms,
        )
        # The lease lasts as long as the request, and is not renewed. A request is not delivered again.
        remaining_ms = lambda_remaining_ms(call.context.invocation.lambda_context)
        left = worker.work(task.pk, Delivery("", remaining_ms, MAX_LEASE_MS))
        if left is None or this_pass.round is None:
            return None
        if left.is_terminal:
            return this_pass.reply or question_presenters.stored_result(this_pass.round, left)
        if this_pass.refusal is not None:
            return this_pass.refusal
        if left.requests and left.work_state is WorkState.AWAITING:
            return ask(this_pass.round, left)
        if this_pass.waits_for_url or self._left_ms() <= 0:
            return question_presenters.wait(this_pass.round, left, waits_for_url=this_pass.waits_for_url)
        return None

    def _is_ready(self, task: Task) -> bool:
        at_ms = task.claimable_at_ms
        return at_ms is not None and at_ms <= self._calls.tasks.clock_ms()

    def _left_ms(self) -> float:
        return self._pass_begins_until_ms - self.call.context.ports.clock_ms()


def ask(this_round: Round, task: Task, *, is_repeated: bool = False) -> Reply:
    """Ask the open questions of a parked call in the best way of the client that makes the call now."""
    call, requests = this_round.call, question_presenters.open_requests(task)
    modes = [("elicitation", each["params"]["mode"]) for each in requests.values()]
    cannot_show = missing_capabilities(call.context.request.meta.capabilities, modes)
    presenter = presenter_of_repeated(
        call.plan,
        is_for_model=_asks_model(task),
        shows_requests=call.context.takes_rounds and not cannot_show,
    )
    if presenter == "model":
        return question_presenters.ask_model(this_round, requests, task)
    if presenter == "page":
        return question_presenters.ask_on_page(this_round, task, is_repeated=is_repeated)
    state = state_carrier.save_name(this_round, task.task_id, for_view=presenter == "app")
    if isinstance(state, Reply):
        return state
    if presenter == "client":
        return question_presenters.ask_client(this_round, requests, state)
    return question_presenters.ask_in_app(this_round, requests, state, task)


def _asks_model(task: Task) -> bool:
    return any(asked.channel == "model" for asked in task.requests.values())
