"""The replay engine: runs a tool's function against the journal of its flow.

The same function runs in every round. Journaled answers and step results are replayed, and the first thing
that has not happened yet suspends the run. The engine uses no thread, socket or clock of its own.

- `journal`: what has happened in a flow, its JSON form, and the position of one pass in it.
- `deadline`, `notifications`: what a pass uses.
- `pass_state`: one pass, made of these. `outcomes` and `async_pass` run the function and return the outcome.
- `question_channels`, `elicitation`, `sampling_and_roots`: what a tool asks, and how it reaches somebody.
- `asking`: how a question gets its answer.
- `steps`, `step_values`, `typed_step_values`: side effects and their results.
- `context`, `async_context`: the API for tool authors. `missing_await` detects a missing `await`.
"""
