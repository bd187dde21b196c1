"""The persistent workflow: calls that go on without their client (extension io.modelcontextprotocol/tasks).

=============  ===========================================================================================
`changes`      a conditional update of one item, as data
`store`        where items lie: the Protocol, and one in memory
`model`        what a task's items hold
`transitions`  every way a task's status can change, with its condition
=============  ===========================================================================================
"""
