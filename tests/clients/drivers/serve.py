"""Drives the clients of the environment whose interpreter runs it."""

import asyncio

import lines

asyncio.run(lines.serve())
