"""The tests of the drivers run on both event loops."""

from tests.event_loops import either_loop

__all__ = ["either_loop"]
