"""The same as `task_rate.py` with FastMCP's tasks extension: `task_fastmcp.py PIPE`, how many on stdin.

Everything is in this process, and nothing is stored: client and server talk in memory, the backend is
`memory://`, and the worker, with its defaults, takes ten tasks at a time.
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


async def rate(client: Client, count: int, pause_s: float) -> float:
    """Tasks per second: `count` calls, then polls of one task after the other until it is completed."""
    started = time.perf_counter()
    tasks = [await call_tool_task(client, "add", {"a": 1, "b": number}) for number in range(count)]
    for number, handle in enumerate(tasks):
        # Not `handle.wait`, which polls as seldom as the server asks for.
        while (task := await handle.status()).status == "working":
            await asyncio.sleep(pause_s)
        assert task.result["structuredContent"] == {"result": 1 + number}, task
    return count / (time.perf_counter() - started)


async def main(pipe: int) -> None:
    given = marshal.load(sys.stdin.buffer)
    async with Client(server) as client:
        await rate(client, given["settled"], given["pause_s"])
        found = await rate(client, given["count"], given["pause_s"])
    with os.fdopen(pipe, "wb") as out:
        marshal.dump({"rate": found}, out)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
