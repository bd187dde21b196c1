"""Tasks: calls that continue without their client (extension io.modelcontextprotocol/tasks).

=====================  ====================================================================================
`model`                the item of a task
`items`                its other items: call, journal, responses, parts of the result, and what names it
`transitions`          each change of a task's state, with its condition
`store`                the interface to the table, and conditional updates of an item
`service`              what clients can do: create, get, update and cancel tasks
`limit`                the limit of open tasks for each user
`watchdog`             ends tasks that no worker finishes, and dispatches lost workers again
`worker`               runs the tool of a task
`lease`                who holds a task, for how long, and the thread that renews the lease
`recorder`             what a pass of a worker adds to its task
`parked`               calls that wait in the table without a worker
`question_page_links`  links to the page on which a user answers the questions of a task or a parked call
=====================  ====================================================================================
"""
