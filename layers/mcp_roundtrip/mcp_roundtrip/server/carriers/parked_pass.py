"""One pass over the tool of a parked call, in the request that continues it."""

from __future__ import annotations

from msgspec import Struct

from mcp_roundtrip.engine.channels import ClientInputs
from mcp_roundtrip.engine.replay import Checkpointed, Done, Failed, NeedsInput, TaskRequested
from mcp_roundtrip.engine.run import TaskOptions
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.server.carriers import task as task_carrier
from mcp_roundtrip.server.carriers.ending import conclusion_of, final_reply, too_many_answers
from mcp_roundtrip.server.carriers.stored import creation_error
from mcp_roundtrip.server.model import FeatureCall, Reply
from mcp_roundtrip.server.round import TASK_TTL_MS, Round, new_run, run_pass
from mcp_roundtrip.tasks.items import TaskHistory
from mcp_roundtrip.tasks.limit import TooManyOpenTasks
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.recorder import TaskRecorder, key_asked_too_often
from mcp_roundtrip.tasks.worker import RETRYABLE, OpenPass, PassResult


class ParkedPass(Struct):
    """Runs a pass for a `tasks.worker.Worker`, and keeps the reply of a pass that ended the call.

    `refusal`: the reply of a pass that could not create its task, and has not ended the call.
    `waits_for_url`: the pass waits for what the user does at a URL that they agreed to open.
    """

    call: FeatureCall
    reply: Reply | None = None
    refusal: Reply | None = None
    round: Round | None = None
    waits_for_url: bool = False

    def __call__(self, task: Task, history: TaskHistory, recorder: TaskRecorder) -> PassResult:
        """Run the pass. Raises one of `RETRYABLE` for a fault that a later pass may not have."""
        call = self.call
        options = TaskOptions(
            recorder, may_start=call.may_start_task, is_offered=call.feature.task is not None, is_parked=True
        )
        inputs = ClientInputs(
            history.responses,
            is_resumed=True,
            find_channels=call.parked_channels,
            response_channels=history.response_channels,
        )
        run = new_run(call, history.journal, inputs, options)
        self.round = Round(call, run)
        outcome = run_pass(call, run)
        if isinstance(run.fault, RETRYABLE):
            raise run.fault
        match outcome:
            case Done() | Failed():
                self.reply = final_reply(self.round, outcome)
            case TaskRequested(ttl_ms=ttl_ms):
                return self._become_task(self.round, task, outcome, ttl_ms)
            case Checkpointed() if call.may_start_task:
                return self._become_task(self.round, task, outcome, TASK_TTL_MS)
            case NeedsInput() if (key := key_asked_too_often(task, run)) is not None:
                self.reply = too_many_answers(self.round, key)
            case NeedsInput(journal=journal) if run.requests.waits_for_urls_only:
                # The user is not asked again: the next pass finds out whether they have finished.
                self.waits_for_url = True
                outcome = Checkpointed(journal)
        return OpenPass(run, outcome) if self.reply is None else conclusion_of(self.reply)

    def _become_task(
        self, this_round: Round, task: Task, outcome: TaskRequested | Checkpointed, ttl_ms: int
    ) -> PassResult:
        """End the parked call as a task. If no task can be created now, the next call tries it again."""
        try:
            self.reply = task_carrier.create(this_round, outcome.journal, ttl_ms, task)
        except (ItemTooLarge, TooManyOpenTasks, StoreError) as error:
            refusal = this_round.error_reply(creation_error(this_round.call, this_round.run, error))
            if not isinstance(error, ItemTooLarge):
                self.refusal = refusal
                return OpenPass(this_round.run, Checkpointed(outcome.journal))
            self.reply = refusal
        return conclusion_of(self.reply)
