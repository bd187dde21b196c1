"""Delete versions of worker functions that no open task needs.

With ``TaskDelivery: invoke``, the version of the worker that created a task runs it to its end, so the stack
retains every version. CloudFormation never deletes them.
"""
