"""Carriers: where the journal of a call waits that cannot end in its request.

`state`   in the state that the client sends again
`parked`  in the task table, until the call is made again
`task`    in a task, which a worker runs

The fourth way is to keep nothing: the call is made again, and starts from its beginning (`restart` in
`server.plan`). `stored` and `ending` are what tasks and parked calls share.
"""
