"""What a message costs four members, in function calls and turns: see bench/calls.py.

The counts are exact, so a bound here is the present count and a little room for another version of Python.  Lower the
bound with each change that makes a message cheaper; a change that needs a higher one says why.
"""

from __future__ import annotations

from bench.calls import count


def test_calls_of_a_run_in_a_flood() -> None:
    assert count("flood").calls <= 757


def test_calls_and_turns_of_a_lone_message() -> None:
    lone = count("lone")
    assert lone.calls <= 1_525
    assert lone.turns <= 6.2
