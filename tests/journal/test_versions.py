"""The header: what a stack gives, and journals of version 1, which name the profile alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pygroups.journal.frames import Header, frame_of, walk
from pygroups.journal.schema import MAGIC, services_of_v1
from pygroups.journal.writer import JournalWriter, MemoryJournal, segment_path
from pygroups.layers.profiles import PROFILES

IDENTITY = ("orders", "A", "3f2c")


def first_version(profile: object) -> bytes:
    """A segment as version 1 wrote it."""
    return MAGIC + b"\x01" + frame_of([[*IDENTITY, profile, "0.1.0", "here", "boot", []]])


def header_of(data: bytes) -> Header:
    header = next(walk(data))
    assert isinstance(header, Header)
    return header


def test_the_header_says_what_the_stack_gives() -> None:
    journal = MemoryJournal(*IDENTITY, "made-up", services=frozenset({"TOTAL", "MEMBERSHIP"}))
    assert header_of(journal.getvalue()).services == ["MEMBERSHIP", "TOTAL"]


def test_a_header_of_version_1_means_the_services_of_its_profile() -> None:
    header = header_of(first_version("uniform"))
    assert (header.profile, header.services) == ("uniform", services_of_v1("uniform"))
    assert {"PRIMARY", "TOTAL", "UNIFORM", "VIRTUAL_SYNCHRONY"} <= set(header.services)
    assert header_of(first_version("unheard of")).services == []


@pytest.mark.parametrize("profile", [["uniform"], None, 7])
def test_a_profile_of_another_type_is_no_header(profile: object) -> None:
    assert not isinstance(next(walk(first_version(profile))), Header)


def test_a_journal_of_version_1_goes_on_in_version_2(tmp_path: Path) -> None:
    folder = tmp_path / "orders" / "A@3f2c"
    folder.mkdir(parents=True)
    before = [["start", 0, 1, 1, None, {}, None]]
    segment_path(folder, 0).write_bytes(first_version("uniform") + frame_of(before))
    journal = JournalWriter(tmp_path, *IDENTITY, "uniform", host="here", boot_id="boot", services=["PRIMARY"])
    assert (journal.continues, journal.next_index) == ("uniform", 1)
    journal.close()
    assert header_of(segment_path(folder, 1).read_bytes()).services == ["PRIMARY"]


@pytest.mark.parametrize("name", PROFILES)
def test_what_version_1_meant_is_what_the_stacks_still_give(name: str) -> None:
    assert set(services_of_v1(name)) <= PROFILES[name].services
