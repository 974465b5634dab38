"""Situations that are too rare to be drawn often, and in which a planted bug (tests/mutants) makes a difference."""

from __future__ import annotations

from pygroups.sim.scenarios.group import scenario


def test_a_forward_that_comes_before_its_view_is_kept() -> None:
    """A leaves; C has the next view before B, which orders in it, and no later view sends C's message again (M2)."""
    with scenario("A B C") as group:
        group.delay("Install", src="A", dest="B", by=0.05)
        group.leave("A")
        group.until(lambda: group["C"].view == ("B", "C"), within=5)
        assert group["B"].view == ("A", "B", "C")
        group["C"].sends("early")
        group.settles(within=40)
        assert group["B"].texts == group["C"].texts == ["early"]


def test_a_late_copy_of_an_old_connection_opens_nothing() -> None:
    """The first message of a connection comes again when the next connection is open (M29)."""
    with scenario("A B") as group:
        group["A"].forgets("B")
        first = group.watch("unicast2.Data", src="A", dest="B", count=1, where=lambda run: run.count > 0)
        for _ in range(2):
            group["A"].tells("B", 3)
            group.settles()
            group["A"].forgets("B")
        group.again(first.hits[0])
        group["A"].tells("B", 3)
        group.settles()
        assert group["B"].received_from("A") == list(range(1, 10))


def test_members_that_nobody_leads_any_more_call_for_an_attempt() -> None:
    """B takes A for dead and leads, D's answer does not come, and then A is heard again: B leads no more, and A knows
    nothing of it.  Those who are bound have to call (M52)."""
    with scenario("A B C D") as group:
        answers = group.drop("CollectAck", src="D")
        group.cut("A", way="out")
        group.until(lambda: len(answers.hits) > 0, within=20)
        group.until(lambda: group["B"].counters.get("flush restarted", 0) > 0, within=20)
        group.heal()
        group["A"].sends("go on")
        group.settles(within=30)
        assert all(group[name].view[0] == "A" for name in "ABCD")


def test_a_suspect_that_answers_ready_stays_in_the_view() -> None:
    """A was not heard for a while and answers B's Ready before C does: nobody has to stop (M51)."""
    with scenario("A B C") as group:
        asked = group.watch("Ready", src="B", dest="A")
        group.delay("ReadyRsp", src="C", by=0.5)
        group.cut("A", way="out")
        group.until(lambda: len(asked.hits) > 0, within=20)
        group.mend("A", way="out")
        group.settles(within=30)
        assert [group[name].view for name in "ABC"] == [("A", "B", "C")] * 3
        assert group["C"].views == [("A", "B", "C")]


def test_a_joiner_is_told_of_a_view_when_the_others_have_it() -> None:
    """B never gets the installation of the view with C, and A, which decided it, dies: C is taken in by B (M11)."""
    with scenario("A B") as group:
        group.drop("Install", src="A", dest="B")
        group.start("C")
        group.after(0.2)
        assert not group["C"].view
        group.crash("A")
        group.heal()
        group.until(lambda: group["B"].view == group["C"].view == ("B", "C"), within=20)


def test_a_late_run_is_not_taken_after_the_answer_to_collect() -> None:
    """A's last message reaches C alone, while it waits for the installation, behind the cut (M44)."""
    with scenario("A B C") as group:
        group.drop("sequencer.Data", src="A", dest="B")
        group.delay("sequencer.Data", src="A", dest="C", by=0.3)
        group.delay("Install", src="B", dest="C", by=0.5)
        group["A"].sends("late")
        group.after(0.01)
        group.crash("A")
        group.until(lambda: group["C"].view == ("B", "C"), within=20)
        assert group["B"].texts == group["C"].texts == []
        assert group["C"].drops["run after the stop"] == 1
