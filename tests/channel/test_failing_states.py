"""A state that is not given, not set, or lost: nobody waits for ever, and the program is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pygroups import Channel, ChannelClosed, Event, Left, Message, Refused, StateLost, Suspected, UsageError, View
from pygroups.channel.log import Log
from pygroups.channel.state.states import StateRequest, States
from pygroups.core import events as core
from pygroups.core.address import Address
from pygroups.core.limits import Config
from pygroups.core.state_events import StateFailed, StateWanted
from pygroups.core.view import ViewId
from tests.channel.socket_group import Group, both_profiles, in_a_group, until
from tests.channel.test_state import records

A, B, C = Address("A", "00"), Address("B", "01"), Address("C", "02")

__all__ = ["both_profiles"]
pytestmark = pytest.mark.usefixtures("both_profiles")
VIEW = ViewId(3, A)
QUICK = Config(views_per_second=50)


class App:
    """An application with a state; a test replaces what it wants otherwise."""

    def __init__(self, state: bytes = b"state") -> None:
        self.state = state
        self.sets = 0
        self.pause = 0.0

    async def get_state(self) -> Any:
        return self.state

    async def set_state(self, data: bytes) -> None:
        self.sets += 1
        await asyncio.sleep(self.pause)
        self.state = data


class InPieces(App):
    """An application that gives its state in pieces; a test says which."""

    async def get_state(self) -> Any:
        return self._pieces()

    def _pieces(self) -> AsyncIterator[Any]:
        raise NotImplementedError


class Recorder:
    """Takes the place of the member."""

    def __init__(self) -> None:
        self.asked: list[core.Event] = []

    def ask(self, event: core.Event) -> None:
        self.asked.append(event)

    def losses(self) -> tuple[int, int]:
        return 0, 0

    def record(self, kind: str, fields: dict[str, object], view: ViewId | None = None) -> None:
        pass


def given_by(app: App, read: bool = True) -> tuple[list[core.Event], Exception | None, list[Exception]]:
    """What the joiners B and C are told, what the reader of the provider gets at once, and what it gets later."""
    recorder, later = Recorder(), list[Exception]()

    async def main() -> Exception | None:
        loop = asyncio.get_running_loop()
        config = Config(state_timeout=50_000)
        states = States(cast(Any, app), recorder, config, loop.call_later, later.append, Log("A", "g"))
        wanted: StateRequest = states.want(StateWanted(VIEW, (B, C), {}))
        error = await states.provide(wanted) if read else None
        async with asyncio.timeout(60):
            while states.tasks or states.wanted:
                await asyncio.sleep(0.01)
        return error

    error = asyncio.run(main())
    return recorder.asked, error, later


def failed(reason: str) -> list[core.Event]:
    return [StateFailed(VIEW, B, reason), StateFailed(VIEW, C, reason)]


def test_a_get_state_that_raises_is_told_to_the_joiners(caplog: pytest.LogCaptureFixture) -> None:
    class Raises(App):
        async def get_state(self) -> bytes:
            raise ZeroDivisionError("no state today")

    told, error, later = given_by(Raises())
    assert told == failed("get_state() raised ZeroDivisionError: no state today")
    assert isinstance(error, ZeroDivisionError)
    assert later == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "gives no state to B, C: get_state() raised ZeroDivisionError" in caplog.text


def test_a_get_state_that_does_not_return_is_told_to_the_joiners(caplog: pytest.LogCaptureFixture) -> None:
    class Hangs(App):
        async def get_state(self) -> bytes:
            await asyncio.sleep(1_000)
            return b""

    told, error, _ = given_by(Hangs())
    assert told == failed("get_state() did not return within 0.05 s")
    assert error is None
    assert "did not return" in caplog.text


def test_a_program_that_does_not_come_to_it_gives_no_state_either() -> None:
    told, _, _ = given_by(App(), read=False)
    assert told == failed("get_state() was not called, because the program read no events for 0.05 s")


@pytest.mark.parametrize("fault", ["hangs", "raises"])
def test_an_iterator_that_goes_wrong_is_told_to_the_joiners(fault: str) -> None:
    class Broken(InPieces):
        async def _pieces(self) -> AsyncIterator[bytes]:
            yield b"x" * 100
            if fault == "raises":
                raise ZeroDivisionError
            await asyncio.sleep(1_000)

    told, error, later = given_by(Broken())
    if fault == "raises":
        assert told == failed("the iterator of get_state() raised ZeroDivisionError")
        assert [type(one) for one in later] == [ZeroDivisionError]
    else:
        assert told == failed("the iterator of get_state() gave no bytes for 0.05 s")
        assert later == []
    assert error is None


@pytest.mark.parametrize("piece", ["text", [1, 2], None, 3])
def test_an_iterator_that_gives_no_bytes_is_named_to_the_program_and_to_the_joiners(piece: Any) -> None:
    class Wrong(InPieces):
        async def _pieces(self) -> AsyncIterator[Any]:
            yield b"x" * 100
            yield piece

    told, _, later = given_by(Wrong())
    sentence = f"the iterator of get_state() must give bytes, not {type(piece).__name__}"
    assert told == failed(f"the iterator of get_state() raised UsageError: {sentence}")
    assert [(type(one), str(one)) for one in later] == [(UsageError, sentence)]


def test_reads_that_are_cancelled_do_not_begin_the_state_anew(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, app = await group.joined("A", state=App(b"the state")), App()
        reading = asyncio.create_task(drain(first, []))
        app.pause = 1.0  # longer than five reads on a busy machine
        second = await group.joined("B", state=app)
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(second), 0.02)
        assert isinstance(await anext(second), View)
        assert (app.sets, app.state) == (1, b"the state")
        reading.cancel()

    in_a_group(tmp_path, story)


def test_a_member_is_ready_when_its_state_is_set(tmp_path: Path) -> None:
    """Nobody need read for it; the events follow as always."""

    async def story(group: Group) -> None:
        first, app = await group.joined("A", state=App(b"the state")), App()
        await first.ready()
        assert first.is_coordinator
        reading = asyncio.create_task(drain(first, []))
        second = await group.joined("B", state=app)
        await second.ready()
        assert app.state == b"the state"
        assert not second.is_coordinator
        assert isinstance(await anext(second), View)
        assert app.sets == 1
        third = await group.joined("C")
        await third.ready()
        reading.cancel()

    in_a_group(tmp_path, story)


def test_a_member_is_not_ready_whose_state_cannot_be_set(tmp_path: Path) -> None:
    class Refuses(App):
        async def set_state(self, data: bytes) -> None:
            self.sets += 1
            raise ZeroDivisionError

    async def story(group: Group) -> None:
        first, app = await group.joined("A", state=App()), Refuses()
        reading = asyncio.create_task(drain(first, []))
        second = await group.joined("B", state=app)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await second.ready()
            with pytest.raises(ZeroDivisionError):
                await anext(second)
        assert app.sets == 1
        reading.cancel()

    in_a_group(tmp_path, story)


async def drain(channel: Channel, events: list[Event]) -> None:
    async for event in channel:
        events.append(event)


async def waiting_joiner(group: Group, name: str, **options: Any) -> tuple[Channel, App]:
    """A member whose state does not come: the members that have one do not read."""
    app = App(b"nothing")
    return await group.joined(name, state=app, **options), app


def test_where_a_program_goes_on_without_its_state_stands_in_the_journal(tmp_path: Path) -> None:
    """Behind the first state that it waited for: it gets the message that it delivered meanwhile."""

    async def story(group: Group) -> None:
        first = await group.joined("A", state=App(), journal=tmp_path / "journal")
        await first.send(b"before", until="delivered")
        second, _ = await waiting_joiner(group, "B", journal=tmp_path / "journal")
        await first.send(b"meanwhile", until="stable")
        first._member.crash(AssertionError("dies"))
        await until(lambda: len(second.view.members) == 1)
        for _ in range(2):
            with pytest.raises(StateLost):
                await second.ready()
        await until(lambda: records(tmp_path / "journal", "state_lost") != [])
        (told,) = records(tmp_path / "journal", "state_lost")
        begun = [view for view in records(tmp_path / "journal", "view") if view["who"] == str(second.address)]
        assert [view["digest"] for view in begun] == [{str(first.address): 1}, {str(first.address): 2}]
        assert (told["digest"], told["view"], told["reason"]) == (begun[0]["digest"], begun[1]["view"], "lost")
        await second.leave()
        first._session.crash = None  # type: ignore[union-attr]

    in_a_group(tmp_path, story)


def test_that_there_was_no_state_stands_in_the_journal(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.joined("A", journal=tmp_path / "journal")
        await first.send(b"before", until="delivered")
        second = await group.joined("B", state=App(), journal=tmp_path / "journal")
        assert isinstance(await anext(second), View)
        await until(lambda: records(tmp_path / "journal", "state_lost") != [])
        (told,) = records(tmp_path / "journal", "state_lost")
        assert (told["who"], told["reason"]) == (str(second.address), "none")
        assert told["digest"] == {str(first.address): 1}
        await second.leave()
        await first.leave()

    in_a_group(tmp_path, story)


def test_a_joiner_whose_only_provider_dies_is_told_that_the_state_is_lost(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.joined("A", state=App())
        second, app = await waiting_joiner(group, "B")
        ready = asyncio.create_task(second.ready())
        await asyncio.sleep(0.02)
        first._member.crash(AssertionError("dies"))
        await until(lambda: len(second.view.members) == 1)
        with pytest.raises(StateLost, match="this member has no state"):
            await anext(second)
        with pytest.raises(StateLost):
            await ready
        with pytest.raises(StateLost):
            await second.ready()
        view = await anext(second)
        assert isinstance(view, View)
        assert view.joined == view.transitional == (second.address,), "its first view: it joined in it"
        assert view.left == ()
        assert app.sets == 0
        await second.send(b"on")
        rest = [type(await anext(second)) for _ in range(3)]
        assert rest == [Suspected, View, Message], "what it held, and then all later events"
        first._session.crash = None  # type: ignore[union-attr]

    in_a_group(tmp_path, story)


def test_the_first_view_of_a_joiner_whose_provider_died_says_that_it_joined(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, old = await group.joined("A", state=App()), await group.joined("B", state=App())
        apps = [asyncio.create_task(drain(channel, [])) for channel in (first, old)]
        await old.ready()
        apps[0].cancel()
        await asyncio.sleep(0)
        second, app = await waiting_joiner(group, "C")
        first._member.crash(AssertionError("dies"))
        view = await anext(second)
        assert app.sets == 1
        assert isinstance(view, View)
        assert view.members == (old.address, second.address)
        assert (view.joined, view.left) == ((second.address,), ())
        assert view.transitional == (second.address,)
        first._session.crash = None  # type: ignore[union-attr]
        apps[1].cancel()

    in_a_group(tmp_path, story)


def test_who_keeps_a_state_in_a_group_that_has_none_begins_without_a_word(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        await group.read("A")
        second = await group.joined("B", state=App())
        await second.ready()
        assert isinstance(await anext(second), View)

    in_a_group(tmp_path, story)


def test_what_the_group_delivered_is_not_unknown_to_a_member_that_leaves_before_its_state(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first = await group.joined("A", state=App())  # does not read: gives no state
        reader = await group.read("B")
        second, _ = await waiting_joiner(group, "C")
        numbers = [await second.send(b"%d" % number) for number in range(50)]
        await until(lambda: len(reader.payloads) == 50)
        assert await second.leave() == Left("left", [])
        assert await second.wait(numbers[-1], until="delivered") is None
        reading = asyncio.create_task(drain(first, []))
        await asyncio.sleep(0)
        reading.cancel()

    in_a_group(tmp_path, story)


def test_what_until_confirmed_is_not_unknown_when_no_state_ever_came(tmp_path: Path) -> None:
    """Its messages were in the state of the second provider, which it was not given either."""

    async def story(group: Group) -> None:
        first, other = (
            await group.joined("A", state=App(), config=QUICK),
            await group.joined("B", state=App(), config=QUICK),
        )
        apps = [asyncio.create_task(drain(channel, [])) for channel in (first, other)]
        await other.ready()
        for task in apps:
            task.cancel()
        await asyncio.sleep(0)
        second, _ = await waiting_joiner(group, "C", config=QUICK)
        numbers = [await second.send(b"%d" % number, until="delivered") for number in range(5)]
        first._member.crash(AssertionError("dies"))
        await until(lambda: len(second.view.members) == 2)
        numbers += [await second.send(b"%d" % number, until="delivered") for number in range(5)]
        assert await second.leave() == Left("left", [])
        for number in numbers:
            await second.wait(number, until="delivered")
        first._session.crash = None  # type: ignore[union-attr]

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("fault", ["raises", "hangs", "does not read"])
def test_when_one_member_gives_no_state_another_one_does(tmp_path: Path, fault: str) -> None:
    class Fails(App):
        works = True

        async def get_state(self) -> bytes:
            if not self.works:
                if fault == "raises":
                    raise ZeroDivisionError
                await asyncio.sleep(1_000)
            return b"the state"

    async def story(group: Group) -> None:
        patience = 30_000_000 if fault == "raises" else 300_000  # who raises says so, and nobody waits for it
        config, failing, joiner = Config(state_timeout=patience, views_per_second=50), Fails(), App()
        first = await group.joined("A", state=failing, config=config)
        reading = [asyncio.create_task(drain(first, []))]
        second = await group.joined("B", state=App(), config=config)
        reading.append(asyncio.create_task(drain(second, [])))
        await second.ready()
        failing.works = False
        if fault == "does not read":
            reading[0].cancel()
        third = await group.joined("C", state=joiner, config=config)
        async with asyncio.timeout(10):
            await third.ready()
        assert (joiner.state, joiner.sets) == (b"the state", 1)
        view = await anext(third)
        assert isinstance(view, View)
        assert view.joined == (third.address,)
        for task in reading:
            task.cancel()
        results = await asyncio.gather(*reading, return_exceptions=True)
        assert isinstance(results[0], ZeroDivisionError) == (fault == "raises")

    in_a_group(tmp_path, story)


def test_while_the_state_is_taken_the_others_go_on(tmp_path: Path) -> None:
    """The provider cannot read meanwhile; what it has not read holds up nobody's window."""

    async def story(group: Group) -> None:
        config = Config(window=64 << 10, run_bytes=16 << 10, stable_bytes=16 << 10, views_per_second=50)
        gate = asyncio.Event()

        class Slow(App):
            async def get_state(self) -> bytes:
                await gate.wait()
                return b"the state"

        first, app = await group.joined("A", state=Slow(), config=config), App()
        reading = asyncio.create_task(drain(first, []))
        other = await group.read("B", config=config)
        third = await group.joined("C", state=app, config=config)
        also = asyncio.create_task(drain(third, []))
        async with asyncio.timeout(10):
            for _ in range(50):
                await other.channel.send(bytes(8 << 10))
        gate.set()
        await third.ready()
        assert app.state == b"the state"
        await until(lambda: other.channel.stats()["window"]["free"] == 64 << 10)
        reading.cancel()
        also.cancel()

    in_a_group(tmp_path, story)


def both(get: Callable[..., Any], set_: Callable[..., Any]) -> object:
    return type("S", (), {"get_state": staticmethod(get), "set_state": staticmethod(set_)})()


async def asynchronous(*_: object) -> bytes:
    return b""


async def generator() -> AsyncIterator[bytes]:
    yield b""


def test_both_functions_of_a_state_are_coroutine_functions() -> None:
    Channel("g", state=cast(Any, both(asynchronous, asynchronous)))
    Channel("g", state=cast(Any, both(generator, asynchronous)))
    with pytest.raises(UsageError, match="write it as `async def get_state`"):
        Channel("g", state=cast(Any, both(lambda: b"", asynchronous)))
    with pytest.raises(UsageError, match="write it as `async def set_state`"):
        Channel("g", state=cast(Any, both(asynchronous, lambda data: None)))
    with pytest.raises(UsageError, match="async methods"):
        Channel("g", state=cast(Any, object()))


def test_what_follows_a_state_is_not_given_when_leaving_has_kept_it_from_being_set(tmp_path: Path) -> None:
    async def story(group: Group) -> None:
        first, app = await group.joined("A", state=App(b"the state")), App()
        feeding = asyncio.create_task(drain(first, []))
        app.pause = 60
        second = await group.joined("B", state=app)
        given: list[Event] = []
        reading = asyncio.create_task(drain(second, given))
        await until(lambda: app.sets == 1)
        await first.send(b"what follows", until="stable")
        waiting = asyncio.create_task(second.ready())
        await asyncio.sleep(0)
        await second.leave()
        with pytest.raises(ChannelClosed, match="set_state"):
            await reading
        with pytest.raises(ChannelClosed):
            await waiting
        with pytest.raises(ChannelClosed, match="set_state"):
            await anext(second)
        assert given == []
        feeding.cancel()

    in_a_group(tmp_path, story)


@pytest.mark.parametrize("pause", [0.0, 0.003])
def test_nobody_is_ready_who_has_not_joined(tmp_path: Path, pause: float) -> None:
    """The channel leaves, or its join is cancelled, while another task waits."""

    async def story(group: Group) -> None:
        await group.joined("A")
        for end in ("leave", "cancel"):
            channel = group.channel("B")
            joining = asyncio.create_task(channel.__aenter__())
            await asyncio.sleep(0)
            waiting = asyncio.create_task(channel.ready())
            await asyncio.sleep(pause)
            if end == "leave":
                assert (await channel.leave()).reason == "left"
                with pytest.raises(Refused, match="before it had joined"):
                    await joining
            else:
                joining.cancel()
            with pytest.raises(ChannelClosed):
                await asyncio.wait_for(waiting, 5)

    in_a_group(tmp_path, story)
