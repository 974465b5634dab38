"""All planted histories, each with every promise that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.pipeline import chains as ch
from tests.pipeline import compared as c
from tests.pipeline import gossips as go
from tests.pipeline import merges as m
from tests.pipeline import pairs
from tests.pipeline import planted as p
from tests.pipeline import stories as s
from tests.pipeline import uniforms as u
from tests.pipeline import waits as w
from tests.pipeline.histories import History
from tests.pipeline.planted import Planted, variants


def all_planted() -> list[Planted]:
    """Every planted history and the promises it breaks; nothing outside that list may fire."""
    groups = [*_merges(), *_chains(), *_unicasts(), *_compared(), *_uniform(), *_gossip()]
    return [*_ordinary(), *_members(), *_endings(), *_order(), *_given(), *groups]


def save_planted(root: Path, *, whole: bool) -> Path:
    """Write the journals of the planted histories in which no journal has a hole, or of all others; gives `root`."""
    for history in (planted.make(planted.group) for planted in all_planted()):
        if history.whole == whole:
            history.save(root)
    return root


def _one(group: str, make: Callable[[str], History], breaks: str = "") -> Planted:
    return Planted(group, make, frozenset(breaks.split()))


def _ordinary() -> list[Planted]:
    """One fault planted into an ordinary history, at A and at C, living and dead."""
    profiles = ("fifo", "total", "total1999", "uniform")
    return [
        *(_one(f"clean-{profile}", lambda g, profile=profile: p.clean(g, profile)) for profile in profiles),
        *variants("skipped", p.skipped, "fifo gap-free-prefix virtual-synchrony", "fifo gap-free-prefix"),
        *variants("swapped", p.swapped, "total-order", "total-order"),
        _one("clean-gossip", lambda g: p.clean(g, "gossip")),
        *variants("skipped-in-silence", p.skipped, "fifo gap-announced", "fifo gap-announced", "gossip"),
        *variants("skipped-and-announced", p.skipped_with_a_gap, "", "", "gossip"),
        *variants("swapped-with-positions", p.swapped_with_positions, "total-order", "total-order"),
        *variants("hole-in-positions", p.with_a_hole_in_positions, "total-order", "total-order"),
        *variants("rotated", p.rotated, "total-order", "total-order"),
        *variants("exchanged", p.exchanged, "fifo virtual-synchrony", "fifo"),
        *variants("late", p.late, "fifo total-order", "fifo total-order"),
        *variants("repeated", p.repeated, "fifo no-duplication", "fifo no-duplication"),
        *variants("forged", p.forged, "integrity virtual-synchrony fifo", "integrity fifo"),
        *variants("unsent", p.unsent, "integrity", "integrity"),
        *variants("altered", p.altered, "run-identity integrity", "run-identity integrity"),
        *variants("sent-twice", p.sent_twice, "run-identity", "run-identity"),
        *variants("altered-twice", p.altered_twice, "run-identity integrity", "run-identity integrity"),
        *variants("unplaced", p.unplaced, "total-order", "total-order"),
        *variants(
            "skipped-with-a-gap", p.skipped_with_a_gap, "fifo gap-free-prefix virtual-synchrony", "fifo gap-free-prefix"
        ),
        *variants("resized", p.resized, "run-identity integrity", "run-identity integrity"),
        *variants("lacking", p.lacking_at_the_end, "fifo virtual-synchrony", ""),
        *variants(
            "one-view-late",
            p.one_view_late,
            "same-view-delivery virtual-synchrony",
            "same-view-delivery virtual-synchrony",
        ),
        *variants(
            "purged-hole",
            p.purged_hole,
            "stability-safety gap-free-prefix fifo virtual-synchrony",
            "stability-safety gap-free-prefix",
        ),
        *variants("purged-early", p.purged_too_early, "stability-safety fifo virtual-synchrony", "stability-safety"),
    ]


def _members() -> list[Planted]:
    """Views that are wrong."""
    return [
        *variants("other-list", p.other_list, "view-agreement", "view-agreement"),
        *variants(
            "lower-view",
            p.lower_view,
            "view-monotonic view-accuracy merge-agreement",
            "view-monotonic view-accuracy",
        ),
        *variants(
            "without-itself",
            p.without_itself,
            "self-inclusion view-accuracy transitional-set",
            "self-inclusion view-accuracy transitional-set",
        ),
        *variants("companion-forgotten", p.companion_forgotten, "transitional-set", "transitional-set"),
        *variants("unnamed", p.unnamed, "transitional-set", "transitional-set"),
        *variants("stranger-named", p.stranger_named, "transitional-set", "transitional-set"),
        *(_one(f"no-view-named-{at}", lambda g, at=at: s.no_view_named(g, at), "transitional-set") for at in "AC"),
        *(
            _one(
                f"skipped-and-misnamed-{at}",
                lambda g, at=at: s.skipped_and_misnamed(g, at),
                "transitional-set virtual-synchrony",
            )
            for at in "AC"
        ),
        _one("sends-before-its-view", s.sends_before_its_view, "initial-view"),
        _one("sends-and-dies", s.sends_and_dies, "initial-view"),
        _one("delivers-before-its-view", lambda g: s.delivers_before_its_view(g, dies=False), "initial-view"),
        _one("delivers-and-dies", lambda g: s.delivers_before_its_view(g, dies=True), "initial-view"),
        _one(
            "late-after-a-death-A", lambda g: s.late_after_a_death(g, "A", "B"), "same-view-delivery virtual-synchrony"
        ),
        _one(
            "late-after-a-death-C", lambda g: s.late_after_a_death(g, "C", "A"), "same-view-delivery virtual-synchrony"
        ),
        _one("outside-at-quiet", s.outside_at_quiet, "view-accuracy liveness"),
        *(
            _one(f"two-ids-at-quiet-{at}", lambda g, at=at: s.two_ids_at_quiet(g, at), "view-accuracy liveness")
            for at in "AC"
        ),
        *_disturbed(),
        *(
            _one(f"gap-over-the-dead-{profile}", lambda g, profile=profile: s.gap_over_the_dead(g, profile), "fifo")
            for profile in ("fifo", "total", "uniform")
        ),
        *(_one(f"knocked-{at}", lambda g, at=at: s.knocked(g, at), "total-order") for at in "AC"),
        _one("slow-to-heal", lambda g: s.slow_to_heal(g, 500), "liveness"),
        _one("late-without-a-journal", lambda g: s.slow_to_heal(g, 500, missing="D"), "liveness"),
        _one("quick-to-heal", lambda g: s.slow_to_heal(g, 5000)),
    ]


def _disturbed() -> list[Planted]:
    """Who is lost after a fault, or before any."""
    return [
        *(_one(f"newborn-after-a-fault-{at}", lambda g, at=at: s.newborn_after_a_fault(g, at)) for at in "AC"),
        _one("newborns-alone", s.newborns_alone),
        *(_one(f"bad-weather-{at}", lambda g, at=at: s.bad_weather(g, at)) for at in "AC"),
        *(
            _one(f"excluded-for-nothing-{at}", lambda g, at=at: s.excluded_for_nothing(g, at), "view-accuracy")
            for at in "AC"
        ),
        _one("excluded-without-a-journal", lambda g: s.excluded_for_nothing(g, "C", missing="D")),
        _one("a-fault-elsewhere", lambda g: s.a_fault_elsewhere(g, marked=True), "view-accuracy"),
        _one("marks-elsewhere", lambda g: s.a_fault_elsewhere(g, marked=False)),
    ]


def _endings() -> list[Planted]:
    return [
        *(_one(f"own-lost-{at}", lambda g, at=at: s.own_lost(g, at), "self-delivery liveness") for at in "ABCD"),
        *(
            _one(f"differ-at-quiet-{at}", lambda g, at=at: s.differ_at_quiet(g, at), "agreement liveness")
            for at in "AC"
        ),
        *(_one(f"differ-as-much-{at}", lambda g, at=at: s.differ_as_much(g, at), "agreement liveness") for at in "AC"),
        *(_one(f"left-with-half-{at}", lambda g, at=at: s.left_with_half(g, at), "multicast-reported") for at in "AC"),
        *(
            _one(f"left-with-a-hole-{at}", lambda g, at=at: s.left_with_a_hole(g, at), "multicast-reported fifo")
            for at in "AC"
        ),
        *(_one(f"full-at-quiet-{at}", lambda g, at=at: s.full_at_quiet(g, at), "buffers-drain") for at in "ABCD"),
        *(_one(f"gap-over-own-{at}", lambda g, at=at: s.gap_over_own(g, at), "self-delivery fifo") for at in "AC"),
        _one("left-unlisted", lambda g: s.left_without_report(g, listed=False), "multicast-reported"),
        _one("left-listed", lambda g: s.left_without_report(g, listed=True)),
    ]


def _order() -> list[Planted]:
    """What broke a checker of order before."""
    return [
        *(_one(f"ahead-total-{at}", lambda g, at=at: s.ahead_and_resent(g, "total", at)) for at in "AC"),
        *(
            _one(f"ahead-{profile}-{at}", lambda g, profile=profile, at=at: s.ahead_and_resent(g, profile, at), breaks)
            for profile, breaks in (
                ("uniform", "same-view-delivery uniform-agreement total-order-global"),
                ("uniform-fifo", "same-view-delivery uniform-agreement"),
            )
            for at in "AC"
        ),
        _one("unseen-by-reference", s.unseen_by_reference, "total-order"),
        _one("cycle", s.cycle, "gap-free-prefix"),
        *(_one(f"cut-block-{at}", lambda g, at=at: s.cut_block(g, at, swap=False)) for at in "AC"),
        *(
            _one(f"cut-block-swapped-{at}", lambda g, at=at: s.cut_block(g, at, swap=True), "total-order")
            for at in "AC"
        ),
        *(_one(f"behind-a-hole-{at}", lambda g, at=at: s.behind_a_hole(g, at)) for at in "AC"),
        *(_one(f"without-journal-{of}", lambda g, of=of: s.without_journal(g, of)) for of in "AC"),
    ]


def _given() -> list[Planted]:
    """Newcomers and states."""
    return [
        _one("joined", lambda g: s.joined(g, "right")),
        _one("joined-covered", lambda g: s.joined(g, "covered"), "no-duplication fifo agreement gap-free-prefix"),
        _one("joined-hole", lambda g: s.joined(g, "hole"), "fifo agreement gap-free-prefix"),
        *(_one(f"state-{wrong}", lambda g, wrong=wrong: s.given_state(g, wrong)) for wrong in ("right", "missing")),
        *(
            _one(f"state-{wrong}", lambda g, wrong=wrong: s.given_state(g, wrong), "state-cut")
            for wrong in ("claim", "digest", "bytes")
        ),
        *_waits(),
        *(_one(f"state-claims-less-{at}", lambda g, at=at: s.claims_less(g, at), "state-cut") for at in "AC"),
    ]


def _waits() -> list[Planted]:
    """A newcomer that waits for one state after the other; the first provider, the coordinator or not, dies."""
    return [
        planted
        for at in "AC"
        for planted in (
            _one(f"waited-set-{at}", lambda g, at=at: w.set_at_last(g, at)),
            _one(
                f"waited-set-without-{at}",
                lambda g, at=at: w.set_without_what_was_delivered(g, at),
                "confirmed virtual-synchrony",
            ),
            _one(f"waited-lost-{at}", lambda g, at=at: w.lost(g, at)),
            _one(f"waited-lost-later-{at}", lambda g, at=at: w.lost(g, at, at_the_second=True), "confirmed"),
            _one(f"waited-gives-more-{at}", lambda g, at=at: w.lost(g, at, lacks=True), "confirmed virtual-synchrony"),
        )
    ]


def _merges() -> list[Planted]:
    """Views that merge, and the gaps with which a merged view begins."""
    agreement: dict[str, Callable[[str], History]] = {
        "listed-otherwise-A": lambda g: m.survived(g, m.subgroups_of("CD", "AB", at="A")),
        "listed-otherwise-C": lambda g: m.survived(g, m.subgroups_of("CD", "AB", at="C")),
        "left-out-A": lambda g: m.survived(g, m.subgroups_of("B", "CD")),
        "left-out-D": lambda g: m.survived(g, m.subgroups_of("AB", "C")),
        "left-out-dead": lambda g: m.died_in_a_merge(g, m.subgroups_of("AB", "C")),
        "twice-A": lambda g: m.survived(g, m.subgroups_of("AB", "ACD")),
        "one-subgroup": lambda g: m.survived(g, m.subgroups_of("ABCD")),
        "empty-subgroup": lambda g: m.survived(g, m.subgroups_of("AB", "CD", "")),
        "one-view-twice": lambda g: m.survived(g, m.subgroups_of("A", "B", "CD")),
        "of-two-views": lambda g: m.survived(g, m.subgroups_of("ABC", "D")),
        "unsorted": lambda g: m.survived(g, order="CDAB"),
        "divided-A": lambda g: m.divided(g, "A", healed=True),
        "divided-D": lambda g: m.divided(g, "D", healed=True),
    }
    announced: dict[str, Callable[[str], History]] = {
        **{f"unannounced-{at}": lambda g, at=at: m.survived(g, m.gap_over_the_dead(at)) for at in "AB"},
        **{f"short-{at}": lambda g, at=at: m.survived(g, m.gap_over_the_dead(at, (1, 3))) for at in "AB"},
        **{f"twice-{at}": lambda g, at=at: m.survived(g, m.gap_over_the_dead(at, (1, 5), (1, 5))) for at in "AB"},
        **{
            f"beyond-{at}": lambda g, at=at, first=first: m.survived(g, m.gap_over_the_dead(at, (first, 7)), unheard=2)
            for at, first in (("A", 1), ("C", 6))
        },
        **{f"had-{at}": lambda g, at=at: m.survived(g, m.gap_over_the_dead(at, (1, 5))) for at in "CD"},
        **{
            f"named-nobody-{at}": lambda g, at=at: m.survived(g, m.gap_over_the_dead(at, (1, 5), side=m.NO_SUBGROUP))
            for at in "AB"
        },
        **{f"unlike-{at}": lambda g, at=at: m.survived(g, m.marks_of_the_dead(0, at)) for at in "CD"},
        "unheard": lambda g: m.survived(g, m.marks_of_the_dead(7), unheard=2),
        "below": lambda g: m.survived(g, m.marks_of_the_dead(3)),
        "unnamed": lambda g: m.survived(g, m.marks_of_the_dead(0, gaps=False)),
        **{f"late-{at}": lambda g, at=at: m.late_gap(g, at) for at in "AB"},
    }
    return [
        _one("merged", m.merged),
        _one("merged-and-quiet", lambda g: m.merged(g, more=False)),
        *(_one(f"merged-and-given-{at}", lambda g, at=at: m.merged_and_given(g, at)) for at in "AC"),
        _one("merged-in-uniform", lambda g: m.merged(g, profile="uniform"), "fifo primary-chain"),
        _one("merged-without-gap", lambda g: m.merged(g, forgets="C"), "fifo merge-announced"),
        _one("reunited-without-fault", lambda g: m.merged(g, apart=False), "view-accuracy"),
        _one("merged-survivors", m.survived),
        _one("merged-newcomer", m.newcomers_merged),
        _one("merged-newcomer-begun-anew", lambda g: m.newcomers_merged(g, "E")),
        *(
            _one(f"repeated-before-a-state-{at}", lambda g, at=at: m.newcomers_merged(g, at, at), "fifo no-duplication")
            for at in "AE"
        ),
        *(_one(f"replaced-twice-{at}", lambda g, at=at: m.replaced_twice(g, at)) for at in "BCE"),
        *(
            _one(f"replaced-twice-untold-{at}", lambda g, at=at: m.replaced_twice(g, at, told=False), "confirmed")
            for at in "BCE"
        ),
        _one("merged-without-subgroups", m.untold, "merge-agreement"),
        _one("merged-without-the-dead", m.died_in_a_merge),
        _one("merged-without-journals", m.merged_without_journals),
        *(_one(f"merged-in-a-fault-{at}", lambda g, at=at: m.divided(g, at, healed=False)) for at in "AD"),
        _one("merged-twice", m.merged_twice),
        *(
            _one(f"named-too-{at}", lambda g, at=at: m.merged_twice(g, m.named_too(at, "D")), "merge-announced")
            for at in "AB"
        ),
        *(_one(f"merge-{name}", make, "merge-agreement") for name, make in agreement.items()),
        *(_one(f"gap-{name}", make, "merge-announced") for name, make in announced.items()),
    ]


def _chains() -> list[Planted]:
    """Views that a majority decides."""
    right: dict[str, Callable[[str], History]] = {
        "left-together": ch.left_together,
        "answered-in-its-place": ch.answered_in_its_place,
        "half-with-the-first": lambda g: ch.after(g, "ABCD", "CD", "AB", "AB"),
        "accepted-by-the-dead": lambda g: ch.after(g, "ABC", "C", "AB", "AC"),
        "vouched": lambda g: ch.vouched(g, "AB"),
        "vouched-and-ahead": lambda g: ch.vouched(g, "AB", ahead=True),
        "begun-under-two-ids": lambda g: ch.begun_twice(g, "h1", "h2"),
        "without-the-founder": ch.without_the_founder,
        **{f"without-journal-{of}": lambda g, of=of: ch.without_journal(g, of) for of in "AB"},
    }
    wrong: dict[str, Callable[[str], History]] = {
        "forked-A": lambda g: ch.forked(g, "A", "C"),
        "forked-C": lambda g: ch.forked(g, "C", "A"),
        "joined-from-a-view": ch.joined_from_a_view,
        "begun-twice": ch.begun_twice,
        **{f"another-history-{at}": lambda g, at=at: ch.another_history(g, at) for at in "AC"},
        "without-history": ch.without_history,
        **{f"not-primary-{at}": lambda g, at=at: ch.not_primary(g, at) for at in "AC"},
        "minority": lambda g: ch.after(g, "ABC", "BC", "A", "A"),
        "half-without-the-first": lambda g: ch.after(g, "ABCD", "AB", "CD", "CD"),
        "two-ballots": ch.two_ballots,
        "joiners-voted": ch.joiners_voted,
        "begun-again": ch.begun_again,
        "vouched-for-too-few": lambda g: ch.vouched(g, "C", "ABCD"),
        "vouched-and-half-of-the-others": lambda g: ch.vouched(g, "AB", "ABCD"),
        "vouched-in-the-old-history": lambda g: ch.vouched(g, "AB", id="h1"),
    }
    return [
        *(_one(f"chain-{name}", make) for name, make in right.items()),
        *(_one(f"chain-{name}", make, "primary-chain") for name, make in wrong.items()),
    ]


def _unicasts() -> list[Planted]:
    broken = {
        "right": "",
        "reported": "unicast-fifo",
        "missing": "",
        "swapped": "unicast-fifo",
        "lost": "unicast-fifo unicast-reported",
        "last": "unicast-reported",
        "half": "unicast-fifo unicast-reported",
        "repeated": "unicast-once unicast-fifo",
        "repeated-1": "unicast-once unicast-fifo",
        "repeated-2": "unicast-once unicast-fifo",
        "repeated-5": "unicast-once unicast-fifo",
        "elsewhere": "unicast-fifo unicast-reported",
        "altered": "run-identity integrity",
        "falls": "unicast-fifo",
    }
    return [_one(f"unicast-{wrong}", lambda g, wrong=wrong: pairs.unicasts(g, wrong), b) for wrong, b in broken.items()]


def _compared() -> list[Planted]:
    """What other judges saw."""
    return [
        *variants("swapped-at-an-edge", c.swapped_at_an_edge, "total-order", "total-order"),
        *variants(
            "skipped-at-an-edge",
            c.skipped_at_an_edge,
            "fifo gap-free-prefix virtual-synchrony",
            "fifo gap-free-prefix",
        ),
        *variants("repeated-at-an-edge", c.repeated_at_an_edge, "fifo no-duplication", "fifo no-duplication"),
        *variants("postponed-past-an-edge", c.postponed_past_an_edge, "total-order", "total-order"),
        *variants("divergent", c.divergent, "gap-free-prefix virtual-synchrony fifo", "gap-free-prefix"),
        *variants(
            "repeated-later",
            c.repeated_later,
            "fifo no-duplication same-view-delivery virtual-synchrony",
            "fifo no-duplication same-view-delivery",
        ),
        *variants("altered-12-times", c.altered_12_times, "run-identity integrity", "run-identity integrity"),
        *variants("in-halves", c.in_halves, "run-identity integrity virtual-synchrony", "run-identity integrity"),
        *variants(
            "skipped-at-the-start",
            c.skipped_at_the_start,
            "fifo gap-free-prefix virtual-synchrony",
            "fifo gap-free-prefix",
        ),
        *variants(
            "purged-by-a-later-vote",
            c.purged_by_a_later_vote,
            "stability-safety fifo virtual-synchrony",
            "stability-safety",
        ),
        _one("repeated-later-by-all", c.repeated_later_by_all, "fifo no-duplication same-view-delivery"),
        _one("altered-everywhere", c.altered_everywhere, "run-identity integrity"),
        _one("late-everywhere", c.late_everywhere, "fifo"),
        *(
            _one(f"lost-with-its-sender-{at}", lambda g, at=at: c.lost_with_its_sender(g, at), "virtual-synchrony")
            for at in "AC"
        ),
        *(
            _one(
                f"two-lack-{one}{other}",
                lambda g, one=one, other=other: c.two_lack(g, one, other),
                "fifo gap-free-prefix virtual-synchrony",
            )
            for one, other in ("AC", "CA")
        ),
        *(_one(f"same-number-twice-{at}", lambda g, at=at: c.same_number_twice(g, at), "run-identity") for at in "AC"),
        _one("ragged-ends", c.ragged_ends),
        *(_one(f"state-less-at-both-{at}", lambda g, at=at: c.state_less_at_both(g, at), "state-cut") for at in "AC"),
        *(_one(f"state-of-later-{at}", lambda g, at=at: c.state_of_later(g, at), "state-cut") for at in "AC"),
        _one("state-passed-on", c.state_passed_on),
        *(_one(f"copied-while-running-{at}", lambda g, at=at: c.copied_while_running(g, at)) for at in "AC"),
        _one("copied-in-a-merge", c.copied_in_a_merge),
        *(
            _one(
                f"copied-before-a-split-{later}-{at}",
                lambda g, at=at, later=later: c.copied_before_a_split(g, at, later),
            )
            for at in "AC"
            for later in ("there", "gone")
        ),
        *(_one(f"copied-between-unicasts-{at}", lambda g, at=at: c.copied_between_unicasts(g, at)) for at in "AB"),
        *(_one(f"unsent-in-a-copy-{at}", lambda g, at=at: c.unsent_in_a_copy(g, at), "integrity") for at in "AC"),
        *(_one(f"left-lacking-{at}", lambda g, at=at: c.left_settled(g, at, "B"), "agreement") for at in "AC"),
        *(
            _one(f"left-without-own-{at}", lambda g, at=at: c.left_settled(g, at, at), "agreement self-delivery")
            for at in "AC"
        ),
        *(
            _one(
                f"excluded-untold-{profile}",
                lambda g, profile=profile: c.excluded_untold(g, profile),
                "multicast-reported",
            )
            for profile in ("total", "uniform")
        ),
    ]


def _uniform() -> list[Planted]:
    """What any member delivered in a view, and its place in the one order."""
    order, both = "total-order-global", "uniform-agreement total-order-global"
    plants = [
        ("skipped", p.skipped, f"fifo gap-free-prefix virtual-synchrony {both}", f"fifo gap-free-prefix {order}"),
        ("swapped", p.swapped, f"total-order {order}", f"total-order {order}"),
        ("repeated", p.repeated, f"fifo no-duplication {order}", f"fifo no-duplication {order}"),
        ("exchanged", p.exchanged, f"fifo virtual-synchrony {both}", f"fifo {both}"),
        ("lacking", p.lacking_at_the_end, "fifo virtual-synchrony uniform-agreement", ""),
        (
            "one-view-late",
            p.one_view_late,
            f"same-view-delivery virtual-synchrony {both}",
            f"same-view-delivery virtual-synchrony {both}",
        ),
    ]
    lost = "uniform-agreement"
    return [
        *(one for name, *plant in plants for one in variants(f"uniform-{name}", *plant, profile="uniform")),
        *variants("uniform-fifo-skipped", p.skipped, f"fifo virtual-synchrony {lost}", "fifo", "uniform-fifo"),
        *(
            _one(f"alone-and-dead-{name}-{at}", lambda g, name=name, at=at: u.alone_and_dead(g, name, at), lost)
            for name in ("uniform", "uniform-fifo")
            for at in "AC"
        ),
        *(_one(f"alone-and-excluded-{at}", lambda g, at=at: u.alone_and_excluded(g, at), lost) for at in "AC"),
        *(
            _one(f"behind-and-dead-{name}-{at}", lambda g, name=name, at=at: u.behind_and_dead(g, name, at))
            for name in ("uniform", "uniform-fifo")
            for at in "AC"
        ),
        *(
            _one(
                f"uniform-differ-at-quiet-{at}",
                lambda g, at=at: s.differ_at_quiet(g, at, "uniform"),
                f"agreement liveness {lost}",
            )
            for at in "AC"
        ),
        *(
            _one(f"lost-before-an-operator-{at}", lambda g, at=at: u.lost_before_an_operator(g, at), lost)
            for at in "AD"
        ),
        _one("branched", lambda g: u.branched(g, again=False)),
        _one("branched-and-sent-again", lambda g: u.branched(g, again=True)),
        *(_one(f"uniform-without-the-dead-{at}", lambda g, at=at: u.without_the_dead(g, at)) for at in "AC"),
        *(_one(f"uniform-behind-a-hole-{at}", lambda g, at=at: u.behind_a_hole(g, at)) for at in "AC"),
        *(_one(f"uniform-copied-{at}", lambda g, at=at: u.copied(g, at)) for at in "AC"),
    ]


def _gossip() -> list[Planted]:
    """The share of the messages that members of a gossip group miss."""
    right: dict[str, Callable[[str], History]] = {
        **{f"few-missed-{at}": lambda g, at=at: go.missed(g, at, 14) for at in "AC"},
        **{f"missed-by-the-dead-{at}": lambda g, at=at: go.missed_by_the_dead(g, at) for at in "AC"},
        **{f"missed-while-apart-{at}": lambda g, at=at: go.missed_while_apart(g, at) for at in "AC"},
        "joined-late": lambda g: go.joined_late(g, 200),
        "joined-behind": go.joined_behind,
        "left-one-by-one": lambda g: go.left_one_by_one(g, 0),
        "missed-without-a-bound": go.without_bound,
        "missed-with-any-share": go.with_any_share,
        "missed-too-few-to-tell": go.too_few,
    }
    return [
        *(_one(f"epsilon-{name}", make) for name, make in right.items()),
        *(_one(f"epsilon-missed-{at}", lambda g, at=at: go.missed(g, at, 80), "epsilon") for at in "AC"),
        _one("epsilon-missed-everywhere", go.missed_everywhere, "epsilon"),
        _one("epsilon-joined-late-and-missed", lambda g: go.joined_late(g, 200, 60), "epsilon"),
        _one("epsilon-left-after-a-gap", lambda g: go.left_one_by_one(g, 100), "epsilon"),
        *(
            _one(f"epsilon-never-arrived-{at}", lambda g, at=at: go.never_arrived(g, at), "epsilon liveness")
            for at in "AC"
        ),
    ]
