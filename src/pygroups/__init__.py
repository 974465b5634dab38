"""Reliable group communication for Python: several processes, one view of the group, one order, no server."""

from pygroups._version import __version__

__all__ = ["__version__"]
