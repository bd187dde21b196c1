"""Tasks: calls that continue without their client (extension io.modelcontextprotocol/tasks).

`model` and `call_and_journal_items` are what the table holds, `transitions` each change of a task with its
condition. `service` is what clients can do, `worker` runs the tool of a task, and `lease` says who may.
A parked call is a task without a worker. What reads or writes the table raises StoreError if the table fails.
"""
