"""Foreign work in a child process: what it gives, what it raises, and what ends it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwise.errors import InvalidInput, MeasurementFailed, UnknownName
from gpuwise.measure import apart

WORK = """
import os, signal, sys, time
from dataclasses import dataclass
from gpuwise.errors import InvalidInput, Message, UnknownName
from gpuwise.measure.host import host

print("said while it is imported")

@dataclass
class Sum:
    total: float

def add(first, second, tell):
    print("said while it works")
    tell("work")
    return Sum(first + second)

def refuse(tell):
    inner = Message("{n} px", n=3)
    raise UnknownName(Message("{what} is wrong", what=inner), "Choose.", ["near"])

def invalid(tell):
    raise InvalidInput("no", "yes")

def sleep(tell):
    tell("work")
    time.sleep(600)

def start(tell):
    time.sleep(600)

def fail(tell):
    raise ZeroDivisionError("a defect of the model")

def leave(tell):
    sys.exit(0)

def die(by, tell):
    os.kill(os.getpid(), getattr(signal, by))

def hog(tell):
    return Sum(len(bytearray(int(host().available_gib * 2**30 * 0.97))))
"""


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """call(name, limit, **arguments): a function of a module that only this folder has, in a child."""
    (tmp_path / "foreign_work.py").write_text(WORK, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    def called(name: str, limit_s: float = 60.0, start_s: float = 60.0, **arguments: object) -> Any:
        return apart.call(f"foreign_work:{name}", arguments, {"start": start_s, "work": limit_s})

    yield called
    sys.modules.pop("foreign_work", None)


def test_the_answer_comes_back_whatever_the_module_prints(call: Callable[..., Any]) -> None:
    assert call("add", first=1, second=2.5) == {"total": 3.5}


def test_an_error_comes_back_as_it_was_with_its_message_still_to_be_translated(call: Callable[..., Any]) -> None:
    with pytest.raises(UnknownName, match="3 px is wrong Choose") as caught:
        call("refuse")
    assert caught.value.nearest == ("near",)
    assert caught.value.message.template == "{what} is wrong"
    with pytest.raises(InvalidInput, match="no yes"):
        call("invalid")


def test_what_takes_too_long_is_stopped_and_the_stage_is_named(call: Callable[..., Any]) -> None:
    with pytest.raises(MeasurementFailed, match=r"counting the model took longer than 0\.1 s"):
        call("sleep", limit_s=0.1)
    with pytest.raises(MeasurementFailed, match=r"importing and building the model took longer than 0\.5 s"):
        call("start", start_s=0.5)


def test_a_crash_is_told_with_what_the_child_said_last(call: Callable[..., Any]) -> None:
    with pytest.raises(MeasurementFailed, match=r"code 1\): ZeroDivisionError: a defect of the model"):
        call("fail")
    with pytest.raises(MeasurementFailed, match="ended without an answer"):
        call("leave")
    with pytest.raises(MeasurementFailed, match=r"signal \d+"):
        call("die", by="SIGABRT")


def test_a_killed_child_points_to_the_memory(call: Callable[..., Any]) -> None:
    with pytest.raises(MeasurementFailed, match="most likely the memory"):
        call("die", by="SIGKILL")


def test_more_memory_than_there_is_is_refused_before_the_machine_suffers(call: Callable[..., Any]) -> None:
    """The limit is 90 % of what is free; untouched zeros beyond it would otherwise be promised."""
    with pytest.raises(MeasurementFailed, match="memory of this machine did not suffice"):
        call("hog")
