"""Many schedules, as a user calls them, and that a seed is the same history in every process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pygroups.layers.profiles import PROFILES
from pygroups.sim.batches.coverage import SEEDS_MIN
from tests.sim.test_command import digests, simulate

EACH = 60
DETERMINED = range(1_002, 1_004)
PARTS = {"fifo", "uniform-fifo"}
"""Profiles whose layers are all in another one."""
RARE = {
    "name taken",
    "lower ballot rejected",
    "multicasts queued for the next view",
    "state lost with all its holders",
    "state from a second provider",
    "Elsewhere sent",
    "Collect of a merge refused",
    "merge tried again",
}
"""Stages that so few schedules may miss."""


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_the_first_schedules_hold(profile: str) -> None:
    done = simulate("--seeds", f"0:{EACH}", "--profile", profile, "--json", timeout=600)
    answer = json.loads(done.stdout)
    assert answer["failure"] is None, answer["failure"]
    assert answer["schedules"] == EACH and done.returncode == 0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("profile", PROFILES)
def test_many_schedules_hold_and_try_what_they_should(profile: str) -> None:
    done = simulate("--seeds", f"0:{SEEDS_MIN}", "--profile", profile, "--json", timeout=3600)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert answer["failure"] is None, answer["failure"]
    assert answer["shortcomings"] == [], done.stderr
    assert answer["schedules"] == SEEDS_MIN
    assert answer["not_judged"] == []
    assert answer["faults_that_never_happened"] == []
    assert set(answer["stages_never_hit"]) <= RARE
    assert done.returncode == 0 and done.stderr == "", "in a pipe nothing is said of the progress"


@pytest.mark.slow
@pytest.mark.parametrize(
    "profile", [pytest.param(name, marks=pytest.mark.long if name in PARTS else ()) for name in PROFILES]
)
def test_a_seed_is_the_same_history_in_every_process(profile: str, tmp_path: Path) -> None:
    """Byte for byte, under other hash seeds, split over other numbers of processes."""
    seeds = f"{DETERMINED.start}:{DETERMINED.stop}"
    found: list[dict[str, str]] = []
    for hash_seed, jobs in (("1", "1"), ("4711", "2")):
        folder = tmp_path / hash_seed
        options = ("--seeds", seeds, "--profile", profile, "--jobs", jobs, "--journal", str(folder), "--json")
        done = simulate(*options, hash_seed=hash_seed, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(digests(folder))
    groups = {name.split("/")[0] for name in found[0]}
    assert groups == {f"seed-{seed}" for seed in DETERMINED}
    assert len(found[0]) >= 3 * len(DETERMINED)
    differing = [name for name in found[0] if found[0][name] != found[1].get(name)]
    assert differing == [] and found[0].keys() == found[1].keys()
