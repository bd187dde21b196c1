"""Run the task of each partition key that is read from stdin, as the worker of `task_rate.py`."""

import sys

from invocations import LambdaContext
from task_server import deploy, task_table

server = deploy(task_table()).server
for line in sys.stdin:
    server.worker_handler({"task": line.strip()}, LambdaContext())
