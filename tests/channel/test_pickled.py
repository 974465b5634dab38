"""Public errors, events and numbers pass between processes: each can be pickled and copied."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec
import pytest

import pygroups
import pygroups.channel.sending.demands
import pygroups.testing.errors
from pygroups import Address, DeliveredElsewhere, Error, Event, Unknown, ViewId
from pygroups.channel.sending.receipts import LaterNumber, NumberToOne
from tests.patience import patience

A = Address("A", "3f2c91d0")
VALUES = {"text": "the reason", "number": 7, "accepted": 3}


def with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    below: type
    for below in kind.__subclasses__():
        if below.__module__.startswith("pygroups."):
            yield from with_subclasses(below)


def errors() -> list[Exception]:
    """One of each class of error below Error, made with a value for each parameter."""
    kinds = list(dict.fromkeys(with_subclasses(Error)))
    made = [inspect.getfullargspec(getattr(kind, "__init__")).args for kind in kinds]  # noqa: B009 (mypy)
    names = [[name for name in parameters if name in VALUES] for parameters in made]
    return [kind(*[VALUES[name] for name in given] or ["the reason"]) for kind, given in zip(kinds, names, strict=True)]


def events() -> list[Event]:
    """One of each public event, with a value of the right type for each field without a default."""
    samples = {"ViewId": ViewId(3, A), "Address": A, "bytes": b"x", "int": 7, "bool": True, "float": 1.5, "str": "why"}
    kinds = [kind for kind in vars(pygroups).values() if inspect.isclass(kind) and issubclass(kind, Event)]
    made = []
    for kind in kinds:
        if kind is not Event:
            fields = msgspec.structs.fields(kind)
            made.append(kind(*[samples.get(getattr(field.type, "__name__", ""), ()) for field in fields]))
    return made


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_an_error_can_be_pickled_and_copied(error: Exception) -> None:
    error.add_note("a note")
    copies = [copy.copy(error), copy.deepcopy(error)]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copies.append(pickle.loads(pickle.dumps(error, protocol)))
    for other in copies:
        assert type(other) is type(error)
        assert (str(other), vars(other), other.args) == (str(error), vars(error), error.args)


@pytest.mark.parametrize("event", events(), ids=lambda event: type(event).__name__)
def test_an_event_can_be_pickled_and_copied(event: Event) -> None:
    assert pickle.loads(pickle.dumps(event)) == copy.copy(event) == copy.deepcopy(event) == event


@pytest.mark.parametrize("number", [NumberToOne(7, A, 2), LaterNumber(7, 2)], ids=["to one", "later"])
def test_the_number_of_a_message_can_be_pickled_and_copied(number: int) -> None:
    for other in (pickle.loads(pickle.dumps(number)), copy.copy(number), copy.deepcopy(number)):
        assert (other, type(other), vars(other)) == (number, type(number), vars(number))


def fail() -> None:
    """The work of another process."""
    raise Unknown("the message was not stable", 7)


def test_an_error_of_a_process_pool_arrives_and_the_pool_goes_on() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for _ in range(2):
            with pytest.raises(Unknown) as raised:
                pool.submit(fail).result(timeout=patience(60))
            assert raised.value.number == 7


def test_the_text_of_an_error_is_not_nested() -> None:
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(DeliveredElsewhere(7)))))
    assert str(again).count("was delivered") == 1
