"""Channels and blocks for programs without an event loop, such as threads: the calls block.

Guide: docs/guides/blocks.md.
"""

from .blocks import Blocks, Counter, Grant, Lock, ReplicatedDict, Requests, Semaphore, Task, WorkQueue
from .channel import Channel

__all__ = [
    "Blocks",
    "Channel",
    "Counter",
    "Grant",
    "Lock",
    "ReplicatedDict",
    "Requests",
    "Semaphore",
    "Task",
    "WorkQueue",
]
