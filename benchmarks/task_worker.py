"""The worker of `task_rate.py`: works on the task of each partition key that it reads from stdin."""

import sys

from probe import Context
from task_server import deployed, table

server = deployed(table()).server
for line in sys.stdin:
    server.worker_handler({"task": line.strip()}, Context())
