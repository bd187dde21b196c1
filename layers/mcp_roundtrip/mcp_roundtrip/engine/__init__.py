"""The replay engine: runs a tool's function against the journal of its flow.

The same function runs in every round. Journaled answers and step results are replayed, and the first thing
that has not happened yet suspends the run. The engine uses no thread, socket or clock of its own.

- `history`: the position of one pass in the journal.
- `inputs`, `host`, `notifications`, `outcome`: the inputs and the results of a pass.
- `run`: one pass, made of these. `replay` and `async_replay` run the function.
- `questions`, `elicitation`, `client_requests`, `asking`, `url_polling`: questions and their answers.
- `steps`, `retry`, `effects`: side effects.
- `context`, `async_context`: the API for tool authors. `context_call` detects a missing `await`.
- `usage_errors`, `unawaited_errors`: the errors about a tool's code.
"""
