"""Measure tasks per second like `task_rate.py`, with FastMCP's tasks extension: `task_rate_fastmcp.py PIPE`.

Client, server and worker share one process. Nothing is stored: the backend is `memory://`. By default, the
worker runs ten tasks at a time. The numbers of tasks are on stdin.
"""

import asyncio
import marshal
import os
import sys
import time

from fastmcp import Client, FastMCP
from fastmcp_tasks import TasksExtension, call_tool_task

server = FastMCP("bench")
server.add_extension(TasksExtension(url="memory://"))


@server.tool(task=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def measure_rate(client: Client, count: int, pause_s: float) -> float:
    """Create `count` tasks, poll each until it is completed, and return tasks per second."""
    started = time.perf_counter()
    tasks = [await call_tool_task(client, "add", {"a": 1, "b": number}) for number in range(count)]
    for number, handle in enumerate(tasks):
        # Not `handle.wait`, which uses the poll interval that the server suggests.
        while (task := await handle.status()).status == "working":
            await asyncio.sleep(pause_s)
        assert task.result["structuredContent"] == {"result": 1 + number}, task
    return count / (time.perf_counter() - started)


async def main(pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    async with Client(server) as client:
        await measure_rate(client, given["warm_up_tasks"], given["pause_s"])
        found = await measure_rate(client, given["count"], given["pause_s"])
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"rate": found}, out)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
