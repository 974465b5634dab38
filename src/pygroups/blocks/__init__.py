"""Building blocks on a channel: dicts, locks, queues and requests that the members of a group share.

Guide: docs/guides/blocks.md.
"""

from .blocks import Blocks
from .counter import Counter
from .errors import NoReply, NotHeld, Overrun, RequestTimeout
from .gathering import Reply
from .leader import Leader, run_on_one
from .locks import Grant, Lock, Semaphore
from .replicated_dict import Change, ReplicatedDict, Resync
from .requests import Requests
from .work_queue import Task, WorkQueue

__all__ = [
    "Blocks",
    "Change",
    "Counter",
    "Grant",
    "Leader",
    "Lock",
    "NoReply",
    "NotHeld",
    "Overrun",
    "ReplicatedDict",
    "Reply",
    "RequestTimeout",
    "Requests",
    "Resync",
    "Semaphore",
    "Task",
    "WorkQueue",
    "run_on_one",
]
