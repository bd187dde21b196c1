"""Carriers: where the journal of a call waits that cannot end in its request.

`state`    in the state that the client sends again
`parked`   in the task table, until the call is made again
`task`     in a task, which a worker runs
`restart`  nowhere: the call is made again, and starts from its beginning
"""
