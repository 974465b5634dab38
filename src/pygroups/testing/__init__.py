"""A group in memory, for the tests of programs that use pygroups: no sockets, no waiting time.

Guide: docs/guides/testing.md.
"""

from pygroups.sim.promises.broken import Broken

from .errors import Crashed, Hang, LeftOpen, Unsettled
from .group import Group, run

__all__ = ["Broken", "Crashed", "Group", "Hang", "LeftOpen", "Unsettled", "run"]
