"""Tasks: calls that continue without their client (extension io.modelcontextprotocol/tasks).

==============  ===========================================================================================
`model`         the item of a task
`items`         the other items of a task: the call, the journal, input responses, parts of the result
`stored_items`  reads and writes these items
`changes`       conditional updates of one item, as data
`transitions`   each change of a task's state, with its condition
`call_index`    finds the task of a call that is sent again
`store`         the interface to the table, and a store in memory
`service`       what clients can do: create, get, update and cancel tasks
`limit`         the limit of open tasks for each user
`endings`       how a task ends that no worker finishes
`wake_ups`      what a message of the wake-up queue does
`worker`        runs the tool of a task
`lease`         who holds a task, for how long, and what the holder may do
`heartbeat`     renews a lease in a thread
`recorder`      writes the journal entries and status messages of a pass
==============  ===========================================================================================
"""
